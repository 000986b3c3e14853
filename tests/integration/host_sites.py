"""Sites on hosts of a testbed, whose agents are killed, stopped and started again, with their disks or without."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.client.directories import site_directories
from intergroup_core.client.lock import SiteLock
from intergroup_core.errors import IntergroupError
from tests.integration.agents import status_of, until
from tests.integration.groups import PATIENCE_SECONDS
from tests.integration.hosts import Hosts, hosts
from tests.integration.processes import INTERGROUP
from tests.integration.sites import Sites, sites


class HostSites:
    """A site of each name on a host of its own."""

    def __init__(self, testbed: Hosts, there: Sites, names: Sequence[str]) -> None:
        self._testbed = testbed
        self._there = there
        self._numbers = {name: number for number, name in enumerate(names)}
        self._agents: dict[str, subprocess.Popen[bytes]] = {}
        self._parted = False
        self._closed: dict[str, SiteLock] = {}
        """Of sites that have no agent: a client that comes meanwhile would start one that is not on the host."""

    def home(self, name: str) -> Path:
        return self._there.home(name)

    def within(self, name: str) -> tuple[str, ...]:
        return self._testbed.within(self._numbers[name])

    def start(self, *names: str) -> None:
        for name in names:
            command = (*self.within(name), INTERGROUP, "agent", "--home", str(self.home(name)))
            self._agents[name] = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        for name in names:
            until(lambda name=name: _answers(self.home(name)))
            if name in self._closed:
                self._closed.pop(name).release()

    def kill(self, *names: str) -> None:
        for name in names:
            lock = self._closed[name] = SiteLock(site_directories(self.home(name)).starting)
            lock.take(wait=True)
            self.signal(name, signal.SIGKILL)
        for name in names:
            self._agents.pop(name).wait(PATIENCE_SECONDS)

    def lose(self, *names: str) -> None:
        """With their disks: what comes back there is another site."""
        self.kill(*(name for name in names if name in self._agents))
        for name in names:
            directories = site_directories(self.home(name))
            for found in directories.state.iterdir():
                if found.is_dir() and found != directories.runtime:
                    shutil.rmtree(found)
                elif found.is_file():
                    found.unlink()

    def signal(self, name: str, number: signal.Signals) -> None:
        os.kill(self._agents[name].pid, number)

    def restore(self) -> None:
        """All are there and hear each other."""
        self.join()
        self.start(*(name for name in self._numbers if name not in self._agents))

    def until_all_hold(self, group: str) -> None:
        """Until every site knows that all of them hold a group's log."""

        def holders(name: str) -> list[str]:
            streams = status_of(self.home(name))["streams"]
            return [holder for stream in streams if stream["group"] == group for holder in stream["holders"]]

        for name in self._numbers:
            until(lambda name=name: holders(name) == sorted(self._numbers), lambda name=name: holders(name))

    def part(self, *sides: Sequence[str]) -> None:
        """Those on different sides hear nothing of each other; each side after the first has one site."""
        self._parted = True
        self._testbed.part(*([self._numbers[name] for name in side] for side in sides))

    def join(self) -> None:
        if self._parted:
            self._testbed.join()
            self._parted = False

    def close(self) -> None:
        for lock in self._closed.values():
            lock.release()
        self._there.stop()
        for agent in self._agents.values():
            agent.wait(PATIENCE_SECONDS)


def _answers(home: Path) -> bool:
    try:
        with Connection.to_agent(home, start=False) as connection:
            connection.request(Kind.STATUS, timeout=PATIENCE_SECONDS)
    except IntergroupError:
        return False
    return True


@contextmanager
def host_sites(*names: str) -> Iterator[HostSites]:
    """Sites whose agents run."""
    with hosts(len(names)) as testbed, sites() as there:
        made = HostSites(testbed, there, names)
        try:
            made.start(*names)
            yield made
        finally:
            made.close()
