"""Retransmission of data: the interval of T3.4, its cancellation, figure 3.2's ranges and steps."""

from __future__ import annotations

from random import Random

import pytest

from intergroup_core.config import RepairConfig
from intergroup_core.ids import MemberId
from intergroup_core.multicast.ranges import Span
from intergroup_core.multicast.repairs import RepairScheduler

MS = 1_000_000
T0 = 5_000 * MS
SENDER, NEAR, FAR = MemberId(1), MemberId(2), MemberId(3)


class Known:
    def to(self, member: MemberId) -> int:
        return {SENDER: 20 * MS, NEAR: 2 * MS, FAR: 40 * MS}[member]


def a_scheduler(config: RepairConfig, *, seed: int = 0) -> RepairScheduler:
    return RepairScheduler(config, Known(), Random(seed), frame_bytes=1_448)


def deadline(scheduler: RepairScheduler) -> int:
    at = scheduler.next_deadline()
    assert at is not None
    return at


@pytest.mark.parametrize("requester", [NEAR, FAR])
@pytest.mark.parametrize(("low", "high"), [(10, 10), (0.5, 1), (1, 100)])
def test_the_timeout_is_uniform_in_distances_to_the_requester(requester: MemberId, low: float, high: float) -> None:
    distance = Known().to(requester)
    delays = []
    for seed in range(300):
        scheduler = a_scheduler(RepairConfig(repair_low=low, repair_high=high), seed=seed)
        scheduler.requested(requester, SENDER, 1, 1, T0)
        delays.append((deadline(scheduler) - T0) / distance)
    assert low <= min(delays) <= low + 0.05 * high
    assert low + 0.95 * high <= max(delays) <= low + high
    assert sum(delays) / len(delays) == pytest.approx(low + high / 2, abs=0.1 * high)


def test_when_the_timer_expires_the_message_is_sent_again() -> None:
    scheduler = a_scheduler(RepairConfig())
    scheduler.requested(NEAR, SENDER, 4, 4, T0)
    assert scheduler.tick(deadline(scheduler)).spans == [Span(SENDER, 4, 4)]
    assert scheduler.next_deadline() is None


def test_a_retransmission_by_another_process_cancels_the_timer() -> None:
    scheduler = a_scheduler(RepairConfig())
    scheduler.requested(NEAR, SENDER, 4, 4, T0)
    scheduler.repaired(SENDER, 4, 4, T0 + MS)
    assert scheduler.next_deadline() is None


def test_after_sending_a_retransmission_the_low_parameter_falls_by_a_twentieth() -> None:
    scheduler = a_scheduler(RepairConfig(repair_low=2))
    scheduler.requested(NEAR, SENDER, 4, 4, T0)
    scheduler.tick(deadline(scheduler))
    assert scheduler.window.low == pytest.approx(1.95)


def test_a_late_cancellation_narrows_the_interval() -> None:
    scheduler = a_scheduler(RepairConfig(repair_low=2, repair_high=5))
    scheduler.requested(NEAR, SENDER, 4, 4, T0)
    scheduler.repaired(SENDER, 4, 4, T0 + 3 * MS)
    assert scheduler.window.high == pytest.approx(4.95)


def test_the_only_holder_ends_at_the_least_interval() -> None:
    scheduler = a_scheduler(RepairConfig(repair_low=10, repair_high=10))
    for seq in range(400):
        scheduler.requested(NEAR, SENDER, seq, seq, T0 + seq * 1_000 * MS)
        scheduler.tick(deadline(scheduler))
    assert (scheduler.window.low, scheduler.window.high) == pytest.approx((0.5, 1.0), abs=0.3)
