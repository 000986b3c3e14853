"""What a query costs while nothing is sent, and how soon it is awake again."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.client.member import ClientMember
from intergroup_core.errors import AgentUnavailable
from pyspark_intergroup.bench.figure import PATIENCE_S, Figure

if TYPE_CHECKING:
    from pyspark_intergroup.bench.run import Bench

WARM_UP_S = 20.0
"""Until a JVM that has nothing to do has compiled what it does then."""
LOOK_S = 5.0
_TICKS = os.sysconf("SC_CLK_TCK")


def idle_figures(bench: Bench, group: str, seconds: float) -> list[Figure]:
    """Percent of a core that all processes of an idle query use, and the delay of the first row after that."""
    bench.progress(f"an idle query on ready-made batches, {seconds:g} s")
    query = bench.started(bench.ready(group, ("value",), rows=1).writeStream.format("noop"))
    try:
        ready = _busy(query, seconds, others=())
    finally:
        query.stop()
    bench.progress(f"an idle query on the group, {seconds:g} s")
    arrived = threading.Event()
    found: list[float] = []

    def note(batch: DataFrame, _: int) -> None:
        now = time.time()
        rows = batch.collect()
        if rows:
            found.append(now - float(bytes(rows[0].value)))
            arrived.set()

    sender = bench.sender(group)
    query = bench.started(bench.source(group, columns="value", kinds="data").writeStream.foreachBatch(note))
    try:
        sender.joined(PATIENCE_S)
        with Connection.to_agent(bench.home, start=False) as agent:
            status = agent.request(Kind.STATUS)
        ours = _busy(query, seconds, others=(status["pid"],))
        send_the_time(sender, arrived)
    finally:
        query.stop()
        sender.close()
    return [
        Figure(name="an idle query, percent of a core", value=ours, unit="%", beside=ready),
        Figure(name="the first row after that", value=1_000 * found[0], unit="ms", beside=0.0),
    ]


def send_the_time(sender: ClientMember, arrived: threading.Event) -> None:
    """A record that says when it was sent; returns once a query has it."""
    sender.send_many([b"%.6f" % time.time()], "sent")
    if not arrived.wait(PATIENCE_S):
        raise AgentUnavailable(f"a record of the benchmark did not come within {PATIENCE_S:g} s")


def _busy(query: StreamingQuery, seconds: float, others: Iterable[int]) -> float:
    """Percent of a core of this process, of all it started, and of others.

    Workers of earlier queries end meanwhile, and take with them what they had used before: what counts is what each
    process used between two looks.
    """
    _pass(query, WARM_UP_S)
    began, used = time.monotonic(), 0.0
    before = _cpu_seconds(others)
    while (left := seconds - (time.monotonic() - began)) >= 1.0:
        _pass(query, min(LOOK_S, left))
        now = _cpu_seconds(others)
        used += sum(spent - before.get(pid, spent) for pid, spent in now.items())
        before = now
    return 100 * used / (time.monotonic() - began)


def _pass(query: StreamingQuery, seconds: float) -> None:
    if query.awaitTermination(round(seconds)):
        raise AgentUnavailable(f"an idle query ended: {query.exception()}")


def processes_below(root: int) -> set[int]:
    """A process and all that it started, as far as they still hang together."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            parents[int(entry.name)] = int(fields[1])
    found, grew = {root}, True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grew = bool(more)
    return found


def _cpu_seconds(others: Iterable[int]) -> dict[int, float]:
    """User and system time of this process, of all it started, and of others, by process."""
    watched = {*processes_below(os.getpid()), *others}
    return {pid: sum(map(int, fields[11:13])) / _TICKS for pid in watched if (fields := _stat(pid))}


def _stat(pid: int) -> list[str]:
    """What the kernel says of a process behind its name; nothing where it has gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
