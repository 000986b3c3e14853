"""Retransmission requests: the intervals of T3.3, the back-off, the cancellation, figure 3.1's ranges and steps."""

from __future__ import annotations

from random import Random

import pytest

from intergroup_core.config import RepairConfig
from intergroup_core.ids import MemberId
from intergroup_core.multicast.ranges import Span
from intergroup_core.multicast.requests import RequestScheduler
from intergroup_core.ports import ConstantDistance

MS = 1_000_000
T0 = 5_000 * MS
SENDER, OTHER = MemberId(1), MemberId(2)


def a_scheduler(config: RepairConfig, *, distance_ns: int, seed: int = 0) -> RequestScheduler:
    return RequestScheduler(config, ConstantDistance(distance_ns), Random(seed))


def deadline(scheduler: RequestScheduler) -> int:
    at = scheduler.next_deadline()
    assert at is not None
    return at


@pytest.mark.parametrize("distance_ns", [MS, 7 * MS, 50 * MS])
@pytest.mark.parametrize(("low", "high"), [(2, 2), (0.5, 1), (1, 100)])
def test_the_first_timeout_is_uniform_between_low_and_low_plus_high_distances(
    distance_ns: int, low: float, high: float
) -> None:
    config = RepairConfig(request_low=low, request_high=high, give_up_ms=600_000)
    delays = []
    for seed in range(300):
        scheduler = a_scheduler(config, distance_ns=distance_ns, seed=seed)
        scheduler.missing(SENDER, 1, 1, T0)
        delays.append((deadline(scheduler) - T0) / distance_ns)
    assert low <= min(delays) <= low + 0.05 * high
    assert low + 0.95 * high <= max(delays) <= low + high
    assert sum(delays) / len(delays) == pytest.approx(low + high / 2, abs=0.1 * high)


def test_a_distance_below_the_floor_counts_as_the_floor() -> None:
    scheduler = a_scheduler(RepairConfig(distance_floor_us=100), distance_ns=3_000)
    scheduler.missing(SENDER, 1, 1, T0)
    assert T0 + 200_000 <= deadline(scheduler) <= T0 + 400_000


@pytest.mark.parametrize("heard", [True, False])
def test_every_request_sent_or_heard_triples_the_interval(heard: bool) -> None:
    config = RepairConfig(request_low=2, request_high=2, backoff_max_ms=60_000, give_up_ms=600_000)
    for seed in range(50):
        scheduler = a_scheduler(config, distance_ns=10 * MS, seed=seed)
        scheduler.missing(SENDER, 1, 1, T0)
        now = T0
        for attempt in range(4):
            before, now = now, deadline(scheduler)
            # Sending the first request has moved lowReqParam from 2 to 1.95 (figure 3.1).
            assert 3**attempt * 19.5 * MS <= now - before <= 3**attempt * 40 * MS
            if heard:
                scheduler.overheard(OTHER, SENDER, 1, 1, now)
            else:
                assert scheduler.tick(now).spans == [Span(SENDER, 1, 1)]


def test_the_exponent_stops_growing_at_its_limit() -> None:
    config = RepairConfig(request_low=2, request_high=2, backoff_limit=1, backoff_max_ms=60_000, give_up_ms=600_000)
    scheduler = a_scheduler(config, distance_ns=10 * MS)
    scheduler.missing(SENDER, 1, 1, T0)
    for _ in range(10):
        now = deadline(scheduler)
        scheduler.tick(now)
        assert deadline(scheduler) - now <= 3 * 40 * MS


def test_the_message_itself_original_or_repeated_ends_the_request() -> None:
    scheduler = a_scheduler(RepairConfig(), distance_ns=MS)
    scheduler.missing(SENDER, 1, 1, T0)
    scheduler.tick(deadline(scheduler))
    scheduler.arrived(SENDER, 1, 1, T0 + 8 * MS)
    assert scheduler.next_deadline() is None


def test_after_sending_a_request_the_low_parameter_falls_by_a_twentieth() -> None:
    scheduler = a_scheduler(RepairConfig(), distance_ns=MS)
    scheduler.missing(SENDER, 1, 1, T0)
    scheduler.tick(deadline(scheduler))
    assert scheduler.window(SENDER).low == pytest.approx(1.95)


def test_a_member_that_always_asks_alone_ends_at_the_least_interval() -> None:
    scheduler = a_scheduler(RepairConfig(), distance_ns=MS)
    now = T0
    for seq in range(200):
        scheduler.missing(SENDER, seq, seq, now)
        now = deadline(scheduler)
        scheduler.tick(now)
        now += 3 * MS
        scheduler.arrived(SENDER, seq, seq, now)
    assert (scheduler.window(SENDER).low, scheduler.window(SENDER).high) == (0.5, 1.0)


def test_a_member_in_a_crowd_spreads_its_requests_up_to_a_hundred_distances() -> None:
    scheduler = a_scheduler(RepairConfig(), distance_ns=MS)
    now = T0
    for seq in range(400):
        scheduler.missing(SENDER, seq, seq, now)
        for _ in range(5):
            scheduler.overheard(OTHER, SENDER, seq, seq, now + MS)
        scheduler.arrived(SENDER, seq, seq, now + 2 * MS)
        now += 1_000 * MS
    assert scheduler.window(SENDER).high == 100
