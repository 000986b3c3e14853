"""Kills a streaming query, its site's agent and its workers while others send, and holds all its batches to one order.

python -m tests.spark.restarts --first 0 --seeds 20
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from intergroup_core.client.directories import site_directories
from intergroup_core.client.lock import SiteLock
from tests.integration.groups import a_group_name
from tests.integration.seeds import play_seeds
from tests.integration.sites import Sites
from tests.spark.drivers import Driver, Job, Row
from tests.spark.numbered import LAST, Numbered, numbered, read_all, up_to_last
from tests.spark.seeds import of_queries

MOST_BATCHES = 3
"""That a run writes before something is killed."""
MOST_DELAY_SECONDS = 0.5
"""Into a batch, at the latest, that happens."""
GOES_ON = ("agent", "worker")
"""What a driver gets over by itself."""
ENDS = ("driver", "both")


def kill_agent(home: Path) -> None:
    """At once, and until it is gone."""
    holder = SiteLock(site_directories(home).lock).holder()
    if holder is not None:
        with suppress(ProcessLookupError):
            os.kill(holder, signal.SIGKILL)
        with SiteLock(site_directories(home).lock):
            pass


def check_rows(rows: Sequence[Row], group: str, home: Path, senders: Sequence[Numbered], *, earliest: bool) -> int:
    """Hold rows of a query to what was sent, and to what one sees who reads by himself; how many views there were."""
    rows = up_to_last(rows)
    found = [row["value"] for row in rows if row["kind"] == "data"]
    assert len(found) == len(set(found)), [value for value in found if found.count(value) > 1]
    everything = read_all(group, home)
    alone = [row["value"] for row in everything if row["kind"] == "data"]
    assert sorted(alone) == sorted([*(record for sender in senders for record in sender.sent), LAST.decode()])
    positions = [row["position"] for row in rows]
    assert positions == sorted(positions)
    assert not [row for row in rows if row["kind"] == "gap"]
    if earliest:
        assert found == alone, set(alone) - set(found)
    assert rows == everything[-len(rows) :]
    return sum(row["kind"] == "view" for row in rows)


class Restarts:
    """One seed: a query, and two sites that send."""

    def __init__(self, there: Sites, directory: Path, seed: int) -> None:
        self._rng = Random(seed)
        self._group = a_group_name()
        self._home = there.home(f"query {seed}")
        self._senders = [there.home("a"), there.home("b")]
        self._earliest = self._rng.random() < 0.7
        options = {
            "group": self._group,
            "interface": "lo",
            "startingOffsets": "earliest" if self._earliest else "latest",
            "minPartitions": str(self._rng.randint(1, 3)),
        }
        if self._rng.random() < 0.5:
            options["maxRowsPerTrigger"] = str(self._rng.randint(20, 200))
        self._job = Job(directory=directory, options=options)

    def run(self) -> str:
        kills = [*self._rng.sample(GOES_ON, self._rng.randint(0, len(GOES_ON))), self._rng.choice(ENDS)]
        kills += self._rng.sample(GOES_ON, self._rng.randint(0, 1))
        with numbered(self._group, self._senders) as senders:
            for sender in senders:
                sender.begin()
            driver: Driver | None = None
            try:
                for kind in kills:
                    driver = driver or Driver(self._job, self._home)
                    driver = self._kill(driver, kind)
                driver = driver or Driver(self._job, self._home)
                self._finish(driver, senders)
            finally:
                if driver is not None:
                    driver.kill()
            rows = self._job.rows()
            views = check_rows(rows, self._group, self._senders[0], senders, earliest=self._earliest)
        files = len(list(self._job.batches.glob("[0-9]*.json")))
        return f"{', '.join(kills)}: {len(rows)} rows, {views} of them views, in {files} files"

    def _kill(self, driver: Driver, kind: str) -> Driver | None:
        """The driver where it must go on by itself."""
        before = self._rng.choice([0, 0, self._rng.randint(1, MOST_BATCHES)])
        driver.until("written", driver.count("written") + before)
        driver.until("begins", driver.count("written") + 1)
        delay = self._rng.choice([0.0, self._rng.uniform(0, MOST_DELAY_SECONDS)])
        threading.Event().wait(delay)
        match kind:
            case "driver":
                driver.kill()
                return None
            case "agent":
                kill_agent(self._home)
            case "both":
                self._in_any_order(driver.kill, lambda: kill_agent(self._home))
                return None
            case "worker":
                workers = driver.workers()
                if workers:
                    with suppress(ProcessLookupError):
                        os.kill(self._rng.choice(workers), signal.SIGKILL)
        return driver

    def _in_any_order(self, *deeds: Callable[[], None]) -> None:
        for deed in self._rng.sample(deeds, len(deeds)):
            deed()

    def _finish(self, driver: Driver, senders: Sequence[Numbered]) -> None:
        """Let it go on for a while, then send the last record and wait until a batch has it."""
        driver.until("written", driver.count("written") + 1)
        for sender in senders:
            sender.end()
        senders[0].send_last()
        driver.until(f"has {LAST.decode()}")


def play(there: Sites, directory: Path, seed: int) -> str:
    return Restarts(there, directory, seed).run()


def main(arguments: Sequence[str] | None = None) -> int:
    about = "Kill streaming queries and what they use."
    return play_seeds("tests.spark.restarts", about, lambda: of_queries(play), arguments)


if __name__ == "__main__":
    sys.exit(main())
