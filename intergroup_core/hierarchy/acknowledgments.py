"""Acknowledgments on their way through the hierarchy: least of many, remembered while their site moves (T3.5, H7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from intergroup_core.hierarchy.peers import is_newer
from intergroup_core.ids import SiteId
from intergroup_core.wire.hierarchy import (
    Acknowledgment,
    Acknowledgments,
    CoordinatorControl,
    CutKey,
    Cuts,
    GlobalControl,
    GroupKey,
    LocalControl,
    Reach,
)

Part = TypeVar("Part", LocalControl, CoordinatorControl, GlobalControl)


def least(tables: Iterable[Acknowledgments]) -> dict[GroupKey, Acknowledgment]:
    """What all of them have, group by group; who has no member in a group holds nobody back."""
    found: dict[GroupKey, Acknowledgment] = {}
    sums: dict[GroupKey, tuple[int, int]] = {}
    for table in tables:
        for key, own in table.items():
            known = found.get(key)
            if known is None:
                found[key], sums[key] = own, (own.members, own.room)
                continue
            if own.upto < known.upto:
                found[key] = own
            members, room = sums[key]
            sums[key] = (members + own.members, min(room, own.room))
    return {
        key: Acknowledgment(own.upto, sums[key][0], own.slowest, own.name, sums[key][1]) for key, own in found.items()
    }


def furthest(tables: Iterable[Cuts]) -> dict[CutKey, Reach]:
    """The most that anybody has of each source (T5.4.2)."""
    found: dict[CutKey, Reach] = {}
    for table in tables:
        for key, reach in table.items():
            known = found.get(key)
            if known is None or reach > known:
                found[key] = reach
    return found


class Ledger:
    """The latest acknowledgments of every site, and for a grace those of sites that are gone or on the move."""

    def __init__(self) -> None:
        self._tables: dict[SiteId, Acknowledgments] = {}
        self._until: dict[SiteId, int] = {}
        self.version = 0
        """Changes whenever anything here does."""

    def __contains__(self, site: SiteId) -> bool:
        return site in self._tables

    def put(self, site: SiteId, table: Acknowledgments) -> None:
        self._until.pop(site, None)
        if self._tables.get(site) != table:
            self._tables[site] = table
            self.version += 1

    def keep(self, site: SiteId, until: int) -> None:
        """The site is not heard any more: what it said last counts until then."""
        if site in self._tables:
            self._until[site] = until
            self.version += 1

    def drop(self, site: SiteId) -> None:
        """The site is counted elsewhere, or has no member any more."""
        self._until.pop(site, None)
        if self._tables.pop(site, None) is not None:
            self.version += 1

    def expire(self, now: int) -> None:
        for site in [site for site, until in self._until.items() if now >= until]:
            self.drop(site)

    def __len__(self) -> int:
        return len(self._tables)

    def tables(self) -> Iterator[Acknowledgments]:
        return iter(self._tables.values())

    def kept(self) -> Iterator[Acknowledgments]:
        """Of those that are gone; their members are nobody's any more, and counted nowhere twice."""
        for site in self._until:
            yield {key: own._replace(members=0) for key, own in self._tables[site].items()}


class Whole(NamedTuple, Generic[Part]):
    """A message of one or more parts: the first, which has everything but the rows, and all the rows."""

    first: Part
    acknowledgments: Acknowledgments
    cuts: Cuts


class Gathering(Generic[Part]):
    """Messages of several parts, of which only the latest of each site is put together."""

    def __init__(self) -> None:
        self._parts: dict[SiteId, tuple[int, dict[int, Part]]] = {}

    def add(self, message: Part) -> Whole[Part] | None:
        """What a site said, once every part of it is here."""
        if message.parts == 1:
            return Whole(message, message.acknowledgments, message.cuts)
        clock, parts = self._parts.get(message.site, (message.clock, {}))
        if is_newer(clock, message.clock):
            return None
        if clock != message.clock or any(part.parts != message.parts for part in parts.values()):
            parts = {}
        parts[message.part] = message
        self._parts[message.site] = (message.clock, parts)
        if len(parts) < message.parts:
            return None
        del self._parts[message.site]
        acknowledgments: dict[GroupKey, Acknowledgment] = {}
        cuts: dict[CutKey, Reach] = {}
        for part in parts.values():
            acknowledgments.update(part.acknowledgments)
            cuts.update(part.cuts)
        return Whole(parts[0], acknowledgments, cuts)

    def forget(self, site: SiteId) -> None:
        self._parts.pop(site, None)
