"""One transaction of many rows, read by a site that came when they were staged, in batches of a thousand rows.

python -m tests.spark.large_transaction --rows 5000000
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
from pyspark.sql.streaming.datasource import ReadMaxRows

from intergroup_core.client.staging import plain_rows
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.records import RecordBatch
from pyspark_intergroup.stream_reader import GroupStreamReader
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


def read_late(there: Sites, rows: int) -> Read:
    """Stage rows from two sites, let a third come, commit, and read there."""
    group = a_group_name()
    with ExitStack() as stack:
        clients = [a_client(group, there.home(f"writer {number}"), f"writer {number}") for number in range(2)]
        for client in clients:
            stack.callback(client.close)
        writers = [Writer(client, "large", "run") for client in clients]
        attempts: list[Staged] = []
        for number, writer in enumerate(writers):
            first, stop = rows * number // 2, rows * (number + 1) // 2
            parts = [(at, min(at + STAGED_ROWS, stop)) for at in range(first, stop, STAGED_ROWS)]
            attempts.append(writer.stage_all(1, [numbered_rows(*part) for part in parts]))
        options = {"startingOffsets": "latest", "minPartitions": str(PARTITIONS), "columns": "value,txn,position"}
        options |= {"maxRowsPerTrigger": str(MOST_ROWS), "kinds": "data"}
        query = stack.enter_context(stepping(group, there.home("late"), **options))
        start = query.offset
        assert writers[0].commit(1, *attempts, seconds=PATIENCE_SECONDS)
        clients[0].stage(None, plain_rows([LAST]))
        clients[0].staged("majority", PATIENCE_SECONDS)
        return _read(query.reader, start)


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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Read one large transaction at a site that came late.")
    parser.add_argument("--rows", type=int, default=5_000_000)
    chosen = parser.parse_args(arguments)
    started = time.monotonic()
    with sites() as there:
        read = read_late(there, chosen.rows)
    assert np.array_equal(np.sort(read.numbers), np.arange(chosen.rows))
    print(
        f"{chosen.rows} rows in {len(read.batches)} batches, the largest {max(read.batches)} in {read.partitions} "
        f"partitions: whole, and once, after {time.monotonic() - started:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
