"""The expanding ring search for a coordinator (T2.6.1)."""

from __future__ import annotations

from dataclasses import dataclass

from intergroup_core.ids import SiteId
from intergroup_core.wire.exchange import CLOCK_MASK, MAX_ROUND_TRIP_US, clock_at
from intergroup_core.wire.hierarchy import RingAnswer, RingQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A coordinator that takes this site."""

    coordinator: SiteId
    distance_us: int
    hops: int | None
    coordinators: int


LEAST_RINGS = 3
"""Questions of a search at least: one may be lost."""


def rings(first: int, last: int) -> tuple[int, ...]:
    """The TTLs of a search, doubling; the last is repeated where there are few."""
    found = [first]
    while found[-1] < last:
        found.append(min(last, 2 * found[-1]))
    return (*found, *[last] * (LEAST_RINGS - len(found)))


class RingSearch:
    """Asks ring by ring; the nearest of those that answered within a ring's time is taken."""

    MAX_ANSWERS = 64

    def __init__(
        self,
        me: SiteId,
        attempt: int,
        ttls: tuple[int, ...],
        ring_ns: int,
        *,
        leaving: SiteId | None,
        starting: bool,
        closest_us: int | None = None,
        crowd_ns: int = 0,
    ) -> None:
        self._me = me
        self.attempt = attempt
        self._ttls = list(ttls)
        self._ring_ns = ring_ns
        self._leaving = leaving
        self._starting = starting
        self._closest_us = closest_us
        self._crowd_ns = crowd_ns
        """What a question of another one costs in time: all that search share a bandwidth."""
        self._crowd = 0
        self._answers: list[Found] = []
        self.due_at = 0
        self.over = False
        """Whether it has ended, with or without a coordinator."""
        self.found: Found | None = None
        self.lower: SiteId | None = None
        """Another site that starts at the same time and goes before this one."""

    def tick(self, now: int) -> RingQuery | None:
        """The next question, if it is time for one."""
        if self.over or now < self.due_at:
            return None
        if self._answers:
            self.found = min(self._answers, key=lambda answer: (answer.distance_us, answer.coordinator))
            self.over = True
            return None
        if not self._ttls:
            self.over = True
            return None
        self.due_at = now + max(self._ring_ns, self._crowd * self._crowd_ns)
        self._crowd = 0
        return RingQuery(
            site=self._me,
            attempt=self.attempt,
            ttl=self._ttls.pop(0),
            clock=clock_at(now),
            leaving=self._leaving,
            starting=self._starting,
        )

    def answered(self, answer: RingAnswer, hops: int | None, now: int) -> None:
        if self.over or answer.attempt != self.attempt or answer.seeker != self._me or answer.site == self._leaving:
            return
        if not answer.takes:
            return
        round_trip = (clock_at(now) - answer.query_clock & CLOCK_MASK) - answer.held
        if not 0 <= round_trip <= MAX_ROUND_TRIP_US or len(self._answers) == self.MAX_ANSWERS:
            return
        distance = round_trip // 2
        if self._closest_us is not None and distance > self._closest_us:
            return
        self._answers.append(
            Found(coordinator=answer.site, distance_us=distance, hops=hops, coordinators=answer.coordinators)
        )

    def overheard(self, query: RingQuery) -> None:
        """Another one searches. Of several that start and find nobody, the lowest becomes a coordinator first."""
        self._crowd += 1
        if query.starting and query.site < self._me and (self.lower is None or query.site < self.lower):
            self.lower = query.site
