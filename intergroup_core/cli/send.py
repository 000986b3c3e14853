"""`intergroup send`: multicasts lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from intergroup_core.agent.levels import ack_of
from intergroup_core.api.blocking import BlockingMember
from intergroup_core.api.blocking import open as open_member
from intergroup_core.cli.ending import leaving_on_signals
from intergroup_core.cli.network import Group, Interface, Name, Peers, Settings, Transport, network_config
from intergroup_core.errors import ConfigError, MessageTooLarge

READ_BYTES = 1 << 16


def send(
    group: Group,
    file: Annotated[Path | None, typer.Option(help="Read lines from this file.", show_default="standard input")] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Records a second at most.", show_default="none")
    ] = None,
    ack: Annotated[
        str,
        typer.Option(
            help="What to wait for: sent (it left this site), delivered (it is in this site's log), k:N (and in those "
            "of N other log-holding sites), majority (of these sites, this one included) or all (that live)."
        ),
    ] = "sent",
    ack_timeout: Annotated[float, typer.Option(min=0.001, help="Seconds that this may take.")] = 30.0,
    name: Name = None,
    interface: Interface = None,
    transport: Transport = "multicast",
    peers: Peers = "",
    config: Settings = None,
) -> None:
    """Multicast a record per line of standard input or a file.

    The site's agent sends; it is started where none is there. At the end of the input the command waits for --ack and
    lets go of the group. Without room for more it waits: a group that does not keep up sets the pace.

    Example: printf 'one\\ntwo\\n' | intergroup send prices --name desk-1
    """
    ack_of(ack)
    settings = network_config(config, interface, transport, peers)
    settings = replace(settings, agent=replace(settings.agent, ack_timeout_s=ack_timeout))
    with (
        leaving_on_signals(),
        _input(file) as source,
        open_member(group, sender=True, reads=False, name=name, config=settings) as member,
    ):
        sent = _send_lines(member, _lines(source, settings.group.max_message_bytes), rate)
        member.flush(ack)
        member.leave()
    if sys.stderr.isatty():
        print(f"{sent} record{'s' * (sent != 1)} sent to {group}", file=sys.stderr)


@contextmanager
def _input(file: Path | None) -> Iterator[int]:
    if file is None:
        yield sys.stdin.fileno()
        return
    try:
        opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"--file {file} cannot be read: {error.strerror}") from error
    try:
        yield opened
    finally:
        os.close(opened)


def _lines(source: int, most_bytes: int) -> Iterator[list[bytes]]:
    """Lines as they come, without their ends, in lists of those that came together."""
    rest = b""
    while piece := os.read(source, READ_BYTES):
        *lines, rest = (rest + piece).split(b"\n")
        if lines:
            yield lines
        if len(rest) > most_bytes:
            raise MessageTooLarge(
                f"a line has more than {most_bytes} bytes, which is the group's largest record: split it"
            )
    if rest:
        yield [rest]


def _send_lines(member: BlockingMember, pieces: Iterator[list[bytes]], rate: float | None) -> int:
    sent = 0
    begin = time.monotonic()
    for lines in pieces:
        start = 0
        while start < len(lines):
            stop = len(lines) if rate is None else start + _due(sent, begin, rate)
            member.send_many(lines[start:stop])
            sent += len(lines[start:stop])
            start = stop
    return sent


def _due(sent: int, begin: float, rate: float) -> int:
    """How many records may go now, at least one, after waiting for it."""
    while (due := int((time.monotonic() - begin) * rate) + 1 - sent) < 1:
        # --rate asks for exactly this: nothing happens until the next record's time has come.
        time.sleep(max(0.0, begin + sent / rate - time.monotonic()))
    return due
