"""Five hundred seeds of groups whose members come, go, fail and return: no property is ever violated."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from typing import Any

import pytest

from intergroup_core.membership.transitions import NAMES
from intergroup_core.sim.cluster import SECOND
from intergroup_core.sim.fuzz import LIVE_MESSAGES, Tally, live_scenario, run_parallel
from intergroup_core.sim.live_cluster import LiveCluster
from intergroup_core.sim.scenario import Scenario
from tests.sim import test_live_adversary as adversary
from tests.sim.live_stories import MakeLive
from tests.sizes import sized

SEEDS = range(1, 501)
LEAST_VIRTUAL_NS = 20 * SECOND
BY_SCENARIO = {
    "bootstrap>left": adversary.test_one_that_finds_nobody_is_told_to_go,
    "receiver>sender": adversary.test_a_second_add_of_one_that_came_and_went,
    "to sender>receiver recovery": adversary.test_one_that_is_about_to_send_hears_only_the_end_of_a_repair,
    "to sender>bootstrap": adversary.test_one_that_is_about_to_send_hears_only_the_end_of_a_repair,
    "to sender>left": adversary.test_one_that_wants_nothing_any_more_goes_before_it_is_added,
    "to receiver>sender": adversary.test_the_last_of_two_that_go_silent_together_stays,
    "receiver recovery>left": adversary.test_a_receiver_leaves_while_it_follows_a_change,
    "recovery>consensus": adversary.test_only_one_survivor_has_what_a_dead_sender_said_last,
    "repair>sender": adversary.test_one_that_began_a_repair_anew_learns_late_how_the_last_one_ended,
    "repair>receiver": adversary.test_one_that_was_about_to_leave_learns_late_that_it_has,
}
"""Steps that random seeds need not meet, for they take a schedule made on purpose; the scenario asserts each."""


def test_what_seeds_need_not_meet_a_scenario_does() -> None:
    for step, scenario in BY_SCENARIO.items():
        assert step in NAMES
        assert f'"{step}' in inspect.getsource(scenario), f"{scenario.__name__} does not assert {step}"


def add_scenarios(tally: Tally, a_live_cluster: MakeLive) -> None:
    """What the named scenarios go through counts too; each is played, and asserts what it is about."""
    clusters: list[LiveCluster] = []

    def noted(**settings: Any) -> LiveCluster:
        clusters.append(a_live_cluster(**settings))
        return clusters[-1]

    for scenario in set(BY_SCENARIO.values()):
        if "follows" in inspect.signature(scenario).parameters:
            scenario(noted, follows="dies")
            scenario(noted, follows="stays")
        else:
            scenario(noted)
    for cluster in clusters:
        for member in cluster.processes:
            tally.transitions.update(member.endpoint.counters.transitions)


def scenario_of(seed: int) -> Scenario:
    """Of the seeds with control processes, which cost twice as much, every third has them unless there is time."""
    scenario = live_scenario(seed)
    return scenario if seed % sized(3, 1) == 0 else replace(scenario, hierarchy=False)


def test_no_seed_violates_a_property(a_live_cluster: MakeLive, record_property: pytest.RecordProperty) -> None:
    tally = Tally()
    for part in run_parallel([scenario_of(seed) for seed in SEEDS], jobs=os.cpu_count() or 1):
        tally.add(part)
    record_property("not met by the seeds alone", ", ".join(tally.unmet()) or "nothing")
    unmet_by_seeds = set(tally.unmet())
    add_scenarios(tally, a_live_cluster)
    record_property("totals", str(tally))
    record_property("membership", tally.membership())
    assert not tally.failures, "\n".join(tally.failures)
    assert tally.runs == len(SEEDS)
    assert tally.least_sent >= LIVE_MESSAGES
    assert tally.least_virtual_ns >= LEAST_VIRTUAL_NS
    assert unmet_by_seeds <= BY_SCENARIO.keys()
    assert tally.unmet() == []
    assert tally.gaps
