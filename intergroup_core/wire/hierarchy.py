"""What control processes say to each other (T2.2.2).

A message that does not fit one datagram goes as several parts with the same clock. Only the first has echoes and
distances, which rotate; acknowledgments are complete once every part is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from intergroup_core.ids import MemberId, SiteId, Timestamp

ANY_ROOM = 1 << 40
"""Frames of a member that takes anything."""


class GroupKey(NamedTuple):
    """A process group in an epoch: acknowledgments of different branches of a partition are never mixed."""

    group: int
    epoch: int


class Acknowledgment(NamedTuple):
    """What all members of a group behind the speaker have (T3.5), how many they are, and who is the slowest."""

    upto: Timestamp
    members: int
    slowest: SiteId
    name: str
    """What people call the slowest site."""
    room: int = ANY_ROOM
    """Frames of one sender that all of them take beyond what is stable (D10)."""


class CutKey(NamedTuple):
    """A source that does not come along from an epoch of a group."""

    group: int
    epoch: int
    source: MemberId


class Reach(NamedTuple):
    """The most that anybody behind the speaker has of such a source (T5.4.2)."""

    seq: int
    promise: Timestamp


Acknowledgments = Mapping[GroupKey, Acknowledgment]
Cuts = Mapping[CutKey, Reach]
Roll = Mapping[tuple[SiteId, int], str]
"""Names of sites that have a member in a group, by site and group: a few at a time."""
Echoes = Mapping[SiteId, tuple[int, int]]
"""By site: the clock of its last message that reached the speaker, and the microseconds since (timestamp pairs)."""
Spread = Mapping[SiteId, int]
"""Distances in microseconds by site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalControl:
    """LCon: a child to its local group."""

    site: SiteId
    coordinator: SiteId
    """Names the local group."""
    ttl: int
    clock: int
    part: int = 0
    parts: int = 1
    name: str = ""
    known: int = 0
    """Sites of the local group that the speaker hears of."""
    echoes: Echoes = field(default_factory=dict)
    acknowledgments: Acknowledgments = field(default_factory=dict)
    cuts: Cuts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorControl:
    """CCon: a coordinator to its local group."""

    site: SiteId
    ttl: int
    """Also the distance, in routers, of the child that is farthest away."""
    clock: int
    part: int = 0
    parts: int = 1
    far_us: int = 0
    """The distance of that child in microseconds."""
    children: int = 0
    coordinators: int = 1
    counted: int = 0
    """Microseconds ago: whatever had reached the speaker by then is in every coordinator's minimum (D7)."""
    heir: SiteId | None = None
    """Who takes over first, should the speaker fail."""
    echoes: Echoes = field(default_factory=dict)
    local_distances: Spread = field(default_factory=dict)
    coordinator_distances: Spread = field(default_factory=dict)
    acknowledgments: Acknowledgments = field(default_factory=dict)
    """Of the whole system; empty while the speaker does not know it."""
    cuts: Cuts = field(default_factory=dict)
    roll: Roll = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalControl:
    """GCon: a coordinator to the coordinator group."""

    site: SiteId
    clock: int
    part: int = 0
    parts: int = 1
    children: int = 0
    coordinators: int = 1
    echoes: Echoes = field(default_factory=dict)
    acknowledgments: Acknowledgments = field(default_factory=dict)
    """Of the speaker's local group."""
    cuts: Cuts = field(default_factory=dict)
    roll: Roll = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RingQuery:
    """Looks for a coordinator that takes one more site, among those that this TTL reaches (T2.6.1)."""

    site: SiteId
    attempt: int
    ttl: int
    clock: int
    leaving: SiteId | None
    """The coordinator it leaves, if it has one."""
    starting: bool
    """Whether the speaker has just started and will be a coordinator if nobody answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RingAnswer:
    """A coordinator answers the site that asked."""

    site: SiteId
    seeker: SiteId
    attempt: int
    query_clock: int
    """As in the question; with how long the answer waited it gives the distance."""
    held: int
    ttl: int
    children: int
    coordinators: int
    takes: bool
    """Whether it takes the site; one that does not says at least that it is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorLeave:
    """A coordinator is about to become a child: its children look for another one (figure 2.4)."""

    site: SiteId
    clock: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLeave:
    """The speaker is no child of this coordinator any more, or, where that is itself, no coordinator."""

    site: SiteId
    coordinator: SiteId
    clock: int
    orphans: bool = False
    """Whether children, or some that are gone, still count by way of the speaker."""


HierarchyMessage = (
    LocalControl | CoordinatorControl | GlobalControl | RingQuery | RingAnswer | CoordinatorLeave | SiteLeave
)
HIERARCHY_MESSAGES = (
    LocalControl,
    CoordinatorControl,
    GlobalControl,
    RingQuery,
    RingAnswer,
    CoordinatorLeave,
    SiteLeave,
)
