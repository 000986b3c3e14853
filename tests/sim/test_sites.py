"""Hierarchies in virtual time: in all kinds of trouble stability stays true, and in peace they come to rest."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from intergroup_core.cli.main import app
from intergroup_core.errors import ConfigError
from intergroup_core.sim.hierarchy_figures import measure, table
from intergroup_core.sim.hierarchy_fuzz import troubled_scenario
from intergroup_core.sim.hierarchy_mutations import HIERARCHY_PLANTINGS
from intergroup_core.sim.hierarchy_outcome import play
from intergroup_core.sim.hierarchy_scenario import HierarchyScenario
from intergroup_core.sim.mutations import planted
from intergroup_core.sim.upheavals import MAKERS

STORIES = [
    # A move whose goal leaves, sites of full coordinators, coordinators that fail with their heirs.
    HierarchyScenario(sites=20, seed=6, duration=8.0, faults=("leave", "partition"), preset="test", at_once=True),
    HierarchyScenario(sites=24, seed=106, duration=6.0, faults=("coordinators", "hold", "third"), preset="test"),
    HierarchyScenario(sites=20, seed=3, duration=8.0, loss=0.3, faults=("coordinators", "hold"), preset="test"),
    HierarchyScenario(
        sites=16, seed=2, duration=8.0, loss=0.1, dup=0.1, reorder=0.3, groups=6, preset="test",
        faults=("join", "withdraw", "hold"),
    ),
    HierarchyScenario(
        sites=24, seed=5, duration=8.0, preset="test", terrain="scattered", faults=("pause", "moving", "oneway", "hold")
    ),
    HierarchyScenario(sites=16, seed=7, duration=8.0, loss=0.1, faults=tuple(MAKERS), preset="test"),
]  # fmt: skip


@pytest.mark.parametrize("scenario", STORIES, ids=lambda scenario: ",".join(scenario.faults[:3]))
def test_stability_stays_true_in_trouble_and_comes_back_after_it(scenario: HierarchyScenario) -> None:
    outcome = play(scenario)
    assert outcome.violations == (), scenario.command()
    assert outcome.counted == 1.0
    assert outcome.largest_message <= 1_400


@pytest.mark.parametrize("seed", range(1, 5))
def test_random_trouble(seed: int) -> None:
    scenario = troubled_scenario(seed)
    assert play(scenario).violations == (), scenario.command()


def test_a_hundred_sites_in_ten_clusters_are_ten_local_groups_that_know_their_distances() -> None:
    found = measure(100, "clustered")
    assert found["violations"] == []
    assert found["control"]["coordinators"] == 10
    assert found["control"]["messages_per_site_s"] < 2
    assert found["stability_latency_s"]["max"] < 5
    assert found["distance_error"]["p90"] < 0.2
    assert found["settling_after_third_s"] < 90
    *_, line = table(iter([found]))
    assert line.startswith("| clustered | 100 | 10 |")


def sim(*flags: str) -> Result:
    return CliRunner().invoke(app, ["sim", *flags])


def test_the_command_prints_what_control_costs_and_the_same_seed_the_same() -> None:
    flags = ("--sites", "12", "--seed", "4", "--preset", "test", "--duration", "3", "--faults", "crash", "--json")
    ran = sim(*flags)
    assert ran.exit_code == 0
    said = json.loads(ran.stdout)
    assert (said["seed"], said["violations"]) == (4, [])
    assert set(said["control"]) == {
        "sites", "coordinators", "largest_local_group", "messages_per_site_s", "bytes_per_site_s",
    }  # fmt: skip
    assert set(said) >= {"stability_latency_s", "distance_error", "settling_s"}
    assert sim(*flags).stdout == ran.stdout
    assert "violations 0" in sim(*flags[:-1]).stdout


def test_a_violation_exits_with_one_and_says_how_to_see_it_again() -> None:
    flags = ("--sites", "6", "--preset", "test", "--duration", "2", "--faults", "hold")
    with planted("the_most_is_taken_for_the_least", HIERARCHY_PLANTINGS):
        ran = sim(*flags)
    assert ran.exit_code == 1
    assert "replay with: intergroup sim --sites 6 --seed 1 --duration 2.0 --faults hold --preset test" in ran.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--sites", "5", "--loss", "1"), "--loss is 1.0; it must be at least 0 and below 1"),
        (("--sites", "5", "--faults", "fire"), "--faults is fire; it must be made of crash"),
        (("--sites", "-1"), "--sites is -1"),
        (("--sites", "5", "--terrain", "moon"), "--terrain is moon; it must be one of clustered, scattered"),
        (("--sites", "5", "--preset", "moon"), "--preset is moon"),
    ],
)
def test_a_wrong_flag_is_answered_with_what_is_allowed(flags: tuple[str, ...], said: str) -> None:
    ran = sim(*flags)
    assert isinstance(ran.exception, ConfigError)
    assert said in str(ran.exception)
