"""Sites of their own in a temporary directory, whose agents do not outlive it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.client.directories import site_directories
from intergroup_core.client.lock import SiteLock
from intergroup_core.errors import IntergroupError

STOP_SECONDS = 10.0
"""How long an agent may take to leave its groups before it is killed."""


class LocalSites:
    """Several sites on one machine; at the end of the block their agents are gone, and so are their files."""

    def __init__(self) -> None:
        # Not where TMPDIR says: the path of a socket has to be short.
        self.directory = Path(tempfile.mkdtemp(prefix="intergroup-", dir="/tmp"))
        self._homes: dict[str, Path] = {}

    def home(self, name: str) -> Path:
        """What INTERGROUP_HOME would name; made by the first who uses it."""
        return self._homes.setdefault(name, self.directory / f"site-{len(self._homes)}")

    def kill(self, name: str) -> int:
        """SIGKILL to a site's agent; the process that it was."""
        pid = SiteLock(site_directories(self.home(name)).lock).holder()
        if pid is None:
            raise ProcessLookupError(f"site {name} has no agent")
        os.kill(pid, signal.SIGKILL)
        return pid

    def close(self) -> None:
        with ThreadPoolExecutor(max_workers=max(1, len(self._homes))) as pool:
            list(pool.map(_stop_agent, self._homes.values()))
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _stop_agent(home: Path) -> None:
    """End a site's agent, if it has one, and wait until it has gone."""
    lock = site_directories(home).lock
    if not lock.exists():
        return
    try:
        with Connection.to_agent(home, start=False) as connection:
            connection.request(Kind.STOP, timeout=STOP_SECONDS)
    except (IntergroupError, TimeoutError, OSError):
        _kill_holder(SiteLock(lock))
    with SiteLock(lock):  # an agent holds it as long as it lives
        pass


def _kill_holder(lock: SiteLock) -> None:
    # Only a process that still holds the lock is the one that signed it: the number may be somebody else's by now.
    if lock.take():
        lock.release()
        return
    pid = lock.holder()
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
