"""Receivers that executors start at their site's agent: they stay while a worker uses them, and end a while after."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from intergroup_core.client.member import ClientMember
from intergroup_core.config import Config
from intergroup_core.ids import Service
from pyspark_intergroup import receiving
from pyspark_intergroup.receiving import Receivers
from tests.integration.agents import status_of, until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name, loopback
from tests.integration.sites import Sites, sites

LINGER_S = 0.5

WORKER = """
import sys
from intergroup_core.config import Config
from intergroup_core.ids import Service
from pyspark_intergroup import receiving

receiving.LINGER_S = float(sys.argv[1])
config = Config.from_mapping({"network": {"interface": "lo"}})
print(receiving.Receivers.logs(sys.argv[2], Service.RTO, config), flush=True)
sys.stdin.read()
"""
"""A Python worker of Spark's, which reads a slice of a group and is then kept for the next task."""


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


@pytest.fixture
def home(there: Sites, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The executor's site, which tasks find by the environment."""
    monkeypatch.setenv("INTERGROUP_HOME", str(there.home("executor")))
    return there.home("executor")


@contextmanager
def a_worker(group: str, linger_s: float = LINGER_S) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", WORKER, str(linger_s), group]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert worker.stdout is not None
        assert worker.stdout.readline().startswith("/")
        yield worker
    finally:
        worker.kill()
        worker.communicate()


def receivers(home: Path) -> dict[str, dict[str, Any]]:
    return {stream["group"]: stream for stream in status_of(home)["streams"]}


@pytest.mark.parametrize("killed", [True, False])
def test_a_receiver_ends_a_while_after_the_last_worker_that_used_it(there: Sites, home: Path, killed: bool) -> None:
    used, let_go = a_group_name(), a_group_name()
    sender = ClientMember(
        let_go, delivery="rto", sender=True, name=None, config=loopback(), home=there.home("a"), reads=False
    )
    with a_worker(used):
        with a_worker(let_go) as worker:
            assert {group: stream["clients"] for group, stream in receivers(home).items()} == {used: 1, let_go: 1}
            assert receivers(home)[let_go]["readers"] == []  # nothing is held back for it
            until(lambda: receivers(home)[let_go]["state"] == "receiver", lambda: receivers(home))
            if killed:
                worker.kill()
            else:
                worker.communicate()
        until(lambda: let_go not in receivers(home), lambda: receivers(home))
        # The time has passed, and one that is in use is there.
        assert receivers(home)[used]["clients"] == 1
    until(lambda: not receivers(home), lambda: receivers(home))
    sender.close()


def test_a_worker_that_comes_in_time_has_the_receiver_of_the_last_one(home: Path) -> None:
    group = a_group_name()
    with a_worker(group, linger_s=10 * PATIENCE_SECONDS):
        first = receivers(home)[group]["id"]
    until(lambda: receivers(home)[group]["clients"] == 0, lambda: receivers(home))
    with a_worker(group):
        assert (receivers(home)[group]["id"], receivers(home)[group]["clients"]) == (first, 1)


def test_a_receiver_lingers_as_long_as_the_options_say_where_that_is_longer(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = a_group_name(), a_group_name()
    monkeypatch.setattr(receiving, "LINGER_S", 0.0)
    config = Config.from_mapping(loopback().to_mapping() | {"agent": {"linger_s": PATIENCE_SECONDS * 10}})
    for group, asked in ((long, config), (short, loopback())):
        assert Receivers.logs(group, Service.RTO, asked) is not None
        Receivers._forget(group, Service.RTO)
    until(lambda: short not in receivers(home), lambda: receivers(home))
    assert receivers(home)[long]["clients"] == 0
