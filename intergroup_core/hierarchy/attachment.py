"""A child's side of a local group: what its coordinator and its siblings told it (T2.2.3, T2.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from intergroup_core.hierarchy.acknowledgments import Gathering
from intergroup_core.hierarchy.peers import CLOCK_MASK, Peers
from intergroup_core.hierarchy.search import Found
from intergroup_core.ids import SiteId
from intergroup_core.wire.hierarchy import (
    Acknowledgments,
    CoordinatorControl,
    Cuts,
    GroupKey,
    LocalControl,
)

MICROSECOND = 1_000
MAX_SENT = 64
"""Own messages remembered until their echo comes."""


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
        self.to_siblings: dict[SiteId, int] = {}
        """And to the children of its group, some of which a child may not hear."""
        self.system: Acknowledgments = {}
        self.told_at: int | None = None
        """When the coordinator last said what the whole system has."""
        self.cuts: Cuts = {}
        self._sibling_cuts: dict[SiteId, Cuts] = {}
        self.echoed_at: int | None = None
        """When the coordinator was last known to have heard this site."""
        self._sent: dict[int, frozenset[GroupKey]] = {}
        self._heard: dict[int, int] = {}
        """Of own messages that the coordinator is known to have: when they came there, by its clock."""
        self._counted_at: dict[GroupKey, int] = {}
        self.settled = False
        """Whether everything of one of this site's messages is in every coordinator's minimum."""
        self._gathering: Gathering[CoordinatorControl] = Gathering()

    @property
    def distance_us(self) -> int | None:
        leader = self.siblings.get(self.coordinator)
        return leader.distance_us if leader is not None else None

    @property
    def hops(self) -> int | None:
        leader = self.siblings.get(self.coordinator)
        return leader.hops if leader is not None else None

    def sent(self, clock: int, keys: Iterable[GroupKey]) -> None:
        """A message with acknowledgments of these groups goes to the local group."""
        self._sent[clock] = frozenset(keys)
        if len(self._sent) > MAX_SENT:
            oldest = next(iter(self._sent))
            del self._sent[oldest]
            self._heard.pop(oldest, None)

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
        self.far_hops, self.heir = message.ttl, message.heir
        for site, distance in message.local_distances.items():
            if site != self._me:
                self.siblings.mentioned(site, now)
                self.to_siblings[site] = distance
        self.from_coordinator.update(message.coordinator_distances)
        for site in message.echoes:
            if site != self._me:
                self.siblings.mentioned(site, now)
        echo = message.echoes.get(self._me)
        if echo is not None:
            clock, held = echo
            self.siblings.echoed(self.coordinator, echo, now)
            self.echoed_at = now - held * MICROSECOND
            if clock in self._sent:
                self._heard[clock] = message.clock - held
        self._count(message, now)

    def _count(self, message: CoordinatorControl, now: int) -> None:
        """The coordinator says up to when all it heard is in everybody's minimum (D7)."""
        for clock, heard in list(self._heard.items()):
            ago = message.clock - heard & CLOCK_MASK
            if ago < message.counted:
                continue
            del self._heard[clock]
            self.settled = True
            at = now - ago * MICROSECOND
            for key in self._sent.pop(clock, ()):
                self._counted_at[key] = max(at, self._counted_at.get(key, at))

    def receive_sibling(self, message: LocalControl, hops: int | None, now: int) -> None:
        if message.part:
            return
        if not self.siblings.heard(message.site, message.clock, hops, now):
            return
        if self._me in message.echoes:
            self.siblings.echoed(message.site, message.echoes[self._me], now)
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
        """The last time at which this site's acknowledgment of a group is known to have been in every minimum."""
        return self._counted_at.get(key)

    def all_counted(self, keys: Iterable[GroupKey]) -> bool:
        return self.settled and all(key in self._counted_at for key in keys)

    def rename(self, old: GroupKey, new: GroupKey) -> None:
        if old in self._counted_at:
            self._counted_at[new] = self._counted_at.pop(old)
        for clock, keys in self._sent.items():
            if old in keys:
                self._sent[clock] = keys - {old} | {new}

    def forget(self, key: GroupKey) -> None:
        self._counted_at.pop(key, None)

    def forget_silent(self, limit_ns: int, now: int) -> bool:
        """Drop siblings that are gone; whether the coordinator is one of them, or does not hear this site."""
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
