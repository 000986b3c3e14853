"""`intergroup recv`: prints a group's stream."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from intergroup_core.api.blocking import BlockingMember
from intergroup_core.api.blocking import open as open_member
from intergroup_core.api.events import Event, Message
from intergroup_core.cli.ending import EXIT_TIMEOUT, leaving_on_signals, write_line
from intergroup_core.cli.network import Group, Interface, Name, Peers, Settings, Transport, network_config
from intergroup_core.cli.rows import json_line, text_line


def recv(
    group: Group,
    delivery: Annotated[
        str, typer.Option(help="uu, rso or rto: what the network brings, in each sender's order, in one order.")
    ] = "rto",
    json: Annotated[bool, typer.Option("--json", help="One object a line, with the columns of a Spark read.")] = False,
    count: Annotated[
        int | None, typer.Option(min=1, help="End with 0 after so many records.", show_default="never")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="End with 3 after so many seconds.", show_default="never")
    ] = None,
    start: Annotated[
        str,
        typer.Option("--from", help="latest, earliest (first all that any site still has), or a cut as JSON."),
    ] = "latest",
    name: Name = None,
    interface: Interface = None,
    transport: Transport = "multicast",
    peers: Peers = "",
    config: Settings = None,
) -> None:
    """Print what is sent to a group, and who sends, a line each.

    The site's agent receives, and is started where none is there. Ends with 0 after --count records, with 3 on
    --timeout, whichever comes first. Who reads the output slowly finds it all in the agent's log; with
    log.slow_reader = "block" in --config that holds up the senders.

    Example: intergroup recv prices --json --count 100 --timeout 60
    """
    settings = network_config(config, interface, transport, peers)
    shown = json_line if json else text_line
    deadline = time.monotonic() + timeout if timeout is not None else None
    with leaving_on_signals(), open_member(group, delivery=delivery, start=start, name=name, config=settings) as member:
        records = 0
        while count is None or records < count:
            event = _next_event(member, deadline)
            if event is None:
                break
            write_line(shown(event))
            records += isinstance(event, Message)


def _next_event(member: BlockingMember, deadline: float | None) -> Event | None:
    try:
        return member.read(None if deadline is None else max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        raise typer.Exit(EXIT_TIMEOUT) from None
