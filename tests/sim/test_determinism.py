"""The same seed gives the same trace, byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from intergroup_core.sim.faults import FAULT_NAMES
from intergroup_core.sim.outcome import play
from intergroup_core.sim.scenario import Scenario

FIXED = Scenario(seed=5, loss=0.1, dup=0.05, reorder=0.05, corrupt=0.01, duration=2, faults=FAULT_NAMES, fixed=True)
LIVE = Scenario(
    seed=5, loss=0.1, dup=0.05, reorder=0.05, corrupt=0.01, duration=6, faults=("crash", "partition", "restart", "join")
)
BUSY = pytest.mark.parametrize("busy", [FIXED, LIVE], ids=["fixed", "live"])


@BUSY
def test_a_seed_gives_the_same_bytes_again(busy: Scenario) -> None:
    first, second = play(busy)[1].to_bytes(), play(busy)[1].to_bytes()
    assert first == second


def test_another_seed_gives_other_bytes() -> None:
    assert play(Scenario(seed=1, duration=1))[0].digest != play(Scenario(seed=2, duration=1))[0].digest


@BUSY
def test_a_seed_gives_the_same_trace_in_another_process_with_another_hash_seed(busy: Scenario) -> None:
    script = "from intergroup_core.cli.main import main; main()"
    command = [sys.executable, "-c", script, *busy.command().split()[1:], "--json"]
    outputs = []
    for hash_seed in ("1", "2"):
        ran = subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
        )
        outputs.append(json.loads(ran.stdout))
    assert outputs[0] == outputs[1]
    assert outputs[0]["trace_digest"] == play(busy)[0].digest
