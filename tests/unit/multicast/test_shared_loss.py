"""Fifty receivers in virtual time, losses one at a time: what each costs in requests and repairs, how long it lasts."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import mean, median

import pytest

from intergroup_core.config import RepairConfig
from intergroup_core.ids import MemberId
from intergroup_core.multicast.ranges import Span
from intergroup_core.multicast.repairs import RepairScheduler
from intergroup_core.multicast.requests import RequestScheduler
from intergroup_core.timers import earliest

MS = 1_000_000
SOURCE = MemberId(0)
BETWEEN_LOSSES = 3_000 * MS

Delay = Callable[[int, int], int]


def star(a: int, b: int) -> int:
    """Every member on its own branch; the source, at 0, is the hub."""
    return (a + b) * MS


def line(a: int, b: int) -> int:
    return (abs(a - b) + 1) * MS if a and b else (a + b) * MS


class TrueDistances:
    def __init__(self, me: int, delay: Delay) -> None:
        self._me = me
        self._delay = delay

    def to(self, member: MemberId) -> int:
        return self._delay(self._me, member)


@dataclass
class Outcome:
    requests: int = 0
    repairs: int = 0
    waits: list[float] = field(default_factory=list)
    """Notice to arrival, in distances of that receiver to the source."""


class Member:
    def __init__(self, place: int, delay: Delay, config: RepairConfig, rng: Random) -> None:
        self.place = place
        distances = TrueDistances(place, delay)
        self.requests = RequestScheduler(config, distances, rng, self.recovered)
        self.repairs = RepairScheduler(config, distances, rng, frame_bytes=1_448)
        self.lacking: set[int] = set()
        self.waits: list[float] = []

    def recovered(self, source: MemberId, waited: int, distance: int) -> None:
        self.waits.append(waited / distance)

    def next_deadline(self) -> int | None:
        return earliest(self.requests.next_deadline(), self.repairs.next_deadline())


class Group:
    """The schedulers of one source (place 0) and its receivers, joined by exact delays; places are distances in ms."""

    def __init__(self, places: Sequence[int], delay: Delay, seed: int, *, drop: float = 0.0) -> None:
        self._delay = delay
        self._drop = drop
        self._rng = Random(seed)
        config = RepairConfig()
        self._members = [Member(place, delay, config, Random(self._rng.random())) for place in (0, *places)]
        self._events: list[tuple[int, int, Callable[[int], None]]] = []
        self._serial = 0
        self._seq = 0
        self.requests = 0
        self.repairs = 0

    def lose(self, losers: Callable[[int], bool]) -> Outcome:
        """One frame, lost by some receivers, each of which notices when the next one comes."""
        self._seq += 1
        seq, sent = self._seq, self._seq * BETWEEN_LOSSES
        before = self.requests, self.repairs
        for member in self._members:
            member.waits.clear()
            if member.place and losers(member.place):
                member.lacking.add(seq)
                self._at(sent + self._delay(0, member.place), self._notice(member, seq))
        while self._events:
            now, _, event = heapq.heappop(self._events)
            event(now)
        assert not any(member.lacking for member in self._members)
        return Outcome(
            self.requests - before[0],
            self.repairs - before[1],
            [wait for member in self._members for wait in member.waits],
        )

    def _at(self, when: int, event: Callable[[int], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (when, self._serial, event))

    def _notice(self, member: Member, seq: int) -> Callable[[int], None]:
        def event(now: int) -> None:
            member.requests.missing(SOURCE, seq, seq, now)
            self._wake(member)

        return event

    def _wake(self, member: Member) -> None:
        deadline = member.next_deadline()
        if deadline is not None:
            self._at(deadline, lambda now: self._tick(member, now))

    def _tick(self, member: Member, now: int) -> None:
        deadline = member.next_deadline()
        if deadline is None or deadline > now:
            return
        for span in member.requests.tick(now).spans:
            self.requests += 1
            self._multicast(member, now, span, self._hear_request)
        for span in member.repairs.tick(now).spans:
            self.repairs += 1
            self._multicast(member, now, span, self._hear_repair)
        self._wake(member)

    def _multicast(
        self, sender: Member, now: int, span: Span, hear: Callable[[Member, Member, Span, int], None]
    ) -> None:
        for member in self._members:
            if member is not sender and self._rng.random() >= self._drop:
                self._at(now + self._delay(sender.place, member.place), self._hearing(member, sender, span, hear))

    def _hearing(
        self, member: Member, sender: Member, span: Span, hear: Callable[[Member, Member, Span, int], None]
    ) -> Callable[[int], None]:
        def event(now: int) -> None:
            hear(member, sender, span, now)
            self._wake(member)

        return event

    def _hear_request(self, member: Member, requester: Member, span: Span, now: int) -> None:
        member.requests.overheard(MemberId(requester.place), SOURCE, span.first, span.last, now)
        if span.first not in member.lacking:
            member.repairs.requested(MemberId(requester.place), SOURCE, span.first, span.last, now)

    def _hear_repair(self, member: Member, _: Member, span: Span, now: int) -> None:
        member.lacking.discard(span.first)
        member.requests.arrived(SOURCE, span.first, span.last, now)
        member.repairs.repaired(SOURCE, span.first, span.last, now)


def everybody(_: int) -> bool:
    return True


def each_with(probability: float, seed: int) -> Callable[[int], bool]:
    rng = Random(seed)
    return lambda _: rng.random() < probability


@dataclass
class Figures:
    requests: float
    repairs: float
    wait: float

    def __str__(self) -> str:
        return (
            f"{self.requests:.2f} requests and {self.repairs:.2f} repairs a loss, median wait {self.wait:.2f} distances"
        )


def after_adaptation(group: Group, losers: Callable[[int], bool], warm_up: int = 40, losses: int = 100) -> Figures:
    for _ in range(warm_up):
        group.lose(losers)
    outcomes = [outcome for _ in range(losses) if (outcome := group.lose(losers)).waits]
    return Figures(
        requests=mean(outcome.requests for outcome in outcomes),
        repairs=mean(outcome.repairs for outcome in outcomes),
        wait=median(wait for outcome in outcomes for wait in outcome.waits),
    )


Record = Callable[[str, object], None]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("delay", [star, line])
def test_a_loss_shared_by_fifty_costs_little_more_than_one_request_and_one_repair(
    delay: Delay, seed: int, record_property: Record
) -> None:
    figures = after_adaptation(Group(range(1, 51), delay, seed), everybody)
    record_property("shared loss", str(figures))
    assert figures.requests <= 1.5
    assert figures.repairs <= 1.5
    assert figures.wait <= 8


@pytest.mark.parametrize("delay", [star, line])
def test_losses_of_a_few_are_repaired_once_or_little_more(delay: Delay, record_property: Record) -> None:
    figures = after_adaptation(Group(range(1, 51), delay, seed=1), each_with(0.05, seed=1))
    record_property("5 % lose each frame", str(figures))
    assert figures.requests <= 2
    assert figures.repairs <= 1.6
    assert figures.wait <= 8


def test_fifty_at_the_same_distance_learn_to_spread_their_requests(record_property: Record) -> None:
    group = Group([10] * 50, star, seed=1)
    at_first = group.lose(everybody)
    figures = after_adaptation(group, everybody, warm_up=200, losses=50)
    record_property("equal distances", f"{at_first.requests} requests at first, then {figures}")
    assert at_first.requests > 10
    assert figures.requests <= 3
    assert figures.wait <= 8


def test_everything_comes_though_requests_and_repairs_are_lost_too(record_property: Record) -> None:
    figures = after_adaptation(Group(range(1, 51), star, seed=1, drop=0.3), everybody, warm_up=20, losses=30)
    record_property("30 % of requests and repairs lost", str(figures))
    assert figures.requests <= 10
    assert figures.repairs <= 10


def test_the_same_seed_gives_the_same_figures() -> None:
    first, second = (after_adaptation(Group(range(1, 21), line, seed=7), everybody, 5, 5) for _ in range(2))
    assert first == second
