"""A group on this machine for an example to read: senders at sites of their own, all gone when the example ends.

In real life none of this is needed. Programs anywhere on the network do `ig.open("prices", sender=True)`, and the
query says `.option("group", "prices")`; each machine's agent is started by the first who needs it, and there is no
server. Here every sender gets a directory of its own instead, so that one machine can play several.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count
from types import TracebackType
from typing import Self

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import intergroup_core as ig
from pyspark_intergroup.demo.session import local_session
from pyspark_intergroup.demo.sites import LocalSites

PATIENCE_SECONDS = 90.0

__all__ = ["LoopbackGroup", "local_session", "run_alone", "wait_until"]

_serial = count()


class LoopbackGroup:
    """One group, whose name nobody else uses."""

    def __init__(self, purpose: str) -> None:
        self.name = f"{purpose}-{os.getpid()}-{next(_serial)}"
        self._sites = LocalSites()
        self._members: list[ig.BlockingMember] = []

    @property
    def options(self) -> dict[str, str]:
        """For `.options(...)` of a read: the group, the loopback interface, and a site for Spark."""
        return self.options_at("spark")

    def options_at(self, site: str) -> dict[str, str]:
        """The same for a reader at another site, which has a log of its own."""
        return {"group": self.name, "interface": "lo", "agent": str(self._sites.home(site))}

    def sender(self, name: str, delivery: str = "rto") -> ig.BlockingMember:
        """A member that sends, at a site of its own, which keeps the group's log by this service."""
        member = ig.open(
            self.name,
            delivery=delivery,
            sender=True,
            reads=False,
            name=name,
            home=self._sites.home(name),
            interface="lo",
            timeout=PATIENCE_SECONDS,
        )
        self._members.append(member)
        return member

    def checkpoint(self, query: str = "query") -> str:
        return str(self._sites.directory / f"checkpoint-{query}")

    def close(self) -> None:
        try:
            for member in self._members:
                member.close()
        finally:
            self._sites.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def wait_until(query: StreamingQuery, holds: Callable[[], bool], what: str) -> None:
    """While a query runs; what ended it is raised."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if (failure := query.exception()) is not None:
            raise failure
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {PATIENCE_SECONDS:g} s")
        time.sleep(0.5)  # each look may be a Spark job, which takes its share from the query


def run_alone(run: Callable[[SparkSession], str]) -> None:
    """An example as a program: a Spark of its own, and what it found."""
    spark = local_session(run.__module__)
    try:
        print(run(spark))
    finally:
        spark.stop()
