"""Figure 2.2: the interval between control messages."""

from __future__ import annotations

from random import Random

import pytest

from intergroup_core.hierarchy.interval import Interval
from tests.hierarchy_builders import MS, a_hierarchy_config


def an_interval(**settings: float) -> Interval:
    return Interval(a_hierarchy_config(**settings), Random(1))


def test_an_idle_site_speaks_once_in_the_least_interval_spread_by_a_half() -> None:
    interval = an_interval(interval_ms=200.0)
    waits = [interval.after(100, 2) for _ in range(200)]
    assert min(waits) >= 100 * MS
    assert max(waits) <= 300 * MS
    assert max(waits) - min(waits) > 150 * MS


def test_many_members_or_large_messages_make_it_longer_as_the_bandwidth_says() -> None:
    interval = an_interval(bandwidth=10_000.0, interval_ms=100.0)
    for _ in range(200):
        interval.after(500, 100)
    assert interval.mean_ns == pytest.approx(5_000 * MS, rel=0.01)


def test_the_average_follows_a_sixteenth_of_every_size() -> None:
    interval = an_interval(bandwidth=1_000.0, interval_ms=1.0, busy_ms=1.0)
    interval.after(128 + 160, 1)
    assert interval.mean_ns == pytest.approx(138 * MS)


def test_the_first_message_comes_in_half_the_time() -> None:
    assert all(an_interval(interval_ms=200.0).first() <= 150 * MS for _ in range(50))


def test_while_data_flows_it_is_shorter_but_the_bandwidth_holds() -> None:
    interval = an_interval(interval_ms=200.0, busy_ms=10.0, bandwidth=1e6)
    interval.after(100, 2)
    assert interval.shortest() <= 15 * MS
    narrow = an_interval(interval_ms=200.0, busy_ms=10.0, bandwidth=1_280.0)
    narrow.after(128, 10)
    assert narrow.shortest() >= 500 * MS
