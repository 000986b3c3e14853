"""Every bug planted in the production code is caught by a checker; without it the same runs are clean."""

from __future__ import annotations

from functools import cache

import pytest

from intergroup_core.ids import Service
from intergroup_core.sim.checkers import Violation, check
from intergroup_core.sim.cluster import MILLISECOND, SECOND, SimCluster
from intergroup_core.sim.mutations import PLANTINGS, planted
from intergroup_core.sim.network import Conditions
from intergroup_core.sim.workload import Workload
from tests.sizes import sized

SEEDS = range(1, sized(3, 8) + 1)
SERVICES = (Service.RTO, Service.RSO, Service.UU, Service.RTO, Service.RSO)
DURATION_NS = 2 * SECOND
LOOKS = 4
"""Most bugs show long before the end."""
QUIET_NS = 3 * SECOND


def a_troubled_cluster(seed: int) -> SimCluster:
    """Loss, damage, late and double datagrams, coarse clocks and senders in step: all the bugs' favourite weather."""
    return SimCluster(
        seed=seed,
        senders=3,
        receivers=2,
        services=SERVICES[seed % 5 :] + SERVICES[: seed % 5],
        conditions=Conditions(
            loss=0.2, duplicate=0.05, reorder=0.05, corrupt=0.03, jitter_ns=2 * MILLISECOND, coalesce=0.8
        ),
        workload=Workload(rate=60, large=0.1, answer=0.05, step_ns=20 * MILLISECOND),
        skew_ns=0 if seed % 2 else 40 * MILLISECOND,
        resolution_ns=16 * MILLISECOND,
        wake_ns=MILLISECOND,
        quiet_limit_ns=QUIET_NS,
    )


def violations_of(seed: int) -> list[Violation]:
    """What a run breaks; whether it comes to rest is asked only where nothing is broken before."""
    cluster = a_troubled_cluster(seed)
    cluster.start()
    for _ in range(LOOKS):
        cluster.run_for(DURATION_NS // LOOKS)
        if broken := check(cluster.trace):
            return broken
    cluster.settle()
    return check(cluster.trace)


def test_there_are_at_least_twenty_bugs() -> None:
    assert len(PLANTINGS) >= 20


@pytest.mark.parametrize("seed", SEEDS)
def test_without_a_bug_nothing_is_violated(seed: int) -> None:
    assert violations_of(seed) == []


@cache
def caught(name: str) -> tuple[int, str] | None:
    for seed in SEEDS:
        with planted(name):
            violations = violations_of(seed)
        if violations:
            return seed, ", ".join(violation.property for violation in violations)
    return None


@pytest.mark.parametrize("name", PLANTINGS)
def test_a_planted_bug_is_caught(name: str, record_property: pytest.RecordProperty) -> None:
    found = caught(name)
    assert found is not None, f"no checker saw {name} in seeds {SEEDS}"
    record_property("caught", f"seed {found[0]}: {found[1]}")
