"""The same seed gives the same trace, byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from intergroup_core.sim.outcome import play
from intergroup_core.sim.scenario import Scenario

BUSY = Scenario(
    seed=5,
    loss=0.1,
    dup=0.05,
    reorder=0.05,
    corrupt=0.01,
    duration=2,
    faults=("crash", "partition", "oneway", "pause", "slow", "congestion", "clock"),
)


def test_a_seed_gives_the_same_bytes_again() -> None:
    first, second = play(BUSY)[1].to_bytes(), play(BUSY)[1].to_bytes()
    assert first == second


def test_another_seed_gives_other_bytes() -> None:
    assert play(Scenario(seed=1, duration=1))[0].digest != play(Scenario(seed=2, duration=1))[0].digest


def test_a_seed_gives_the_same_trace_in_another_process_with_another_hash_seed() -> None:
    script = "from intergroup_core.cli.main import main; main()"
    command = [sys.executable, "-c", script, *BUSY.command().split()[1:], "--json"]
    outputs = []
    for hash_seed in ("1", "2"):
        ran = subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
        )
        outputs.append(json.loads(ran.stdout))
    assert outputs[0] == outputs[1]
    assert outputs[0]["trace_digest"] == play(BUSY)[0].digest
