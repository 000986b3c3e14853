"""`intergroup sim` as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from intergroup_core.cli.main import app
from intergroup_core.errors import ConfigError
from intergroup_core.sim.checkers import check
from intergroup_core.sim.fuzz import live_scenario, wild_scenario
from intergroup_core.sim.mutations import planted
from intergroup_core.sim.scenario import Scenario
from intergroup_core.sim.trace import Trace

KEYS = {
    "seed", "members", "sent", "delivered", "views", "dropped", "requests_per_loss", "repairs_per_loss", "latency_ms",
    "control", "buffers_max_bytes", "violations",
}  # fmt: skip


def sim(*flags: str) -> Result:
    return CliRunner().invoke(app, ["sim", *flags])


@pytest.mark.parametrize("membership", [[], ["--fixed"]], ids=["live", "fixed"])
def test_json_has_the_promised_keys(membership: list[str]) -> None:
    flags = ["--seed", "3", "--members", "2", "--receivers", "1", "--loss", "0.1", "--duration", "3"]
    ran = sim(*flags, "--json", *membership)
    assert ran.exit_code == 0
    said = json.loads(ran.stdout)
    assert set(said) >= KEYS
    assert (said["seed"], said["members"], said["violations"]) == (3, 2, [])
    assert said["views"] == 1 if membership else said["views"] >= 1
    assert said["sent"] > 0
    assert said["delivered"] > said["sent"]
    assert said["dropped"] > 0
    assert said["requests_per_loss"] > 0
    assert set(said["latency_ms"]) == {"p50", "p99"}
    assert set(said["control"]) == {
        "sites", "coordinators", "largest_local_group", "messages_per_site_s", "bytes_per_site_s",
    }  # fmt: skip


@pytest.mark.parametrize("membership", [[], ["--fixed"]], ids=["live", "fixed"])
def test_every_fault_named_on_the_command_line_is_played(membership: list[str]) -> None:
    ran = sim("--duration", "4", "--faults", "crash,partition,pause", "--json", *membership)
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["violations"] == []


def test_a_violation_exits_with_one_and_says_how_to_see_it_again() -> None:
    flags = ["--seed", "4", "--loss", "0.2", "--duration", "1", "--delivery", "rto", "--fixed"]
    with planted("silent_sources_are_not_waited_for"):
        ran = sim(*flags, "--json")
    assert ran.exit_code == 1
    said = json.loads(ran.stdout)
    assert {"property", "member", "events"} <= set(said["violations"][0])
    assert "replay with: intergroup sim --seed 4 --delivery rto --loss 0.2 --duration 1.0 --fixed" in ran.stderr


def test_the_trace_that_is_written_is_the_one_that_was_judged(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    assert sim("--duration", "1", "--trace", str(path)).exit_code == 0
    trace = Trace.from_bytes(path.read_bytes())
    assert check(trace) == []
    assert f"trace {trace.digest()}" in sim("--duration", "1").stdout


def test_a_trace_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    ran = sim("--duration", "0.2", "--trace", str(tmp_path / "no" / "such" / "file"))
    assert isinstance(ran.exception, ConfigError)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--loss", "1.5"), "--loss is 1.5; it must be at least 0 and below 1"),
        (("--delivery", "best"), "--delivery is best; it must be one of uu, rso, rto, mixed"),
        (("--faults", "fire"), "--faults is fire; it must be made of crash"),
        (("--fixed", "--faults", "leave"), "--faults is leave; it must be made of crash"),
        (("--members", "0"), "--members is 0"),
        (("--preset", "moon"), "--preset is moon; it must be one of lan, wan, test"),
    ],
)
def test_a_wrong_flag_is_answered_with_what_is_allowed(flags: tuple[str, ...], said: str) -> None:
    ran = sim(*flags)
    assert isinstance(ran.exception, ConfigError)
    assert said in str(ran.exception)


def test_help_has_an_example() -> None:
    assert "Example: intergroup sim --seed 7" in sim("--help").stdout


@pytest.mark.parametrize("make", [wild_scenario, live_scenario])
@pytest.mark.parametrize("seed", range(1, 20))
def test_the_replay_command_says_the_whole_scenario(seed: int, make: Callable[[int], Scenario]) -> None:
    scenario = make(seed)
    said_yes = scenario.command().replace("--fixed", "--fixed yes").replace("--hierarchy", "--hierarchy yes")
    _, _, *words = said_yes.split()
    flags = dict(zip(words[::2], words[1::2], strict=True))
    fields = {name.removeprefix("--"): value for name, value in flags.items()}
    kinds = {name: type(getattr(scenario, name)) for name in fields}
    said = {
        name: tuple(value.split(",")) if kinds[name] is tuple else kinds[name](value) for name, value in fields.items()
    }
    assert Scenario(**said) == scenario


@pytest.mark.parametrize("membership", [[], ["--fixed"]], ids=["live", "fixed"])
@pytest.mark.parametrize("preset", ["lan", "wan"])
def test_other_presets_hold_too(preset: str, membership: list[str]) -> None:
    assert sim("--preset", preset, "--loss", "0.05", "--duration", "3", *membership).exit_code == 0
