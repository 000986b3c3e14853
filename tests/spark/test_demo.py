"""The demonstration as people run it: once, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

SECONDS = 300


@pytest.mark.usefixtures("java")
def test_the_demo_verifies_what_it_shows() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "from intergroup_core.cli.main import main; main()", "demo"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-4_000:] + ended.stderr[-4_000:]
    lines = ended.stdout.splitlines()
    assert any(line.startswith("SIGKILL to the agent of lima") for line in lines)
    assert any(line.startswith("    view  oslo, paris, tokyo") for line in lines)
    assert any(line.startswith("verified: all ") for line in lines)
    assert ended.stderr == ""
