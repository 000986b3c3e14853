"""Sites of tests: directories of their own, whose agents do not outlive the test."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.client.directories import site_directories
from intergroup_core.client.lock import SiteLock
from intergroup_core.errors import AgentUnavailable

STOP_SECONDS = 30.0


class Sites:
    """Homes by any name that a test gives them."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._homes: dict[object, Path] = {}

    def home(self, name: object = "") -> Path:
        if name not in self._homes:
            self._homes[name] = self._parent / str(len(self._homes))
        return self._homes[name]

    def stop_at(self, name: object) -> None:
        """End the agent of one site."""
        stop_agent(self.home(name))

    def stop(self) -> None:
        for home in self._homes.values():
            stop_agent(home)


@contextmanager
def sites() -> Iterator[Sites]:
    # Not pytest's own directory: the path of a socket has to be short.
    parent = Path(tempfile.mkdtemp(prefix="ig-"))
    there = Sites(parent)
    try:
        yield there
    finally:
        there.stop()
        shutil.rmtree(parent)


def stop_agent(home: Path) -> None:
    """End a site's agent, if it has one, and wait until it has gone."""
    if not home.exists():
        return
    lock = site_directories(home).lock
    holder = SiteLock(lock).holder()
    if holder is not None:
        with suppress(ProcessLookupError):
            os.kill(holder, signal.SIGCONT)  # a test may have failed while it stood still
    with suppress(AgentUnavailable), Connection.to_agent(home, start=False) as connection:
        connection.request(Kind.STOP, timeout=STOP_SECONDS)
    if lock.exists():
        with SiteLock(lock):  # an agent holds it as long as it lives
            pass
