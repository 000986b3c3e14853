"""A child's side of a local group: what its coordinator and its siblings told it (T2.2.3, T2.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from intergroup_core.hierarchy.acknowledgments import Gathering
from intergroup_core.hierarchy.peers import Peers, is_newer
from intergroup_core.hierarchy.roll import Roll
from intergroup_core.hierarchy.search import Found
from intergroup_core.ids import SiteId
from intergroup_core.wire.exchange import CLOCK_MASK
from intergroup_core.wire.hierarchy import (
    Acknowledgments,
    CoordinatorControl,
    Cuts,
    GroupKey,
    LocalControl,
)

MICROSECOND = 1_000
MAX_SENT = 64
"""Own messages remembered until their echo comes, and as many that were echoed, until they are counted."""
OLD_NEWS = 4
"""Coordinators that were not mentioned for so many fault times are forgotten; their distances come in turns."""


class Sent(NamedTuple):
    """One of this site's messages to the local group."""

    at: int
    keys: frozenset[GroupKey]
    heard: int = 0
    """When it came, by the coordinator's clock."""


class Attachment:
    """Membership of one local group; a site on the move has two for a while."""

    def __init__(self, me: SiteId, found: Found, most: int, now: int) -> None:
        self._me = me
        self.coordinator = found.coordinator
        self.siblings = Peers(most)
        self.siblings.mentioned(found.coordinator, now)
        leader = self.siblings.get(found.coordinator)
        assert leader is not None
        leader.distance_us, leader.hops = found.distance_us, found.hops
        self.since = now
        self.coordinators = found.coordinators
        self.children = 1
        """Of the coordinator, as it says."""
        self.far_hops = found.hops or 0
        self.heir: SiteId | None = None
        self.from_coordinator: dict[SiteId, int] = {}
        """The coordinator's distances in microseconds to other coordinators."""
        self._mentioned_at: dict[SiteId, int] = {}
        self.to_siblings: dict[SiteId, int] = {}
        """And to the children of its group, some of which a child may not hear."""
        self.system: Acknowledgments = {}
        self.told_at: int | None = None
        """When the coordinator last said what the whole system has."""
        self.cuts: Cuts = {}
        self._sibling_cuts: dict[SiteId, Cuts] = {}
        self.roll = Roll()
        self.echoed_at: int | None = None
        """When the coordinator was last known to have heard this site."""
        self._sent: dict[int, Sent] = {}
        self._heard: dict[int, Sent] = {}
        self._counted_at: dict[GroupKey, int] = {}
        self._settled_at: int | None = None
        self._gathering: Gathering[CoordinatorControl] = Gathering()

    @property
    def distance_us(self) -> int | None:
        leader = self.siblings.get(self.coordinator)
        return leader.distance_us if leader is not None else None

    @property
    def hops(self) -> int | None:
        leader = self.siblings.get(self.coordinator)
        return leader.hops if leader is not None else None

    def sent(self, clock: int, keys: Iterable[GroupKey], now: int) -> None:
        """A message with acknowledgments of these groups goes to the local group."""
        self._sent[clock] = Sent(now, frozenset(keys))
        if len(self._sent) > MAX_SENT:
            del self._sent[next(iter(self._sent))]

    def receive_coordinator(self, message: CoordinatorControl, hops: int | None, now: int) -> None:
        whole = self._gathering.add(message)
        self.siblings.mentioned(message.site, now)
        if whole is None or not self.siblings.heard(message.site, message.clock, hops, now):
            return
        self.cuts = whole.cuts
        if whole.acknowledgments:
            self.system = whole.acknowledgments
            self.told_at = now
        self._read(whole.first, now)

    def _read(self, message: CoordinatorControl, now: int) -> None:
        self.children, self.coordinators = message.children, message.coordinators
        self.roll.told(message.roll, now)
        self.far_hops, self.heir = message.ttl, message.heir
        for site, distance in message.local_distances.items():
            if site != self._me:
                self.siblings.mentioned(site, now)
                self.to_siblings[site] = distance
        self.from_coordinator.update(message.coordinator_distances)
        self._mentioned_at.update(dict.fromkeys(message.coordinator_distances, now))
        for site in message.echoes:
            if site != self._me:
                self.siblings.mentioned(site, now)
        echo = message.echoes.get(self._me)
        if echo is not None:
            self._echoed(message.clock, echo, now)
        self._count(message)

    def _echoed(self, coordinator_clock: int, echo: tuple[int, int], now: int) -> None:
        clock, held = echo
        self.siblings.echoed(self.coordinator, echo, now)
        self.echoed_at = now - held * MICROSECOND
        sent = self._sent.pop(clock, None)
        if sent is not None and len(self._heard) < MAX_SENT:
            # Apart from the others: while data flows many more are sent before this one is counted.
            self._heard[clock] = sent._replace(heard=coordinator_clock - held & CLOCK_MASK)

    def _count(self, message: CoordinatorControl) -> None:
        """The coordinator says up to when all it heard is in everybody's minimum (D7)."""
        for clock, sent in list(self._heard.items()):
            ago = message.clock - sent.heard & CLOCK_MASK
            # Both were cut to microseconds: equal ones may be in either order.
            if ago <= message.counted + 1:
                continue
            del self._heard[clock]
            # Since it was sent, by this site's own clock: how long any message was under way does not matter.
            self._settled_at = max(sent.at, self._settled_at or sent.at)
            for key in sent.keys:
                self._counted_at[key] = max(sent.at, self._counted_at.get(key, sent.at))

    def receive_sibling(self, message: LocalControl, hops: int | None, now: int) -> None:
        if message.part:
            return
        if not self.siblings.heard(message.site, message.clock, hops, now):
            return
        if self._me in message.echoes:
            self.siblings.echoed(message.site, message.echoes[self._me], now)
        self.roll.said(message.site, message.name, message.acknowledgments, now)
        # What the coordinator will say of all of them, only sooner.
        if message.cuts:
            self._sibling_cuts[message.site] = message.cuts
        elif self._sibling_cuts:
            self._sibling_cuts.pop(message.site, None)

    def all_cuts(self) -> Iterator[Cuts]:
        """What the coordinator and the siblings say that is left of an epoch."""
        yield self.cuts
        yield from self._sibling_cuts.values()

    def counted_at(self, key: GroupKey) -> int | None:
        """When that acknowledgment of a group was sent which was last known to be in every minimum."""
        return self._counted_at.get(key)

    def all_counted(self, keys: Iterable[GroupKey], since: int) -> bool:
        """Whether every coordinator's minimum has this site by what it said after a time."""
        if self._settled_at is None or self._settled_at < since:
            return False
        return all(self._counted_at.get(key, since - 1) >= since for key in keys)

    def rename(self, old: GroupKey, new: GroupKey) -> None:
        if old in self._counted_at:
            self._counted_at[new] = self._counted_at.pop(old)
        for table in (self._sent, self._heard):
            for clock, sent in table.items():
                if old in sent.keys:
                    table[clock] = sent._replace(keys=sent.keys - {old} | {new})

    def forget(self, key: GroupKey) -> None:
        """The acknowledgment of a group is taken back: what was said of it until now counts no more."""
        self._counted_at.pop(key, None)
        for table in (self._sent, self._heard):
            for clock, sent in table.items():
                if key in sent.keys:
                    table[clock] = sent._replace(keys=sent.keys - {key})

    def has_newer_than(self, clock: int) -> bool:
        """Whether the coordinator was heard after it said something with this clock."""
        leader = self.siblings.get(self.coordinator)
        return leader is not None and leader.clock is not None and is_newer(leader.clock, clock)

    def excuse(self, ns: int) -> None:
        """This site stood still for so long and heard nobody."""
        self.siblings.excuse(ns)
        self.since += ns
        if self.echoed_at is not None:
            self.echoed_at += ns

    def forget_silent(self, limit_ns: int, now: int) -> bool:
        """Drop siblings that are gone; whether the coordinator is one of them, or does not hear this site."""
        for site, at in list(self._mentioned_at.items()):
            if now - at > OLD_NEWS * limit_ns:
                del self._mentioned_at[site], self.from_coordinator[site]
        for site in self.siblings.silent(limit_ns, now):
            if site == self.coordinator:
                return True
            self.siblings.forget(site)
            self._sibling_cuts.pop(site, None)
            self.to_siblings.pop(site, None)
        return now - (self.since if self.echoed_at is None else self.echoed_at) > 2 * limit_ns

    def distance_to(self, site: SiteId) -> int | None:
        """To somebody of this local group: measured, or by way of the coordinator."""
        known = self.siblings.get(site)
        if known is not None and known.distance_us is not None:
            return known.distance_us
        own, further = self.distance_us, self.to_siblings.get(site)
        return own + further if own is not None and further is not None else None
