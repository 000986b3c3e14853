"""One agent at a site."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from intergroup_core.client.lock import SiteLock
from intergroup_core.errors import ConfigError

HOLD = """
import sys
from pathlib import Path
from intergroup_core.client.lock import SiteLock
lock = SiteLock(Path(sys.argv[1]))
assert lock.take()
lock.sign()
print("held", flush=True)
sys.stdin.read()
"""


def test_only_one_has_it(tmp_path: Path) -> None:
    first, second = SiteLock(tmp_path / "lock"), SiteLock(tmp_path / "lock")
    assert first.take()
    assert first.take()
    assert not second.take()
    first.release()
    assert second.take()


def test_it_goes_with_a_process_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        mine = SiteLock(path)
        assert not mine.take()
        assert mine.holder() == holder.pid
        holder.kill()
        holder.wait()
        assert mine.take()


def test_who_holds_it_is_told_and_nonsense_is_nobody(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with SiteLock(path) as lock:
        assert lock.held
        lock.sign()
        assert SiteLock(path).holder() == os.getpid()
    assert not lock.held
    path.write_text("somebody\n")
    assert SiteLock(path).holder() is None
    assert SiteLock(tmp_path / "none").holder() is None


def test_a_place_where_nothing_can_be_locked_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot lock"):
        SiteLock(tmp_path / "missing" / "lock").take()
