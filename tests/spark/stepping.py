"""A stream reader as Spark drives it, one call at a time and without a JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable

from pyspark_intergroup.source import InterGroupSource
from pyspark_intergroup.stream_reader import GroupStreamReader
from tests.integration.agents import until
from tests.spark.drivers import Row
from tests.spark.query import COLUMNS

Offset = dict[str, Any]


def a_reader(group: str, home: Path, **options: str) -> GroupStreamReader:
    source = InterGroupSource({"group": group, "interface": "lo", "agent": str(home)} | options)
    reader = source.streamReader(source.schema())
    assert isinstance(reader, GroupStreamReader)
    return reader


class Stepping:
    """A query: what it has planned is kept, whatever becomes of its reader."""

    def __init__(self, reader: GroupStreamReader, offset: Offset | None = None) -> None:
        self.reader = reader
        self._offset = offset

    @property
    def offset(self) -> Offset:
        """As a checkpoint has it; a query begins with an empty batch, which keeps where that is."""
        if self._offset is None:
            initial = kept(self.reader.initialOffset())
            assert self.reader.latestOffset(initial, ReadAllAvailable()) == initial
            assert not self.reader.partitions(initial, initial)
            self._offset = initial
        return self._offset

    def batch(self) -> tuple[Offset, Offset]:
        """Wait for news; the two ends of the batch that has them."""
        start = self.offset
        found: list[Offset] = []

        def is_there() -> bool:
            found.append(kept(self.reader.latestOffset(start, ReadAllAvailable())))
            return found[-1] != start

        until(is_there)
        self._offset = found[-1]
        return start, found[-1]

    def rows(self, start: Offset, end: Offset) -> list[Row]:
        return [row for part in self.reader.partitions(start, end) for row in self._read(part)]

    def _read(self, part: Any) -> list[Row]:
        return [
            {column: row[column] for column in COLUMNS} | {"value": row["value"] and row["value"].decode()}
            for batch in self.reader.read(part)
            for row in batch.to_pylist()
        ]

    def until_has(self, value: str) -> list[Row]:
        """All rows of the batches up to one that has a record."""
        rows: list[Row] = []
        while not any(row["value"] == value for row in rows):
            rows += self.rows(*self.batch())
        return rows

    def available_now(self) -> list[Row]:
        """All that is there when this is called."""
        start = self.offset
        self.reader.prepareForTriggerAvailableNow()
        rows: list[Row] = []
        while (end := kept(self.reader.latestOffset(start, ReadAllAvailable()))) != start:
            rows += self.rows(start, end)
            start = end
        self._offset = start
        return rows


def kept(offset: Offset) -> Offset:
    """As Spark has it after it was written to a checkpoint."""
    found: Offset = json.loads(json.dumps(offset))
    return found


@contextmanager
def stepping(group: str, home: Path, offset: Offset | None = None, **options: str) -> Iterator[Stepping]:
    reader = a_reader(group, home, **options)
    try:
        yield Stepping(reader, offset)
    finally:
        reader.stop()


def values(rows: list[Row]) -> list[str]:
    return [row["value"] for row in rows if row["kind"] == "data"]
