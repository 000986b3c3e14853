"""The same seed gives the same trace, byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache

import pytest

from intergroup_core.endpoint import Endpoint
from intergroup_core.sim.faults import FAULT_NAMES
from intergroup_core.sim.fuzz import live_scenario
from intergroup_core.sim.outcome import Outcome, play
from intergroup_core.sim.scenario import Scenario
from intergroup_core.sim.trace import Trace

FIXED = Scenario(seed=5, loss=0.1, dup=0.05, reorder=0.05, corrupt=0.01, duration=1.5, faults=FAULT_NAMES, fixed=True)
LIVE = Scenario(
    seed=5, loss=0.1, dup=0.05, reorder=0.05, corrupt=0.01, duration=4, faults=("crash", "partition", "restart", "join")
)
BUSY = pytest.mark.parametrize("busy", [FIXED, LIVE], ids=["fixed", "live"])


@cache
def played(busy: Scenario) -> tuple[Outcome, Trace]:
    return play(busy)


@BUSY
def test_a_seed_gives_the_same_bytes_again(busy: Scenario) -> None:
    assert played(busy)[1].to_bytes() == play(busy)[1].to_bytes()


@pytest.mark.parametrize("seed", [1013, 1019, 1058])
def test_what_goes_early_is_what_would_have_gone_later(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a quorum, with much that waits, with views that change."""
    scenario = live_scenario(seed)
    early = play(scenario)[0].to_json()
    monkeypatch.setattr(Endpoint, "hasten", lambda self, carry_out: None)
    assert play(scenario)[0].to_json() == early


def test_another_seed_gives_other_bytes() -> None:
    assert play(Scenario(seed=1, duration=1))[0].digest != play(Scenario(seed=2, duration=1))[0].digest


@BUSY
def test_a_seed_gives_the_same_trace_in_another_process_with_another_hash_seed(busy: Scenario) -> None:
    script = "from intergroup_core.cli.main import main; main()"
    command = [sys.executable, "-c", script, *busy.command().split()[1:], "--json"]
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    ran = subprocess.run(
        command, env=os.environ | {"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout) == json.loads(json.dumps(played(busy)[0].to_json()))
