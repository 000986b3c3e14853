"""Five hundred seeds of groups whose members come, go, fail and return: no property is ever violated."""

from __future__ import annotations

import os

import pytest

from intergroup_core.sim.cluster import SECOND
from intergroup_core.sim.fuzz import LIVE_MESSAGES, Tally, live_scenario, run_parallel

SEEDS = range(1, 501)
LEAST_VIRTUAL_NS = 20 * SECOND
MUST_HAPPEN = (
    "bootstrap>consensus", "bootstrap>receiver", "receiver>to sender", "to sender>sender", "sender>to receiver",
    "to receiver>receiver", "sender>consensus", "consensus>gather cut", "gather cut>gather recovery",
    "gather recovery>recovery", "recovery>", "gather ready>", "wait for change>sender", "receiver>receiver wait",
    "receiver wait>receiver recovery", "receiver recovery>receiver", "receiver>left",
)  # fmt: skip
"""Ways through the states without which the set would have tried little."""


def test_no_seed_violates_a_property(record_property: pytest.RecordProperty) -> None:
    tally = Tally()
    for part in run_parallel([live_scenario(seed) for seed in SEEDS], jobs=os.cpu_count() or 1):
        tally.add(part)
    record_property("totals", str(tally))
    record_property("membership", tally.membership())
    assert not tally.failures, "\n".join(tally.failures)
    assert tally.runs == len(SEEDS)
    assert tally.least_sent >= LIVE_MESSAGES
    assert tally.least_virtual_ns >= LEAST_VIRTUAL_NS
    assert [way for way in MUST_HAPPEN if not any(key.startswith(way) for key in tally.transitions)] == []
    assert tally.restarts
    assert tally.gaps
