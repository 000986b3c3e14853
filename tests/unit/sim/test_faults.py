from __future__ import annotations

from random import Random

import pytest

from intergroup_core.errors import ConfigError
from intergroup_core.sim.faults import FAULT_NAMES, Crash, Fault, Partition, plan_faults

DURATION = 10_000_000_000


def a_plan(*names: str, seed: int = 1) -> tuple[Fault, ...]:
    return plan_faults(names, members=5, duration_ns=DURATION, rng=Random(seed))


@pytest.mark.parametrize("name", FAULT_NAMES)
@pytest.mark.parametrize("seed", range(5))
def test_every_fault_lies_inside_the_run_and_ends(name: str, seed: int) -> None:
    for fault in a_plan(name, seed=seed):
        assert 0 < fault.at < DURATION
        assert fault.at < getattr(fault, "until", DURATION) <= DURATION
        assert 0 <= getattr(fault, "member", 0) < 5


def test_the_same_seed_gives_the_same_plan() -> None:
    assert a_plan(*FAULT_NAMES) == a_plan(*FAULT_NAMES)
    assert a_plan(*FAULT_NAMES) != a_plan(*FAULT_NAMES, seed=2)


def test_only_one_member_crashes() -> None:
    assert [type(fault) for fault in a_plan("crash")] == [Crash]


def test_an_unknown_fault_is_named_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="'fire'; there are crash, partition"):
        a_plan("fire")


def test_a_partition_cuts_both_ways_unless_one_way() -> None:
    sides = {"side": frozenset({0}), "other": frozenset({1, 2})}
    assert Partition(at=1, until=2, **sides).links() == {(0, 1), (0, 2), (1, 0), (2, 0)}
    assert Partition(at=1, until=2, one_way=True, **sides).links() == {(0, 1), (0, 2)}
