"""The sink through Spark: every row once and every batch whole, whatever fails on the way."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tests.integration.groups import a_group_name
from tests.integration.sites import Sites
from tests.spark.test_errors import sentence_in
from tests.spark.torn import TornSource

SECONDS = 120
BATCHES = 10
LINES = 4
"""Of the file that a batch is."""


class Place:
    """A group, the site that writes to it, and one that reads it."""

    def __init__(self, spark: SparkSession, there: Sites, directory: Path) -> None:
        self.group = a_group_name()
        self._spark = spark
        self._there = there
        self._directory = directory
        self.sink = {"group": self.group, "interface": "lo", "agent": str(there.home("sink"))}

    def written(self, frame: DataFrame, **options: str) -> None:
        frame.write.format("intergroup").options(**self.sink | options).mode("append").save()

    def streamed(
        self, frame: DataFrame, checkpoint: str = "checkpoint", sink: str = "intergroup", **options: str
    ) -> Any:
        """A query over what there is; to be waited for."""
        writer = frame.writeStream.format(sink).options(**self.sink | options)
        return writer.option("checkpointLocation", str(self._directory / checkpoint)).trigger(availableNow=True).start()

    def files(self, name: str, batches: int, lines: int = LINES) -> DataFrame:
        """A stream with a batch for each file; each line says what it is of."""
        directory = self._directory / name
        directory.mkdir()
        for number in range(batches):
            file = directory / f"{number:03}.txt"
            file.write_text("".join(f"{name}:{number}:{line}\n" for line in range(lines)))
            os.utime(file, (number, number))  # by which Spark orders them
        return self._spark.readStream.option("maxFilesPerTrigger", 1).text(str(directory))

    def read(self, group: str | None = None, schema: str | None = None, **options: str) -> list[Row]:
        reader = self._spark.read.format("intergroup").option("interface", "lo")
        reader = reader.option("group", group or self.group).option("agent", str(self._there.home("sink")))
        reader = reader.options(**options)
        frame = (reader.schema(schema) if schema is not None else reader).load()
        return frame.orderBy("_position" if schema is not None else "position").collect()

    def values(self, group: str | None = None) -> list[str]:
        return [bytes(row.value).decode() for row in self.read(group, kinds="data")]


@pytest.fixture
def place(spark: SparkSession, there: Sites, tmp_path: Path) -> Place:
    return Place(spark, there, tmp_path)


def lines(name: str, batches: int) -> list[str]:
    return [f"{name}:{number}:{line}" for number in range(batches) for line in range(LINES)]


def test_ten_batches_are_transactions_of_one_member(place: Place) -> None:
    query = place.streamed(place.files("ten", BATCHES))
    assert query.awaitTermination(SECONDS)
    rows = place.read()
    data = [row for row in rows if row.kind == "data"]
    assert [bytes(row.value).decode() for row in data] == lines("ten", BATCHES)
    assert [row.txn for row in data] == [f"{query.id}/{batch}" for batch in range(BATCHES) for _ in range(LINES)]
    assert len({row.sender_id for row in data}) == 1
    joins = Counter(name for row in rows if row.kind == "view" for name in row.joined)
    assert max(joins.values()) == 1, joins


def test_two_queries_into_one_group_whose_reader_gets_whole_batches(place: Place) -> None:
    left, right = (place.files(name, 5) for name in ("left", "right"))
    queries = [place.streamed(left, "checkpoint-l"), place.streamed(right, "checkpoint-r")]
    assert all(query.awaitTermination(SECONDS) for query in queries)
    data = place.read(kinds="data")
    batches = [
        (txn, [bytes(row.value).decode() for row in rows]) for txn, rows in groupby(data, key=lambda row: row.txn)
    ]
    assert len(batches) == 10
    wanted = {
        f"{query.id}/{batch}": [f"{name}:{batch}:{line}" for line in range(LINES)]
        for query, name in zip(queries, ("left", "right"), strict=True)
        for batch in range(5)
    }
    assert dict(batches) == wanted


def test_a_batch_that_failed_after_it_was_staged_counts_once_when_the_query_starts_again(
    place: Place, spark: SparkSession, tmp_path: Path
) -> None:
    healed = tmp_path / "healed"
    spark.dataSource.register(TornSource)
    frame = place.files("torn", 2)
    with pytest.raises(PySparkException, match="this task fails after its rows were staged"):
        place.streamed(frame, sink=TornSource.name(), healed=str(healed)).awaitTermination(SECONDS)
    assert place.values() == []
    healed.touch()
    assert place.streamed(frame, sink=TornSource.name(), healed=str(healed)).awaitTermination(SECONDS)
    assert place.values() == lines("torn", 2)
    staged = Counter(bytes(row.value).decode() for row in place.read(kinds="data", isolation="uncommitted"))
    assert staged == Counter(lines("torn", 2) + lines("torn", 1)), "the first batch was not staged twice"


def test_a_write_inside_of_foreach_batch_is_done_once(place: Place, spark: SparkSession) -> None:
    for version in ("7", "7", "8"):
        frame = spark.range(1).select(F.lit(f"row {version}").alias("value"))
        place.written(frame, txnAppId="job", txnVersion=version)
    rows = place.read(kinds="data")
    assert [(bytes(row.value), row.txn) for row in rows] == [(b"row 7", "job/7"), (b"row 8", "job/8")]


ENCODED = "id long, name string, at timestamp, tags array<string>"


@pytest.mark.parametrize("encode", ["arrow", "json"])
def test_columns_come_back_as_they_were_written(place: Place, spark: SparkSession, encode: str) -> None:
    at = datetime(2026, 5, 1, 12, 0, 0, 1, tzinfo=UTC)
    rows = [(number, f"näme {number}" if number % 2 else None, at, ["a", None]) for number in range(100)]
    frame = spark.createDataFrame(rows, ENCODED)
    place.written(frame.repartition(2), encode=encode)
    found = place.read(schema=f"{ENCODED}, _position string", valueFormat=encode, mode="FAILFAST")
    wanted = [tuple(row) for row in frame.collect()]
    assert sorted(tuple(row)[:4] for row in found) == sorted(wanted)


def test_a_column_routes_rows_and_the_driver_can_send_them(place: Place, spark: SparkSession) -> None:
    other = a_group_name()
    frame = spark.createDataFrame(
        [("1", b"k", None), ("2", None, other), ("3", None, None)], "value string, key binary, group_name string"
    )
    headers = F.array(F.struct(F.lit("unit").alias("key"), F.lit(b"EUR").alias("value")))
    place.written(frame.withColumn("headers", headers).coalesce(1), sendFrom="driver")
    assert place.values(other) == ["2"]
    first, third = place.read(kinds="data")
    assert (bytes(first.value), bytes(first.key), bytes(third.value), third.key) == (b"1", b"k", b"3", None)
    assert [(header.key, bytes(header.value)) for header in first.headers] == [("unit", b"EUR")]


def test_without_transactions_rows_are_plain(place: Place, spark: SparkSession) -> None:
    place.written(spark.range(1).select(F.lit("x").alias("value")), transactional="false", ack="delivered")
    (row,) = place.read(kinds="data")
    assert (bytes(row.value), row.txn) == (b"x", None)


# What is refused


def refused(write: Callable[[], Any]) -> str:
    with pytest.raises(PySparkException) as told:
        write()
    return sentence_in(told.value)


def test_what_is_wrong_with_a_write_is_said_in_one_sentence(place: Place, spark: SparkSession) -> None:
    frame = spark.range(1).select(F.lit("x").alias("value"))

    def said(written: DataFrame = frame, mode: str = "append", **options: str) -> str:
        return refused(lambda: written.write.format("intergroup").options(**place.sink | options).mode(mode).save())

    assert said(acks="all") == "there is no option 'acks'; did you mean ack?"
    assert said(mode="overwrite").startswith('the mode is "overwrite", and nothing that was sent')
    nothing = spark.range(1).select(F.lit(None).cast("string").alias("value"))
    assert said(nothing).startswith("a row has null in value, and a record always has one")
    assert said(ack="k:3").startswith("ack=k:3 needs 3 log-holding sites besides this one")
    assert place.read(kinds="data") == []


def test_what_is_wrong_with_a_stream_is_said_in_one_sentence(place: Place) -> None:
    frame = place.files("bad", 1)

    def said(mode: str = "append", written: DataFrame = frame, **options: str) -> str:
        writer = written.writeStream.format("intergroup").outputMode(mode).options(**place.sink | options)
        query = writer.option("checkpointLocation", str(place._directory / f"c-{mode}-{len(options)}"))
        return refused(lambda: query.trigger(availableNow=True).start().awaitTermination(SECONDS))

    assert said(txnAppId="x", txnVersion="1").startswith("txnAppId is for batch writes; leave it out of a stream")
    assert said("complete", frame.groupBy("value").count()).startswith('outputMode is "complete", and nothing that')
