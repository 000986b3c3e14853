"""Kills a query that reads one group and writes another, and whatever it uses, and holds the outcome to what was sent.

python -m tests.spark.exactly_once --first 0 --seeds 20
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from random import Random

from tests.integration.groups import a_group_name
from tests.integration.seeds import play_seeds
from tests.integration.sites import Sites, stop_agent
from tests.spark.clusters import cluster_settings
from tests.spark.committed import Committed, committed_in
from tests.spark.drivers import Driver, Job
from tests.spark.grounds import NO_HOSTS, Loopback, on_hosts
from tests.spark.numbered import LAST, Numbered
from tests.spark.restarts import kill_agent
from tests.spark.seeds import of_queries

VICTIMS = ("driver", "driver and agent", "agent", "worker", "executor", "site", "zombie", "network")
"""`site` is the agent and all that it has on its disk; a `zombie` is a driver that stands still until another has taken
its place and committed something, and then goes on; where the `network` parts, one of the sites that keep the target
or both are cut off from the query."""
SPECULATION = {"spark.speculation": "true", "spark.speculation.multiplier": "1.01", "spark.speculation.quantile": "0.1"}
"""Tasks are tried twice where there is the least reason to."""
MOST_DELAY_SECONDS = 0.6
"""After a batch was committed, at the latest, something is killed: while the next is read, written or committed."""
MOST_APART_SECONDS = 6.0
QUERY, KEEPERS, SENDERS = "query", ("keeper 0", "keeper 1"), ("s0", "s1")
NAMES = (QUERY, *KEEPERS, *SENDERS)


class Pipeline:
    """One seed: two sites that send, a query from their group into another, and two sites that keep that one."""

    def __init__(self, ground: Loopback, directory: Path, seed: int, victims: Sequence[str]) -> None:
        self._rng = Random(seed)
        self._source, self._target = a_group_name(), a_group_name()
        self._ground = ground
        self._home = ground.home(QUERY)
        self._victims = victims
        self._drivers: list[Driver] = []
        self._zombies: list[Driver] = []
        source = {"group": self._source, "interface": ground.interface, "startingOffsets": "earliest"}
        source |= {"minPartitions": "2", "maxRowsPerTrigger": str(self._rng.randint(100, 400))}
        on_cluster = "executor" in victims
        self._job = Job(
            directory=directory,
            options=source,
            sink={"group": self._target, "interface": ground.interface, "ackTimeout": "20s"},
            master="local-cluster[2,1,1024]" if on_cluster else "local[2,4]",
            config=cluster_settings("127.0.0.1") | (SPECULATION if self._rng.random() < 0.5 else {}),
        )

    def run(self) -> str:
        with ExitStack() as stack:
            stack.callback(stop_agent, self._home)
            for name in KEEPERS:
                stack.enter_context(self._ground.keeper(name, self._target))
            senders: list[Numbered] = []
            for name in SENDERS:
                senders.append(Numbered(stack.enter_context(self._ground.sender(name, self._source)), name))
                stack.callback(senders[-1].close)
                senders[-1].joined()
            for sender in senders:
                sender.begin()
            driver: Driver | None = None
            try:
                for victim in self._victims:
                    driver = self._kill(self._living(driver), victim)
                self._finish(self._living(driver), senders)
            finally:
                for each in self._drivers:
                    each.kill()
            found = self._committed(KEEPERS[0])
            sent = [*(record for sender in senders for record in sender.sent), LAST.decode()]
            check(found, sent)
        return f"{', '.join(self._victims)}: {len(sent)} rows in {len(found.batches)} batches"

    def _committed(self, keeper: str) -> Committed:
        return committed_in(self._target, self._ground.home(keeper), interface=self._ground.interface)

    def _living(self, driver: Driver | None) -> Driver:
        """A query that failed because of what was killed is started again, as people do."""
        if driver is not None and not driver.count("ended") and not driver.count("gone"):
            return driver
        started = Driver(self._job, self._home, within=self._ground.within(QUERY))
        self._drivers.append(started)
        started.until("started")
        if self._zombies:
            with suppress(AssertionError):
                started.until("committed")
            for zombie in self._zombies:
                zombie.thaw()
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
            case "zombie":
                driver.freeze()
                self._zombies.append(driver)
                return None
            case "agent":
                kill_agent(self._home)
            case "site":
                kill_agent(self._home)
                for part in ("logs", "ledgers"):
                    shutil.rmtree(self._home / part, ignore_errors=True)
            case "network":
                self._part()
            case "worker" | "executor":
                found = driver.workers() if victim == "worker" else driver.executors()
                if found:
                    with suppress(ProcessLookupError):
                        os.kill(self._rng.choice(found), signal.SIGKILL)
        return driver

    def _part(self) -> None:
        apart = self._rng.choice((KEEPERS, KEEPERS[1:]))
        self._ground.part([name for name in NAMES if name not in apart], apart)
        threading.Event().wait(self._rng.uniform(0, MOST_APART_SECONDS))
        self._ground.join()

    def _finish(self, driver: Driver, senders: Sequence[Numbered]) -> None:
        for sender in senders:
            sender.end()
        senders[0].send_last()
        deadline = time.monotonic() + 120
        while LAST.decode() not in self._committed(KEEPERS[1]).rows:
            assert time.monotonic() < deadline, driver.said()
            driver = self._living(driver)
            threading.Event().wait(0.5)


def check(found: Committed, sent: Sequence[str]) -> None:
    """The multiset of rows that committed readers get is what was sent; each batch is one transaction."""
    assert Counter(found.rows) == Counter(sent), (
        Counter(found.rows) - Counter(sent),
        Counter(sent) - Counter(found.rows),
    )
    assert len(found.batches) == len(set(found.batches)), found.batches
    assert found.positions == sorted(set(found.positions))


def play(there: Sites, directory: Path, seed: int, victims: Sequence[str] = ()) -> str:
    """A seed, by itself or with what is to happen in it."""
    rng = Random(f"{seed}/victims")
    known = VICTIMS if NO_HOSTS is None else VICTIMS[:-1]
    victims = victims or rng.choices(known, k=rng.randint(2, 4))
    ground = on_hosts(there, NAMES) if "network" in victims else nullcontext(Loopback(there))
    with ground as found:
        return Pipeline(found, directory, seed, victims).run()


def main(arguments: Sequence[str] | None = None) -> int:
    about = "Kill queries that write, and what they use."
    return play_seeds("tests.spark.exactly_once", about, lambda: of_queries(play), arguments)


if __name__ == "__main__":
    sys.exit(main())
