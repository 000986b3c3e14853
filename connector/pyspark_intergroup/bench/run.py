"""Rates, cost of a batch and delay of the source, next to ready-made batches and Spark's own files in one session."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.client.directories import site_directories
from intergroup_core.client.lock import SiteLock
from intergroup_core.client.member import ClientMember
from intergroup_core.config import Config
from intergroup_core.errors import AgentUnavailable
from intergroup_core.log.arrow import COLUMNS
from pyspark_intergroup import register
from pyspark_intergroup.bench.discard import DiscardSink
from pyspark_intergroup.bench.figure import PATIENCE_S, Figure
from pyspark_intergroup.bench.idle import idle_figures, send_the_time
from pyspark_intergroup.bench.profile import DIRECTORY, ProfiledSource, spent
from pyspark_intergroup.bench.ready import ReadySource
from pyspark_intergroup.options import ReadOptions
from pyspark_intergroup.planner import Planner
from pyspark_intergroup.rows import RowReader
from pyspark_intergroup.schema import default_schema

RECORD_BYTES = 100
TASKS = 2
SKIPPED = 2
"""Batches at the start of a query that pay for workers and code that is not warm yet."""

Progress = Callable[[str], None]


class Bench:
    """One Spark session, one sender's site and one reader's."""

    def __init__(self, spark: SparkSession, directory: Path, *, batches: int, rows: int, progress: Progress) -> None:
        self._spark = spark
        self.directory = directory
        self.home = directory / "site"
        self._batches, self._rows = batches, rows
        self.progress = progress
        self._serial = 0

    # What is read

    def fill(self, group: str, messages: int, records: int) -> None:
        """Records into the reader's own log: sent by its site, a bundle at a time."""
        sender = self.sender(group)
        try:
            sender.joined(PATIENCE_S)
            bundle = [b"%0*d" % (RECORD_BYTES, number) for number in range(records)]
            for _ in range(messages):
                sender.send_many(bundle, "delivered")
        finally:
            sender.close()

    def warm_up(self, group: str) -> None:
        """The first queries of a JVM are slow, whatever they read: that must not count for the one that is first."""
        self.progress("warming up")
        self._rate(self.ready(group, ("value",)))

    def rates(self, group: str, columns: tuple[str, ...], *, cold: bool) -> list[Figure]:
        """Rows a second into a sink that drops them: of the group, of ready batches, of parquet files."""
        said = "value" if columns == ("value",) else "all columns"
        options = {"columns": ",".join(columns), "startingOffsets": "earliest", "kinds": "data"}
        self.progress(f"{said}: ready-made batches")
        ready = self._rate(self.ready(group, columns))
        self.progress(f"{said}: parquet files")
        files = self._rate(self._parquet(group, columns))
        self.progress(f"{said}: the group{', cold' if cold else ''}")
        if cold:
            forget_pages(self.directory)
        ours = self._rate(self.source(group, maxRowsPerTrigger=str(self._rows), minPartitions=str(TASKS), **options))
        name = f"{said}, {'cold' if cold else 'warm'}"
        return [
            Figure(name=f"{name}, of ready batches", value=ours, unit="rows/s", beside=ready),
            Figure(name=f"{name}, of parquet files", value=ours, unit="rows/s", beside=files),
        ]

    def profile(self, group: str, columns: tuple[str, ...]) -> list[Figure]:
        """Where the time of a task goes that reads the group."""
        said = "value" if columns == ("value",) else "all columns"
        self.progress(f"{said}: where the time goes")
        notes = Path(os.environ[DIRECTORY])
        options = {"columns": ",".join(columns), "startingOffsets": "earliest", "kinds": "data"}
        rows = self.source(
            group,
            source="intergroup-profiled",
            maxRowsPerTrigger=str(self._rows),
            minPartitions=str(TASKS),
            **options,
        )
        self._rate(rows)
        return spent(notes, said)

    def empty_batch(self, group: str) -> Figure:
        """Milliseconds of a batch with next to nothing in it."""
        self.progress("batches with next to nothing in them")
        ready = self._durations(self.ready(group, ("value",), rows=1))
        ours = self._durations(
            self.source(group, maxRowsPerTrigger="1", startingOffsets="earliest", columns="value", kinds="data")
        )
        return Figure(name="a batch of one row", value=ours, unit="ms", beside=ready)

    def delays(self, group: str, count: int) -> Figure:
        """Milliseconds from `send` to the row in foreachBatch."""
        self.progress("delay from send to row")
        sender = self.sender(group)
        found: list[float] = []
        arrived = threading.Event()

        def note(batch: DataFrame, _: int) -> None:
            now = time.time()
            found.extend(now - float(bytes(row.value)) for row in batch.collect())
            arrived.set()

        query = self.started(self.source(group, columns="value", kinds="data").writeStream.foreachBatch(note))
        try:
            sender.joined(PATIENCE_S)
            while query.isActive and not query.lastProgress:
                time.sleep(0.1)  # a query's first batch is no event that Python hears of
            for _ in range(count + SKIPPED):
                arrived.clear()
                send_the_time(sender, arrived)
        finally:
            query.stop()
            sender.close()
        delays = sorted(1_000 * delay for delay in found[SKIPPED:])
        worst = delays[min(len(delays) - 1, len(delays) * 99 // 100)]
        middle = statistics.median(delays)
        return Figure(name="send to row: median, and 99th percentile beside it", value=middle, unit="ms", beside=worst)

    # How

    def sender(self, group: str) -> ClientMember:
        return ClientMember(
            group,
            delivery="rto",
            sender=True,
            name="bench",
            config=loopback(),
            home=self.home,
            reads=False,
        )

    def source(self, group: str, *, source: str = "intergroup", **options: str) -> DataFrame:
        reader = self._spark.readStream.format(source).option("group", group).option("interface", "lo")
        for name, value in options.items():
            reader = reader.option(name, value)
        return reader.load()

    def ready(self, group: str, columns: tuple[str, ...], rows: int | None = None) -> DataFrame:
        file = self.directory / f"ready-{len(columns)}-{rows}.arrow"
        wanted = rows or self._rows // TASKS
        if not file.exists():
            store(file, self._some_rows(group, columns, wanted), wanted)
        return self.ready_in(file, columns, 1 if rows == 1 else TASKS)

    def ready_in(self, file: Path, columns: tuple[str, ...], tasks: int) -> DataFrame:
        """The rows of a file, in each task of each batch."""
        return (
            self._spark.readStream.format("intergroup-ready")
            .option("file", str(file))
            .option("fields", default_schema(columns).json())
            .option("tasks", str(tasks))
            .option("batches", str(self._batches))
            .load()
        )

    def _some_rows(self, group: str, columns: tuple[str, ...], wanted: int) -> Iterator[pa.RecordBatch]:
        """As the source itself gives them."""
        asked = {"group": group, "interface": "lo", "columns": ",".join(columns), "kinds": "data"}
        options = ReadOptions.of(asked, streaming=False)
        planner = Planner(options)
        try:
            reader = RowReader(options, default_schema(columns))
            for each in planner.slices(planner.initial(), planner.final()):
                for batch in reader.read(each):
                    yield batch
                    wanted -= batch.num_rows
                    if wanted <= 0:
                        return
        finally:
            planner.close()

    def _parquet(self, group: str, columns: tuple[str, ...]) -> DataFrame:
        path = str(self.directory / f"parquet-{len(columns)}")
        if not Path(path).exists():
            history = self._spark.read.format("intergroup").option("group", group).option("interface", "lo")
            rows = history.option("columns", ",".join(columns)).option("kinds", "data").load()
            rows.repartition(self._batches * TASKS).write.parquet(path)
        reader = self._spark.readStream.schema(default_schema(columns))
        return reader.option("maxFilesPerTrigger", TASKS).parquet(path)

    def _rate(self, rows: DataFrame) -> float:
        return self.rate(rows.writeStream.format("noop"))

    def rate(self, writer: Any) -> float:
        """Rows a second once it is warm."""
        taken = [each["durationMs"]["triggerExecution"] for each in self._batches_of(writer)]
        if len(taken) <= SKIPPED:
            raise AgentUnavailable("the query of the benchmark had too few batches; see what Spark says")
        return float(self._rows / (statistics.median(taken[SKIPPED:]) / 1_000))

    def _durations(self, rows: DataFrame) -> float:
        """Milliseconds of what a source has a part in, in the middle."""
        parts = ("latestOffset", "getBatch", "queryPlanning", "addBatch")
        taken = [
            sum(each["durationMs"].get(part, 0) for part in parts)
            for each in self._batches_of(rows.writeStream.format("noop"))
        ]
        return float(statistics.median(taken[SKIPPED:]))

    def _batches_of(self, writer: Any) -> list[dict[str, Any]]:
        query = self.started(writer.trigger(availableNow=True))
        if not query.awaitTermination(round(PATIENCE_S)):
            query.stop()
        return [each for each in query.recentProgress if each["numInputRows"] or each["durationMs"].get("addBatch")]

    def started(self, writer: Any) -> StreamingQuery:
        self._serial += 1
        query: StreamingQuery = writer.option(
            "checkpointLocation", str(self.directory / f"checkpoint-{self._serial}")
        ).start()
        return query


def run_spark(*, batches: int, rows: int, cold: bool, idle_s: float, progress: Progress) -> list[Figure]:
    """All figures; everything is made in a temporary directory and removed."""
    with bench_session() as (spark, directory):
        bench = Bench(spark, directory, batches=batches, rows=rows, progress=progress)
        progress("sending")
        bench.fill("bench", messages=batches * 10, records=rows // 10)
        figures: list[Figure] = []
        bench.warm_up("bench")
        for columns in (("value",), COLUMNS):
            figures += bench.rates("bench", columns, cold=False)
            if cold:
                figures += bench.rates("bench", columns, cold=True)
        bench.fill("single", messages=batches * 3, records=1)
        figures.append(bench.empty_batch("single"))
        figures.append(bench.delays("delays", count=30))
        if idle_s:
            figures += idle_figures(bench, "single", idle_s)
    return figures


def run_profile(*, batches: int, rows: int, progress: Progress) -> list[Figure]:
    """Where the Python workers of tasks spend their time, by function."""
    with tempfile.TemporaryDirectory(prefix="ig-") as notes:
        os.environ[DIRECTORY] = notes
        try:
            with bench_session() as (spark, directory):
                bench = Bench(spark, directory, batches=batches, rows=rows, progress=progress)
                progress("sending")
                bench.fill("bench", messages=batches * 10, records=rows // 10)
                bench.warm_up("bench")
                return [figure for columns in (("value",), COLUMNS) for figure in bench.profile("bench", columns)]
        finally:
            del os.environ[DIRECTORY]


def _stop_agent(home: Path) -> None:
    """And wait until it is gone: what it still writes lies in a directory that is about to be removed."""
    try:
        with Connection.to_agent(home, start=False) as agent:
            agent.request(Kind.STOP, timeout=30)
    except AgentUnavailable:
        return
    with SiteLock(site_directories(home).lock):  # an agent holds it as long as it lives
        pass


@contextmanager
def bench_session() -> Iterator[tuple[SparkSession, Path]]:
    with tempfile.TemporaryDirectory(prefix="ig-") as made:
        directory = Path(made)
        before = os.environ.get("INTERGROUP_HOME")
        os.environ["INTERGROUP_HOME"] = str(directory / "site")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        spark = (
            SparkSession.builder.master("local[2]")
            .appName("intergroup bench")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.python.unix.domain.socket.enabled", "true")
            .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
            .getOrCreate()
        )
        try:
            spark.sparkContext.setLogLevel("ERROR")
            register(spark)
            spark.dataSource.register(ReadySource)
            spark.dataSource.register(DiscardSink)
            spark.dataSource.register(ProfiledSource)
            yield spark, directory
        finally:
            spark.stop()
            _stop_agent(directory / "site")
            if before is None:
                del os.environ["INTERGROUP_HOME"]
            else:
                os.environ["INTERGROUP_HOME"] = before


def loopback() -> Config:
    return Config.from_mapping({"network": {"interface": "lo"}})


def forget_pages(directory: Path) -> None:
    """Let the kernel forget what it has of the logs, as far as that is on the disk."""
    os.sync()
    for file in directory.rglob("*.segment"):
        opened = os.open(file, os.O_RDONLY)
        try:
            os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(opened)


def store(file: Path, batches: Iterator[pa.RecordBatch], rows: int) -> None:
    """So many rows in a file."""
    writer: pa.ipc.RecordBatchFileWriter | None = None
    for batch in batches:
        taken = batch.slice(0, min(rows, batch.num_rows))
        writer = writer or pa.ipc.new_file(str(file), taken.schema)
        writer.write_batch(taken)
        rows -= taken.num_rows
        if rows <= 0:
            break
    assert writer is not None
    writer.close()
