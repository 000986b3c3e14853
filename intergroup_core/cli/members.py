"""`intergroup members`: who is in a group."""

from __future__ import annotations

import dataclasses
import json as encoding
import sys
import time
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from intergroup_core.api.blocking import BlockingMember
from intergroup_core.api.blocking import open as open_member
from intergroup_core.api.events import Members, Peer
from intergroup_core.cli.ending import EXIT_TIMEOUT, leaving_on_signals, write_line
from intergroup_core.cli.network import Group, Interface, Peers, Settings, Transport, network_config
from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.config import Config
from intergroup_core.errors import AgentUnavailable

REPORTS_HEARD = 2.5
"""Idle times of reports to listen for: each receiver reports once in one of them."""
CONTROL_HEARD = 4.0
"""Intervals of the control hierarchy in which a newcomer finds its place and hears a coordinator."""
LOOK_SECONDS = 0.05
ASK_SECONDS = 10.0
BEHIND_SECONDS = 1.0
"""A member that is farther behind than this is worth naming."""

Found = TypeVar("Found", Members, Members | None)


def members(
    group: Group,
    json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for an answer.")] = 10.0,
    interface: Interface = None,
    transport: Transport = "multicast",
    peers: Peers = "",
    config: Settings = None,
) -> None:
    """Print who sends in a group and who receives, as this site's member knows it, or one that joins for a moment.

    Ends with 3 if no sender answered before --timeout; receivers with `--delivery uu` are never heard.

    Example: intergroup members prices --json
    """
    settings = network_config(config, interface, transport, peers)
    if (known := _known_here(group, settings)) is not None:
        write_line(_object(known, "") if json else _table(known, ""))
        return
    waiting = Console(stderr=True).status(f"listening to who is in {group}")
    with leaving_on_signals(), waiting, open_member(group, reads=False, config=settings) as member:
        answered = _has_view(member, timeout)
        if answered:
            # No event says that every receiver has been heard: each reports once in its idle time, so wait that long.
            time.sleep(REPORTS_HEARD * settings.report.idle_ms / 1_000)
        found = _counted(member.members, settings) if answered else member.members()
        me = member.id
    write_line(_object(found, me) if json else _table(found, me))
    if not answered:
        print(
            f"intergroup: no sender of group {group} answered within {timeout:g} s; "
            "if there should be one, check --interface here and there",
            file=sys.stderr,
        )
        raise typer.Exit(EXIT_TIMEOUT)


def _known_here(group: str, settings: Config) -> Members | None:
    """What this site's agent says, where it is in the group for somebody and has a view."""
    try:
        with Connection.to_agent(start=False) as connection:
            return _counted(lambda: _roster_of(connection, group), settings)
    except AgentUnavailable:
        return None


def _roster_of(connection: Connection, group: str) -> Members | None:
    roster = connection.request(Kind.MEMBERS, [group], ASK_SECONDS)
    if roster is None or roster["view_id"] is None:
        return None
    found, me = Members.of(group, roster), Peer(*roster["me"])
    return found if me in found.senders else dataclasses.replace(found, receivers=(*found.receivers, me))


def _counted(look: Callable[[], Found], settings: Config) -> Found:
    """Who is there once the hierarchy has counted all that were heard, newcomers and this member among them.

    A coordinator that has just begun listens for the fault time before it speaks for all, and then speaks once in its
    interval.
    """
    hierarchy = settings.hierarchy
    end = time.monotonic() + (hierarchy.fault_ms + CONTROL_HEARD * hierarchy.interval_ms) / 1_000
    while (found := look()) is not None and not _covers(found) and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)  # the count is no event of the stream: it is there once somebody has said it
    return found


def _covers(found: Members) -> bool:
    return found.count is not None and found.count >= len(found.senders) + len(found.receivers)


def _has_view(member: BlockingMember, timeout: float) -> bool:
    try:
        member.joined(timeout)
    except TimeoutError:
        return False
    return True


def _object(found: Members, me: str) -> str:
    return encoding.dumps(
        {
            "group_name": found.group_name,
            "view_id": found.view_id,
            "senders": [_fields(peer) for peer in found.senders],
            "receivers": [_fields(peer) for peer in found.receivers if peer.id != me],
            "count": _others(found, me),
            "sites": list(found.sites),
            "slowest": found.slowest,
            "behind_s": round(found.behind_s, 3) if found.behind_s is not None else None,
        }
    )


def _others(found: Members, me: str) -> int | None:
    """All that are waited for but this command's own member, where it has one."""
    return None if found.count is None else max(0, found.count - bool(me))


def _fields(peer: Peer) -> dict[str, str]:
    return {"name": peer.name, "id": peer.id}


def _table(found: Members, me: str) -> str:
    receivers = tuple(peer for peer in found.receivers if peer.id != me)
    width = max((len(peer.name) for peer in found.senders + receivers), default=0)
    lines = [f"{found.group_name}: {f'view {found.view_id}' if found.view_id else 'no view'}"]
    for role, peers in (("sender", found.senders), ("receiver", receivers)):
        lines += [f"  {role:<9} {peer.name:<{width}}  {peer.id}" for peer in peers]
    named = {peer.name for peer in found.senders + found.receivers}
    lines += [f"  {'site':<9} {name}" for name in found.sites if name not in named]
    if found.count is not None:
        lines.append(f"  about {_others(found, me)} members are waited for")
    if found.behind_s is not None and found.behind_s > BEHIND_SECONDS:
        lines.append(f"  {found.slowest} is {found.behind_s:.1f} s behind")
    return "\n".join(lines)
