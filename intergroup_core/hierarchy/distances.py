"""Distances between members, by where their sites are in the hierarchy (T2.4, R4)."""

from __future__ import annotations

from typing import Protocol

from intergroup_core.ids import MemberId, SiteId

MICROSECOND = 1_000


class Map(Protocol):
    """What a control process knows of the way to other sites."""

    def distance_us(self, site: SiteId, coordinator: SiteId | None) -> int | None: ...


class MeasuredDistances:
    """The Distances of a member whose site is in the hierarchy.

    A member's place is learned from what it says. Before that, and where the hierarchy has measured nothing yet, a
    configured distance stands in.
    """

    MAX_PLACES = 20_000
    """Members whose place is remembered; the oldest are forgotten."""

    def __init__(self, map_: Map, start_ns: int) -> None:
        self._map = map_
        self._start_ns = start_ns
        self._places: dict[MemberId, tuple[SiteId, SiteId | None]] = {}

    def to(self, member: MemberId) -> int:
        place = self._places.get(member)
        measured = self._map.distance_us(*place) if place is not None else None
        if measured is not None:
            return measured * MICROSECOND
        return self._start_ns

    def place_of(self, member: MemberId) -> tuple[SiteId, SiteId | None] | None:
        """Where a member's site is, and the coordinator whose local group it is in, as the member said."""
        return self._places.get(member)

    def placed(self, member: MemberId, site: SiteId, coordinator: SiteId | None) -> None:
        """A member said where its site is."""
        self._places.pop(member, None)
        self._places[member] = (site, coordinator)
        if len(self._places) > self.MAX_PLACES:
            self._places.pop(next(iter(self._places)))
