"""The fuzzer's own promises: it counts, it names what failed, it says how to see it again."""

from __future__ import annotations

import pytest

from intergroup_core.endpoint import Endpoint
from intergroup_core.sim.faults import FAULT_NAMES
from intergroup_core.sim.fuzz import LARGE, Tally, live_scenario, mixed_scenario, run_scenarios, wild_scenario
from intergroup_core.sim.live_plan import LIVE_FAULT_NAMES
from intergroup_core.sim.mutations import planted
from intergroup_core.sim.outcome import TOTALS
from intergroup_core.sim.scenario import Scenario

SHORT = Scenario(seed=3, loss=0.2, duration=1, fixed=True)
LIVE = Scenario(seed=3, duration=8, faults=("restart",))


def test_runs_are_added_up() -> None:
    tally = Tally()
    tally.add(run_scenarios([SHORT]))
    tally.add(run_scenarios([SHORT]))
    assert tally.runs == 2
    assert tally.sent == 2 * tally.least_sent > 0
    assert tally.failures == []
    assert tally.totals["repairs"] > 0


def test_what_membership_went_through_is_added_up() -> None:
    tally = Tally()
    tally.add(run_scenarios([LIVE]))
    tally.add(run_scenarios([LIVE]))
    assert tally.views > 2
    assert len(tally.settling_ns) == 2
    shown = tally.membership()
    assert "steps:" in shown
    assert ">sender: installed" in shown


def test_a_failure_comes_with_the_command_that_replays_it() -> None:
    with planted("gap_is_ignored"):
        tally = run_scenarios([SHORT])
    (failure,) = tally.failures
    command, *shown = failure.splitlines()
    assert command == SHORT.command() == "intergroup sim --seed 3 --loss 0.2 --duration 1 --fixed"
    assert any("21 delivery liveness" in line for line in shown)


def test_a_run_that_raises_is_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fall_over(*_: object) -> None:
        raise RuntimeError("out of ideas")

    monkeypatch.setattr(Endpoint, "tick", fall_over)
    (failure,) = run_scenarios([SHORT]).failures
    assert failure.startswith(SHORT.command())
    assert "RuntimeError: out of ideas" in failure


def test_what_never_happened_is_named() -> None:
    assert Tally().missing() == list(TOTALS)


def test_seeds_cover_every_kind_of_scenario() -> None:
    mixed = [mixed_scenario(seed) for seed in range(100)]
    assert {scenario.delivery for scenario in mixed} == {"mixed", "rto"}
    wild = [wild_scenario(seed) for seed in range(100)]
    assert {scenario.preset for scenario in wild} == {"test", "lan", "wan"}
    assert {scenario.delivery for scenario in wild} == {"mixed", "uu", "rso", "rto"}
    assert {fault for scenario in wild for fault in scenario.faults} == set(FAULT_NAMES)


def test_live_seeds_cover_every_fault_and_size() -> None:
    live = [live_scenario(seed) for seed in range(500)]
    assert {fault for scenario in live for fault in scenario.faults} == set(LIVE_FAULT_NAMES)
    sizes = {(scenario.members, scenario.receivers) for scenario in live}
    assert set(LARGE) | {(2, 0), (3, 1), (4, 3)} <= sizes
    assert max(scenario.loss for scenario in live) > 0.25
