"""Where the sites of a story are: all on loopback, or each on a host of its own, so that they can be parted."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from intergroup_core.api.blocking import BlockingMember
from intergroup_core.benchmarks.testbed import why_no_namespaces
from intergroup_core.client.directories import site_directories
from tests.integration.agents import opened, until
from tests.integration.groups import loopback
from tests.integration.host_members import agent_on, joined_on_host
from tests.integration.hosts import WITHOUT_FILTER, Hosts, hosts
from tests.integration.processes import INTERGROUP
from tests.integration.sites import Sites, stop_agent

NO_HOSTS = why_no_namespaces() or WITHOUT_FILTER
"""Why sites cannot be parted here, if they cannot."""


class Loopback:
    """All sites on one host."""

    interface = "lo"

    def __init__(self, there: Sites) -> None:
        self._there = there

    def home(self, name: str) -> Path:
        return self._there.home(name)

    def within(self, name: str) -> tuple[str, ...]:
        """The prefix of commands at a site."""
        return ()

    @contextmanager
    def keeper(self, name: str, group: str) -> Iterator[None]:
        """A site that holds a group's log and does nothing else."""
        home = self.home(name)
        command = (INTERGROUP, "agent", "--home", str(home), "--keep", group, "--interface", self.interface)
        with subprocess.Popen((*self.within(name), *command), stderr=subprocess.DEVNULL):
            until(lambda: site_directories(home).socket.exists())
            try:
                yield
            finally:
                stop_agent(home)

    @contextmanager
    def sender(self, name: str, group: str) -> Iterator[BlockingMember]:
        yield opened(group, self.home(name), config=loopback(), sender=True, name=name)

    def part(self, *sides: Sequence[str]) -> None:
        raise NotImplementedError("sites on one host cannot be parted")

    def join(self) -> None:
        raise NotImplementedError("sites on one host are never parted")


class OnHosts(Loopback):
    """Each of the named sites on a host of its own."""

    interface = "e0"

    def __init__(self, there: Sites, testbed: Hosts, names: Sequence[str]) -> None:
        super().__init__(there)
        self._testbed = testbed
        self._numbers = {name: number for number, name in enumerate(names)}

    def within(self, name: str) -> tuple[str, ...]:
        return self._testbed.within(self._numbers[name])

    @contextmanager
    def sender(self, name: str, group: str) -> Iterator[BlockingMember]:
        with agent_on(self._testbed, self._numbers[name], self.home(name)):
            yield joined_on_host(group, self.home(name), name=name)

    def part(self, *sides: Sequence[str]) -> None:
        self._testbed.part(*([self._numbers[name] for name in side] for side in sides))

    def join(self) -> None:
        self._testbed.join()


@contextmanager
def on_hosts(there: Sites, names: Sequence[str]) -> Iterator[OnHosts]:
    with hosts(len(names)) as testbed:
        yield OnHosts(there, testbed, names)
