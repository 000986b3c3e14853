"""`intergroup holders`: sites on whose logs of a group others may rely."""

from __future__ import annotations

import json as encoding
import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from intergroup_core.cli.ending import EXIT_TIMEOUT, leaving_on_signals, write_line
from intergroup_core.cli.network import Group, Interface, Peers, Settings, Transport, network_config
from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.config import Config
from intergroup_core.errors import ConfigError

Holder = tuple[int, str, bool, int]


def holders(
    group: Group,
    remove: Annotated[
        str | None, typer.Option(help="Let go of the site with this name or key: it is gone for good.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one object a line.")] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for the group.")] = 10.0,
    interface: Interface = None,
    transport: Transport = "multicast",
    peers: Peers = "",
    config: Settings = None,
) -> None:
    """Print the sites that hold a group's log and count for `majority`; one that died counts until it expires.

    Every site that sends to a group holds its log, and so does every one that keeps it (`intergroup agent --keep`). A
    site that leaves in good order says so. One that is gone for good can be removed, so that nobody waits for it.

    Example: intergroup holders prices --remove desk-1
    """
    settings = network_config(config, interface, transport, peers)
    with leaving_on_signals(), Connection.to_agent(idle_s=settings.agent.idle_s) as connection:
        here = connection.request(Kind.HOLDERS, [group], timeout)
        if here is None:
            _join(connection, group, settings, timeout)
            here = connection.request(Kind.HOLDERS, [group], timeout)
        found: list[Holder] = [(site, name, own, said) for site, name, own, said in here]
        if remove is not None:
            site, name, _, _ = _the_one(found, remove, group)
            connection.request(Kind.RELEASE, [group, site], timeout)
            write_line(f"{name} does not count any more as one that holds the log of group {group}")
            return
    for line in _lines(found, json=json):
        write_line(line)


def _join(connection: Connection, group: str, settings: Config, timeout: float) -> None:
    """Nobody at this site is in the group: be in it for as long as the connection lasts."""
    wanted = {"group": group, "delivery": "rto", "sender": False, "name": None, "config": settings.to_mapping()}
    opened = connection.request(Kind.OPEN, wanted, timeout)
    try:
        connection.request(Kind.JOINED, [opened["handle"]], timeout)
    except TimeoutError:
        print(f"intergroup: nobody of group {group} answered within {timeout:g} s", file=sys.stderr)
        raise typer.Exit(EXIT_TIMEOUT) from None


def _lines(found: list[Holder], *, json: bool) -> list[str]:
    width = max((len(name) for _, name, _, _ in found), default=0)
    lines = []
    for site, name, own, said in found:
        at = datetime.fromtimestamp(said / 1_000_000, UTC).isoformat(timespec="seconds")
        if json:
            lines.append(encoding.dumps({"name": name, "key": f"{site:016x}", "this_site": own, "said": at}))
        else:
            lines.append(f"{name:<{width}}  {site:016x}  {at}{'  this site' * own}")
    return lines


def _the_one(found: list[Holder], wanted: str, group: str) -> Holder:
    matching = [holder for holder in found if wanted in (holder[1], f"{holder[0]:016x}")]
    if len(matching) == 1:
        return matching[0]
    if matching:
        keys = ", ".join(f"{site:016x}" for site, _, _, _ in matching)
        raise ConfigError(f"--remove {wanted} could be any of {keys}; name its key")
    known = ", ".join(name for _, name, _, _ in found) or "none"
    raise ConfigError(f"no site {wanted} holds the log of group {group}; those that do: {known}")
