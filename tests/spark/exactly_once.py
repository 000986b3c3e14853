"""Kills a query that reads one group and writes another, and whatever it uses, and holds the outcome to what was sent.

python -m tests.spark.exactly_once --first 0 --seeds 20
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

from intergroup_core.client.directories import site_directories
from tests.integration.agents import until
from tests.integration.groups import a_group_name
from tests.integration.processes import INTERGROUP
from tests.integration.sites import Sites, stop_agent
from tests.spark.committed import Committed, committed_in
from tests.spark.drivers import Driver, Job
from tests.spark.numbered import LAST, Numbered, numbered
from tests.spark.restarts import kill_agent
from tests.spark.seeds import play_seeds

VICTIMS = ("driver", "driver and agent", "agent", "worker", "site")
"""`site` is the agent and all that it has on its disk."""
MOST_DELAY_SECONDS = 0.6
"""After a batch was committed, at the latest, something is killed: while the next is read, written or committed."""


@contextmanager
def a_keeper(group: str, home: Path) -> Iterator[None]:
    """A site that holds a group's log and does nothing else."""
    command = (INTERGROUP, "agent", "--home", str(home), "--keep", group, "--interface", "lo")
    with subprocess.Popen(command, stderr=subprocess.DEVNULL):
        until(lambda: site_directories(home).socket.exists())
        try:
            yield
        finally:
            stop_agent(home)


class Pipeline:
    """One seed: two sites that send, a query from their group into another, and two sites that keep that one."""

    def __init__(self, there: Sites, directory: Path, seed: int, victims: Sequence[str] | None = None) -> None:
        self._rng = Random(seed)
        self._source, self._target = a_group_name(), a_group_name()
        self._there = there
        self._seed = seed
        self._home = there.home(f"pipeline {seed}")
        self._keepers = [there.home(f"keeper {number} of {seed}") for number in range(2)]
        self._victims = victims or self._rng.choices(VICTIMS, k=self._rng.randint(2, 4))
        source = {"group": self._source, "interface": "lo", "startingOffsets": "earliest", "minPartitions": "2"}
        source["maxRowsPerTrigger"] = str(self._rng.randint(100, 400))
        self._job = Job(
            directory=directory,
            options=source,
            sink={"group": self._target, "interface": "lo", "ackTimeout": "20s"},
            config={"spark.speculation": "true"} if self._rng.random() < 0.3 else {},
        )

    def run(self) -> str:
        with ExitStack() as stack:
            for home in self._keepers:
                stack.enter_context(a_keeper(self._target, home))
            senders = stack.enter_context(numbered(self._source, [self._there.home("a"), self._there.home("b")]))
            for sender in senders:
                sender.begin()
            driver: Driver | None = None
            try:
                for victim in self._victims:
                    driver = self._kill(self._living(driver), victim)
                self._finish(self._living(driver), senders)
            finally:
                if driver is not None:
                    driver.kill()
            found = committed_in(self._target, self._keepers[0])
            sent = [*(record for sender in senders for record in sender.sent), LAST.decode()]
            check(found, sent)
        return f"{', '.join(self._victims)}: {len(sent)} rows in {len(found.batches)} batches"

    def _living(self, driver: Driver | None) -> Driver:
        """A query that failed because of what was killed is started again, as people do."""
        if driver is not None and not driver.count("ended") and not driver.count("gone"):
            return driver
        if driver is not None:
            driver.kill()
        started = Driver(self._job, self._home)
        started.until("started")
        return started

    def _kill(self, driver: Driver, victim: str) -> Driver | None:
        """Somewhere in a batch; None where the driver is gone."""
        with suppress(AssertionError):  # one that failed is started anew by whoever needs it next
            driver.until("committed", driver.count("committed") + 1)
        threading.Event().wait(self._rng.uniform(0, MOST_DELAY_SECONDS))
        match victim:
            case "driver":
                driver.kill()
                return None
            case "driver and agent":
                driver.kill()
                kill_agent(self._home)
                return None
            case "agent":
                kill_agent(self._home)
            case "site":
                kill_agent(self._home)
                for part in ("logs", "ledgers"):
                    shutil.rmtree(self._home / part, ignore_errors=True)
            case "worker":
                workers = driver.workers()
                if workers:
                    with suppress(ProcessLookupError):
                        os.kill(self._rng.choice(workers), signal.SIGKILL)
        return driver

    def _finish(self, driver: Driver, senders: Sequence[Numbered]) -> None:
        for sender in senders:
            sender.end()
        senders[0].send_last()
        deadline = time.monotonic() + 120
        while LAST.decode() not in committed_in(self._target, self._keepers[1]).rows:
            assert time.monotonic() < deadline, driver.said()
            driver = self._living(driver)
            threading.Event().wait(0.5)
        driver.kill()


def check(found: Committed, sent: Sequence[str]) -> None:
    """The multiset of rows that committed readers get is what was sent; each batch is one transaction."""
    assert Counter(found.rows) == Counter(sent), (
        Counter(found.rows) - Counter(sent),
        Counter(sent) - Counter(found.rows),
    )
    assert len(found.batches) == len(set(found.batches)), found.batches
    assert found.positions == sorted(set(found.positions))


def main(arguments: Sequence[str] | None = None) -> int:
    return play_seeds(
        "tests.spark.exactly_once",
        "Kill queries that write, and what they use.",
        lambda there, directory, seed: Pipeline(there, directory, seed).run(),
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
