from __future__ import annotations

from random import Random
from typing import Any

import pytest

from intergroup_core.config import SendConfig
from intergroup_core.delivery.flow import Pacer
from tests.builders import millis

SECOND = 10**9
QUIET = {"bandwidth_start": 1e6, "bandwidth_min": 1e5, "bandwidth_max": 1e6, "bandwidth_cut": 0.5}
"""A bandwidth that quiet time does not raise."""


def a_pacer(seed: int = 1, **settings: Any) -> Pacer:
    return Pacer(SendConfig(**QUIET | settings), Random(seed))


def test_a_burst_is_paid_for_before_the_next_one() -> None:
    for seed in range(50):
        pacer = a_pacer(seed)
        pacer.spend(100_000, now=SECOND)
        paid = pacer.ready_at - (SECOND - Pacer.SLACK_NS)
        assert millis(50) <= paid <= millis(150), "RTCP: a half to one and a half of the interval"


def test_over_many_bursts_the_bandwidth_is_what_was_set() -> None:
    pacer, now, sent = a_pacer(), SECOND, 0
    while now < 11 * SECOND:
        pacer.spend(10_000, now)
        sent += 10_000
        now = max(now, pacer.ready_at)
    assert sent / 10 == pytest.approx(1e6, rel=0.05)


def test_a_late_wake_up_is_caught_up_with_and_a_long_silence_is_not() -> None:
    pacer = a_pacer()
    pacer.spend(1_000, now=10 * SECOND)
    assert pacer.ready_at >= 10 * SECOND - Pacer.SLACK_NS
    sent_at_once = 0
    while pacer.ready_at <= 10 * SECOND:
        pacer.spend(1_000, now=10 * SECOND)
        sent_at_once += 1_000
    assert sent_at_once <= 1e6 * (Pacer.SLACK_NS + millis(2)) / SECOND


def test_a_loss_cuts_the_bandwidth_at_most_once_a_round_trip() -> None:
    pacer = a_pacer()
    assert pacer.lost(millis(20), now=SECOND)
    assert pacer.bandwidth == 5e5
    assert not pacer.lost(millis(20), now=SECOND + millis(19))
    assert pacer.bandwidth == 5e5
    assert pacer.lost(millis(20), now=SECOND + millis(20))


def test_where_the_round_trip_is_short_cuts_still_keep_a_distance() -> None:
    pacer = a_pacer()
    assert pacer.lost(1, now=SECOND)
    assert not pacer.lost(1, now=SECOND + Pacer.CUT_NS - 1)
    assert pacer.lost(1, now=SECOND + Pacer.CUT_NS)


def test_losses_do_not_cut_below_the_minimum() -> None:
    pacer = a_pacer(bandwidth_doubling_ms=600_000)
    for cut in range(100):
        pacer.lost(0, now=SECOND + cut * Pacer.CUT_NS)
    assert pacer.bandwidth == pytest.approx(1e5, rel=0.01)


def test_quiet_time_doubles_the_bandwidth_up_to_the_maximum() -> None:
    pacer = a_pacer(bandwidth_max=8e6, bandwidth_doubling_ms=100)
    pacer.spend(1, now=SECOND)
    pacer.spend(1, now=SECOND + millis(100))
    assert pacer.bandwidth == pytest.approx(2e6)
    pacer.spend(1, now=SECOND + millis(150))
    assert pacer.bandwidth == pytest.approx(2e6 * 2**0.5)
    pacer.spend(1, now=60 * SECOND)
    assert pacer.bandwidth == 8e6


def test_after_a_cut_quiet_time_raises_it_again() -> None:
    pacer = a_pacer(bandwidth_doubling_ms=100)
    pacer.spend(1, now=SECOND)
    pacer.lost(0, now=SECOND)
    assert pacer.bandwidth == 5e5
    pacer.spend(1, now=SECOND + millis(50))
    assert 5e5 < pacer.bandwidth < 1e6
    pacer.spend(1, now=SECOND + millis(100))
    assert pacer.bandwidth == pytest.approx(1e6)


def test_a_cut_slows_what_follows() -> None:
    fast, slow = a_pacer(bandwidth_doubling_ms=600_000), a_pacer(bandwidth_doubling_ms=600_000)
    slow.lost(0, now=SECOND)
    fast.spend(100_000, SECOND)
    slow.spend(100_000, SECOND)
    start = SECOND - Pacer.SLACK_NS
    assert slow.ready_at - start == pytest.approx(2 * (fast.ready_at - start), rel=0.01)
