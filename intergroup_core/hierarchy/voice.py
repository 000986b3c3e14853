"""What a control process says: messages of its state, cut to datagrams, with a TTL for each (T2.2.2, T2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from intergroup_core.effects import Control, ControlEffect, CoordinatorGroup, Destination, LocalGroup
from intergroup_core.hierarchy.attachment import Attachment
from intergroup_core.hierarchy.leadership import Leadership
from intergroup_core.ids import MemberId, SiteId, group_tag
from intergroup_core.wire.exchange import CLOCK_MASK, clock_at
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.hierarchy import (
    Acknowledgments,
    CoordinatorControl,
    Cuts,
    GlobalControl,
    HierarchyMessage,
    LocalControl,
)
from intergroup_core.wire.hierarchy_codec import encode_hierarchy

MAX_CONTROL_BYTES = 1_400
"""A control message fits one datagram of an Ethernet (H6)."""
ECHOES = 18
NAMES = 3
DISTANCES = 12
"""Entries of a message; the others wait for the next one."""
FIRST_ROWS, ROWS = 4, 12
"""Acknowledgments, and cuts, in the first part of a message and in each further one."""
NAME_BYTES = 16
"""Of a site's name, as far as it travels with acknowledgments."""
UNKNOWN = CLOCK_MASK
"""Counted so long ago that it says nothing."""
MICROSECOND = 1_000


def hierarchy_tag(hierarchy: str) -> int:
    """What keeps hierarchies apart whose addresses collide."""
    return group_tag(f"control hierarchy {hierarchy}")


Key = TypeVar("Key")
Row = TypeVar("Row")
Part = TypeVar("Part", LocalControl, CoordinatorControl, GlobalControl)


class Voice:
    """Makes and sends the messages of one control process."""

    def __init__(self, me: SiteId, name: str, hierarchy: str, system_ttl: int, effects: list[ControlEffect]) -> None:
        self._me = me
        self._name = name.encode()[:NAME_BYTES].decode(errors="ignore")
        self._system_ttl = system_ttl
        self._effects = effects
        self._maker = FrameMaker(hierarchy_tag(hierarchy), MemberId(me), 0, MAX_CONTROL_BYTES)
        self._turn = 0

    @property
    def name(self) -> str:
        return self._name

    def say(self, message: HierarchyMessage, to: Destination, ttl: int | None = None) -> int:
        """Send one message; how many bytes it has."""
        kind, body = encode_hierarchy(message)
        frame = self._maker.single(kind, 0, 0, body)
        assert len(frame) <= MAX_CONTROL_BYTES, f"a {kind.name} of {len(frame)} bytes does not fit a datagram"
        self._effects.append(Control(message, frame, to, self._system_ttl if ttl is None else ttl))
        return len(frame)

    def _say_parts(self, first: Part, own: Acknowledgments, cuts: Cuts, to: Destination, ttl: int | None) -> int:
        heads, tails = _rows(own), _rows(cuts)
        count = max(len(heads), len(tails))
        total = 0
        for part in range(count):
            rows = heads[part] if part < len(heads) else {}
            reach = tails[part] if part < len(tails) else {}
            piece = first if part == 0 else _without_lists(first)
            total += self.say(replace(piece, part=part, parts=count, acknowledgments=rows, cuts=reach), to, ttl)
        return total

    def local(self, attachment: Attachment, own: Acknowledgments, cuts: Cuts, now: int) -> int:
        """LCon, as far as the coordinator."""
        clock = clock_at(now)
        attachment.sent(clock, own, now)
        message = LocalControl(
            site=self._me,
            coordinator=attachment.coordinator,
            ttl=self._local_ttl(attachment.hops),
            clock=clock,
            name=self._name,
            known=len(attachment.siblings),
            echoes=attachment.siblings.echoes(ECHOES, now),
        )
        return self._say_parts(message, own, cuts, LocalGroup(attachment.coordinator), message.ttl)

    def coordinator(self, lead: Leadership, cuts: Cuts, now: int) -> int:
        """CCon, as far as the farthest child."""
        self._turn += 1
        hops, far = lead.children.farthest()
        counted = lead.counted_upto(now)
        message = CoordinatorControl(
            site=self._me,
            ttl=self._local_ttl(hops if len(lead.children) else None),
            clock=clock_at(now),
            far_us=far,
            children=len(lead.children),
            coordinators=lead.coordinators,
            counted=UNKNOWN if counted is None else min(UNKNOWN, (now - counted) // MICROSECOND),
            heir=lead.heir(),
            echoes=lead.children.echoes(ECHOES, now),
            local_distances=lead.children.distances(DISTANCES, self._turn),
            roll=lead.roll.some(NAMES),
            coordinator_distances=lead.fellows.distances(DISTANCES, self._turn),
        )
        system = lead.system(now) or {}
        return self._say_parts(message, system, lead.system_cuts(cuts), LocalGroup(self._me), message.ttl)

    def global_(self, lead: Leadership, cuts: Cuts, now: int) -> int:
        """GCon, to the end of the system."""
        clock = clock_at(now)
        lead.sent(clock, now)
        message = GlobalControl(
            site=self._me,
            clock=clock,
            children=len(lead.children),
            coordinators=lead.coordinators,
            roll=lead.local_roll.some(NAMES),
            echoes=lead.fellows.echoes(ECHOES, now),
        )
        return self._say_parts(message, lead.group(), lead.group_cuts(cuts), CoordinatorGroup(), None)

    def _local_ttl(self, hops: int | None) -> int:
        """The least TTL that crosses so many routers; with nobody measured yet, the whole system's."""
        return self._system_ttl if hops is None else max(1, min(self._system_ttl, hops + 1))


def _rows(table: Mapping[Key, Row]) -> list[dict[Key, Row]]:
    """A table in pieces that fit a part each; at least one."""
    entries = list(table.items())
    pieces = [dict(entries[:FIRST_ROWS])]
    pieces += [dict(entries[start : start + ROWS]) for start in range(FIRST_ROWS, len(entries), ROWS)]
    return pieces


def _without_lists(message: Part) -> Part:
    """For a part that only goes on with the rows."""
    if isinstance(message, CoordinatorControl):
        return replace(message, echoes={}, local_distances={}, coordinator_distances={}, roll={})
    if isinstance(message, GlobalControl):
        return replace(message, echoes={}, roll={})
    return replace(message, echoes={})
