"""Two hundred seeds of mixed loss, duplication and reordering: no property is ever violated."""

from __future__ import annotations

import os

import pytest

from intergroup_core.sim.cluster import SECOND
from intergroup_core.sim.fuzz import WORST_LOSS, Tally, mixed_scenario, run_parallel
from intergroup_core.sim.outcome import TOTALS

SEEDS = range(1, 201)
LEAST_MESSAGES = 1_000
LEAST_VIRTUAL_NS = 10 * SECOND


def test_no_seed_violates_a_property(record_property: pytest.RecordProperty) -> None:
    scenarios = [mixed_scenario(seed) for seed in SEEDS]
    assert max(scenario.loss for scenario in scenarios) > 0.9 * WORST_LOSS
    assert all(scenario.members + scenario.receivers == 5 for scenario in scenarios)
    tally = Tally()
    for part in run_parallel(scenarios, jobs=os.cpu_count() or 1):
        tally.add(part)
    record_property("totals", str(tally))
    assert not tally.failures, "\n".join(tally.failures)
    assert tally.runs == len(SEEDS)
    assert tally.least_sent >= LEAST_MESSAGES
    assert tally.least_virtual_ns >= LEAST_VIRTUAL_NS
    assert {name: tally.totals[name] for name in TOTALS if not tally.totals[name]} == {}
