"""Rates of the sink next to a Python sink that drops everything, on a host of its own among others that keep the log.

python -m pyspark_intergroup.bench.sink '{"batches": 12, "rows": 400000, "interface": "10.77.0.1"}'

It says on standard error how far it is, and its figures as JSON in the last line of standard output.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from intergroup_core.errors import AgentUnavailable
from pyspark_intergroup.bench.figure import PATIENCE_S, Figure
from pyspark_intergroup.bench.run import RECORD_BYTES, TASKS, Bench, bench_session, store

WRITTEN, PASSED_ON = "bench", "bench-2"
"""Groups; who keeps their logs elsewhere knows them by these names."""
ARROW_ROWS = 10_000
LOOK_S = 0.1


class SinkBench:
    """One session that writes to groups and reads them again."""

    def __init__(self, bench: Bench, interface: str, rows: int) -> None:
        self._bench = bench
        self._interface = interface
        self._rows = rows
        self._file = bench.directory / "values.arrow"
        store(self._file, _values(rows // TASKS), rows // TASKS)

    def rates(self) -> list[Figure]:
        """Rows a second into the group, and into nothing."""
        self._bench.progress("ready-made batches into a sink that drops them")
        self._bench.rate(self._ready().writeStream.format("intergroup-discard"))  # of a JVM that is not warm
        discarded = self._bench.rate(self._ready().writeStream.format("intergroup-discard"))
        figures = []
        for ack in ("majority", "delivered"):
            self._bench.progress(f"ready-made batches into the group, acknowledged at {ack}")
            group = WRITTEN if ack == "majority" else f"{WRITTEN}-{ack}"
            value = self._bench.rate(self._written(self._ready(), group, ack=ack))
            figures.append(
                Figure(name=f"sink at {ack}, of one that drops all", value=value, unit="rows/s", beside=discarded)
            )
        return figures

    def end_to_end(self, total: int) -> Figure:
        """Rows a second from a group through a query into another group and from there to a second query."""
        self._bench.progress("the group into a sink that drops them")
        alone = self._bench.rate(self._read(WRITTEN).writeStream.format("intergroup-discard"))
        self._bench.progress("the group into another one, and that into a sink that drops them")
        last = self._bench.started(self._read(PASSED_ON).writeStream.format("intergroup-discard"))
        began = time.monotonic()
        first = self._bench.started(self._written(self._read(WRITTEN), PASSED_ON).trigger(availableNow=True))
        try:
            while sum(each["numInputRows"] for each in last.recentProgress) < total:
                if first.exception() or last.exception() or time.monotonic() > began + PATIENCE_S:
                    raise AgentUnavailable(f"rows did not come through: {first.exception() or last.exception()}")
                time.sleep(LOOK_S)  # progress is no event that Python hears of
            taken = time.monotonic() - began
        finally:
            first.stop()
            last.stop()
        name = "source to sink to source, of the source into one that drops all"
        return Figure(name=name, value=total / taken, unit="rows/s", beside=alone)

    def _ready(self) -> DataFrame:
        return self._bench.ready_in(self._file, ("value",), TASKS)

    def _read(self, group: str) -> DataFrame:
        return self._bench.source(
            group,
            interface=self._interface,
            columns="value",
            kinds="data",
            startingOffsets="earliest",
            maxRowsPerTrigger=str(self._rows),
            minPartitions=str(TASKS),
        )

    def _written(self, rows: DataFrame, group: str, ack: str = "majority") -> Any:
        writer = rows.writeStream.format("intergroup").option("group", group).option("interface", self._interface)
        return writer.option("ack", ack)


def run_sink(*, batches: int, rows: int, interface: str) -> list[Figure]:
    with bench_session() as (spark, directory):
        bench = Bench(spark, directory, batches=batches, rows=rows, progress=_say)
        sink = SinkBench(bench, interface, rows)
        return [*sink.rates(), sink.end_to_end(batches * rows)]


def _values(rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, rows, ARROW_ROWS):
        values = [b"%0*d" % (RECORD_BYTES, number) for number in range(first, min(rows, first + ARROW_ROWS))]
        yield pa.record_batch({"value": pa.array(values, pa.binary())})


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    found = run_sink(**json.loads(sys.argv[1]))
    sys.stdout.write(f"{json.dumps([dataclasses.asdict(figure) for figure in found])}\n")
