"""Distances between members, by where their sites are in the hierarchy (T2.4, R4)."""

from __future__ import annotations

from typing import Protocol

from intergroup_core.hierarchy.peers import smoothed
from intergroup_core.ids import MemberId, SiteId

MICROSECOND = 1_000


class Map(Protocol):
    """What a control process knows of the way to other sites."""

    def measured_us(self, site: SiteId) -> int | None:
        """Its distance, where the two have heard each other."""

    def distance_us(self, site: SiteId, coordinator: SiteId | None) -> int | None:
        """The same, or what it is by way of coordinators (table 2.1)."""


class MeasuredDistances:
    """The Distances of a member whose site is in the hierarchy.

    A member's place is learned from what it says. What two sites measured of each other comes first; then what requests
    and their repairs took, which is exact too but seldom; then the way by their coordinators, which leaves out its last
    leg; and before anything is known a configured distance stands in (R4).
    """

    MAX_PLACES = 20_000
    """Members whose place is remembered; the oldest are forgotten. As many exchanges are."""

    def __init__(self, map_: Map, start_ns: int) -> None:
        self._map = map_
        self._start_ns = start_ns
        self._places: dict[MemberId, tuple[SiteId, SiteId | None]] = {}
        self._exchanged: dict[MemberId, int] = {}

    def to(self, member: MemberId) -> int:
        place = self._places.get(member)
        distance = self._map.measured_us(place[0]) if place is not None else None
        if distance is None:
            distance = self._exchanged.get(member)
        if distance is None and place is not None:
            distance = self._map.distance_us(*place)
        return self._start_ns if distance is None else distance * MICROSECOND

    def place_of(self, member: MemberId) -> tuple[SiteId, SiteId | None] | None:
        """Where a member's site is, and the coordinator whose local group it is in, as the member said."""
        return self._places.get(member)

    def placed(self, member: MemberId, site: SiteId, coordinator: SiteId | None) -> None:
        """A member said where its site is."""
        self._places.pop(member, None)
        self._places[member] = (site, coordinator)
        if len(self._places) > self.MAX_PLACES:
            self._places.pop(next(iter(self._places)))

    def exchanged(self, member: MemberId, round_trip_us: int) -> None:
        """A member answered a request; smoothed as what control messages tell."""
        self._exchanged[member] = smoothed(self._exchanged.pop(member, None), round_trip_us)
        if len(self._exchanged) > self.MAX_PLACES:
            self._exchanged.pop(next(iter(self._exchanged)))
