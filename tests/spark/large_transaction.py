"""One transaction of many rows, read by a site that came when they were staged, in batches of a thousand rows.

python -m tests.spark.large_transaction --rows 5000000

By a query of Spark here, and in `make test` by the reader alone, which is quicker.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.datasource import ReadMaxRows

from intergroup_core.client.staging import plain_rows
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.records import RecordBatch
from pyspark_intergroup.demo.session import local_session
from pyspark_intergroup.stream_reader import GroupStreamReader
from tests.integration.agents import until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name
from tests.integration.sites import Sites, sites
from tests.integration.transactions import Writer, a_client
from tests.spark.stepping import Offset, kept, stepping

WIDTH = 16
"""Digits of a row."""
STAGED_ROWS = 500_000
"""In one call."""
PARTITIONS = 4
MOST_ROWS = 1_000
READ_SECONDS = 600.0
LAST = b"that is all"


class Read(NamedTuple):
    """What a reader got."""

    batches: list[int]
    """Rows of each batch that had any."""
    partitions: int
    """Of the largest."""
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]]


def numbered_rows(first: int, stop: int) -> RecordBatch:
    """Rows that are their numbers, in digits."""
    numbers = np.arange(first, stop, dtype=np.int64)
    powers = 10 ** np.arange(WIDTH - 1, -1, -1, dtype=np.int64)
    digits = (numbers[:, None] // powers % 10 + ord("0")).astype(np.uint8)
    return RecordBatch(np.arange(0, WIDTH * (len(numbers) + 1), WIDTH, dtype=np.int64), digits.reshape(-1))


class Totals(NamedTuple):
    """Of the rows of a transaction in one batch of a query."""

    rows: int
    distinct: int
    first: str
    last: str
    partitions: int


class Transaction:
    """Rows that two sites have staged."""

    def __init__(self, there: Sites, rows: int, stack: ExitStack) -> None:
        self.group = a_group_name()
        clients = [a_client(self.group, there.home(f"writer {number}"), f"writer {number}") for number in range(2)]
        for client in clients:
            stack.callback(client.close)
        self._client = clients[0]
        writers = [Writer(client, "large", "run") for client in clients]
        self._writer = writers[0]
        self._attempts: list[Staged] = []
        for number, writer in enumerate(writers):
            first, stop = rows * number // 2, rows * (number + 1) // 2
            parts = [(at, min(at + STAGED_ROWS, stop)) for at in range(first, stop, STAGED_ROWS)]
            self._attempts.append(writer.stage_all(1, [numbered_rows(*part) for part in parts]))

    def commit(self) -> None:
        """And say something after it."""
        assert self._writer.commit(1, *self._attempts, seconds=PATIENCE_SECONDS)
        self._client.stage(None, plain_rows([LAST]))
        self._client.staged("majority", PATIENCE_SECONDS)


OPTIONS = {
    "startingOffsets": "latest",
    "minPartitions": str(PARTITIONS),
    "columns": "value,txn,position",
    "maxRowsPerTrigger": str(MOST_ROWS),
    "kinds": "data",
}


def read_late(there: Sites, rows: int) -> Read:
    """Stage rows from two sites, let a third come, commit, and read there."""
    with ExitStack() as stack:
        transaction = Transaction(there, rows, stack)
        query = stack.enter_context(stepping(transaction.group, there.home("late"), **OPTIONS))
        start = query.offset
        transaction.commit()
        return _read(query.reader, start)


def query_late(spark: SparkSession, there: Sites, checkpoint: Path, rows: int) -> list[Totals]:
    """The same in a streaming query: what each batch has of the transaction, up to the one with what comes after it."""
    found: list[Totals] = []
    over = threading.Event()

    def note(batch: DataFrame, number: int) -> None:
        batch.persist()
        of_transaction = batch.where("txn is not null").select(F.col("value").cast("string").alias("value"))
        totals = of_transaction.agg(F.count("*"), F.count_distinct("value"), F.min("value"), F.max("value")).collect()[
            0
        ]
        if totals[0]:
            found.append(Totals(*totals, partitions=batch.rdd.getNumPartitions()))
        if batch.where(F.col("value") == LAST).count():
            over.set()
        batch.unpersist()

    with ExitStack() as stack:
        transaction = Transaction(there, rows, stack)
        source = spark.readStream.format("intergroup").options(**OPTIONS, interface="lo", group=transaction.group)
        query = (
            source.option("agent", str(there.home("late")))
            .load()
            .writeStream.foreachBatch(note)
            .option("checkpointLocation", str(checkpoint))
            .start()
        )
        stack.callback(query.stop)
        # Batch 0 pins where the query begins.
        until(lambda: query.lastProgress is not None, lambda: query.status)
        transaction.commit()
        assert over.wait(READ_SECONDS), (query.status, query.exception())
    return found


def _read(reader: GroupStreamReader, start: Offset) -> Read:
    batches: list[int] = []
    most, last, over = 0, "", False
    found: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    deadline = time.monotonic() + READ_SECONDS
    while not over:
        assert time.monotonic() < deadline, batches
        end = kept(reader.latestOffset(start, ReadMaxRows(MOST_ROWS)))
        parts = reader.partitions(start, end) if end != start else []
        read = [batch for part in parts for batch in reader.read(part)]
        rows = sum(batch.num_rows for batch in read)
        batches += [rows] if rows else []
        most = max(most, len(parts) if rows > MOST_ROWS else 0)
        for batch in read:
            positions = batch.column("position")
            assert positions[0].as_py() > last
            last = positions[len(positions) - 1].as_py()
            if batch.column("txn").null_count < batch.num_rows:
                found.append(batch.column("value").cast("string").cast("int64").to_numpy())
            over |= batch.column("value")[batch.num_rows - 1].as_py() == LAST
        start = end
    return Read(batches, most, np.concatenate(found))


@contextmanager
def a_session() -> Iterator[SparkSession]:
    session = local_session("large transaction")
    try:
        yield session
    finally:
        session.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Read one large transaction at a site that came late.")
    parser.add_argument("--rows", type=int, default=5_000_000)
    chosen = parser.parse_args(arguments)
    started = time.monotonic()
    with sites() as there, a_session() as spark, TemporaryDirectory() as checkpoint:
        found = query_late(spark, there, Path(checkpoint), chosen.rows)
    assert len(found) == 1, found
    totals = found[0]
    assert totals.partitions >= PARTITIONS, totals
    assert totals.rows == totals.distinct == chosen.rows, totals
    assert (int(totals.first), int(totals.last)) == (0, chosen.rows - 1), totals
    print(
        f"{totals.rows} rows in one batch of {totals.partitions} partitions: whole, and once, "
        f"after {time.monotonic() - started:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
