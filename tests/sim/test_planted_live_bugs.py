"""Every bug planted in live membership is caught by a checker; without it the same runs are clean."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from intergroup_core.config import Config
from intergroup_core.ids import Service
from intergroup_core.sim.checkers import check
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.faults import Crash, Leave, Lossy, Restart, Split
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from intergroup_core.sim.live_mutations import LIVE_PLANTINGS
from intergroup_core.sim.mutations import planted
from intergroup_core.sim.network import Conditions
from intergroup_core.sim.workload import Workload

SEEDS = range(1, 6)
DURATION_NS = 9 * SECOND
SERVICES = (Service.RTO, Service.RSO, Service.RTO, Service.UU, Service.RTO)


def a_restless_cluster(seed: int) -> LiveCluster:
    """A crash, a return, a departure, a newcomer, a partition and its merge, a one-way link: in nine seconds."""
    services = SERVICES[seed % 5 :] + SERVICES[: seed % 5]
    seats = [Seat(name=f"s{index}", service=services[index]) for index in range(3)]
    seats += [
        Seat(name="r3", service=(Service.RTO, Service.RSO)[seed % 2], sender=False),
        Seat(name="late", service=services[4], joins_at=3 * SECOND),
    ]
    here, there = frozenset({seed % 3, 3}), frozenset({(seed + 1) % 3, (seed + 2) % 3, 4})
    victim = (seed + 1) % 3
    return LiveCluster(
        seed=seed,
        seats=seats,
        config=Config.test(),
        conditions=Conditions(loss=0.08, duplicate=0.02, reorder=0.02, jitter_ns=2 * MILLISECOND, coalesce=0.8),
        workload=Workload(rate=25, large=0.05, answer=0.05),
        faults=[
            Lossy(at=1_700 * MILLISECOND, until=2_500 * MILLISECOND, links=frozenset({(victim, seed % 3)}), loss=1.0),
            Crash(at=2 * SECOND, member=victim),
            Restart(at=3_500 * MILLISECOND, member=victim),
            Split(at=5 * SECOND, until=7 * SECOND, parts=(here, there)),
            Lossy(at=7_500 * MILLISECOND, until=8_500 * MILLISECOND, links=frozenset({(0, 1)}), loss=1.0),
            Leave(at=8 * SECOND, member=2),
        ],
        quiet_limit_ns=8 * SECOND,
    )


def a_cluster_with_a_receiver_ahead(seed: int) -> LiveCluster:
    """Only the receiver hears, and delivers, what one sender says before it crashes."""
    seats = [Seat(name="dies"), Seat(name="stays"), Seat(name="r2", sender=False)]
    deaf = frozenset({(0, 1), (2, 1)})
    return LiveCluster(
        seed=seed,
        seats=seats,
        workload=Workload(rate=40),
        faults=[
            Lossy(at=3 * SECOND, until=3_500 * MILLISECOND, links=deaf, loss=1.0),
            Crash(at=3_400 * MILLISECOND, member=0),
        ],
        quiet_limit_ns=8 * SECOND,
    )


def a_cluster_that_is_left(seed: int) -> LiveCluster:
    """A sender goes while it has much to say."""
    leave = Leave(at=2 * SECOND, member=1)
    return LiveCluster(
        seed=seed, senders=3, receivers=1, workload=Workload(rate=100), faults=[leave], quiet_limit_ns=8 * SECOND
    )


CLUSTERS = (
    (a_cluster_with_a_receiver_ahead, 1),
    (a_cluster_that_is_left, 1),
    *((a_restless_cluster, seed) for seed in SEEDS),
)


def broken_by(make: Callable[[int], LiveCluster], seed: int) -> str | None:
    """The properties that a run breaks, or how it fell over."""
    cluster = make(seed)
    try:
        cluster.run_for(DURATION_NS)
        cluster.settle()
    except (AssertionError, LookupError) as error:
        return f"an assertion: {error!r:.60}"
    return ", ".join(violation.property for violation in check(cluster.trace)) or None


def test_there_are_at_least_ten_bugs() -> None:
    assert len(LIVE_PLANTINGS) >= 10


@pytest.mark.parametrize(("make", "seed"), CLUSTERS)
def test_without_a_bug_nothing_is_violated(make: Callable[[int], LiveCluster], seed: int) -> None:
    assert broken_by(make, seed) is None


def test_a_receiver_ahead_of_the_cut_is_among_them() -> None:
    cluster = a_cluster_with_a_receiver_ahead(1)
    cluster.run_for(DURATION_NS)
    assert cluster[2].gaps


@cache
def caught(name: str) -> str | None:
    for make, seed in CLUSTERS:
        with planted(name, LIVE_PLANTINGS):
            found = broken_by(make, seed)
        if found:
            return f"{make.__name__} {seed}: {found}"
    return None


@pytest.mark.parametrize("name", LIVE_PLANTINGS)
def test_a_planted_bug_is_caught(name: str, record_property: pytest.RecordProperty) -> None:
    found = caught(name)
    assert found is not None, f"no checker saw {name}"
    record_property("caught", found)
