"""Who is in a group, as one of its members knows it: plain values, for this process or another."""

from __future__ import annotations

import itertools
from typing import TypedDict

from intergroup_core.endpoint import Endpoint
from intergroup_core.ids import Instant, MemberId, format_member, wall_us


class Roster(TypedDict):
    """Names and ids; what the control hierarchy has not said yet is None."""

    me: list[str]
    """Who tells it."""
    view_id: str | None
    senders: list[list[str]]
    receivers: list[list[str]]
    count: int | None
    sites: list[str]
    slowest: str | None
    behind_s: float | None


def roster_of(endpoint: Endpoint, at: Instant) -> Roster:
    view = endpoint.view
    senders = []
    if view is not None:
        names = itertools.chain(view.names, itertools.repeat(""))
        senders = [_named(member, name) for member, name in zip(view.members, names, strict=False)]
    told = endpoint.told(at)
    return Roster(
        me=_named(endpoint.me, endpoint.name),
        view_id=str(view.id) if view is not None else None,
        senders=senders,
        receivers=[_named(member, name) for member, name in sorted(endpoint.receivers.items())],
        count=told.members if told is not None else None,
        sites=list(endpoint.roll(at)),
        slowest=told.slowest if told is not None else None,
        behind_s=max(0.0, at.wall / 1e9 - wall_us(told.upto) / 1e6) if told is not None else None,
    )


def _named(member: MemberId, name: str) -> list[str]:
    shown = format_member(member)
    return [name or shown, shown]
