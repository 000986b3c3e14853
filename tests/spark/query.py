"""A streaming query in a process of its own, which may be killed at any moment: what it was given stays on disk.

python tests/spark/query.py '{"master": ..., "options": {...}, "checkpoint": ..., "batches": ..., "trigger": ...}'

Each batch becomes one file, named for its id and for the run that wrote it, so that two runs of one batch can be
compared. A line of output says when a batch begins and when it is on disk.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tests.spark.held import GATE, HeldSource
from tests.spark.home import QUICK_JVM

COLUMNS = ("kind", "sender_id", "seq", "record", "position", "lamport", "view_id", "value", "members")
"""What is the same in every reading of a row."""
CONFIG = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK_JVM,
}

LOOK_SECONDS = 0.2
"""How often a query is asked whether it goes on."""


class Sink:
    """Writes batches where a run can find those of earlier ones."""

    def __init__(self, directory: Path, last: str | None = None) -> None:
        self._directory = directory
        self._run = os.getpid()
        self._last = last
        self.has_last = threading.Event()

    def write(self, batch: DataFrame, number: int) -> None:
        say("begins", number)
        rows = [row.asDict() for row in batch.withColumn("value", F.col("value").cast("string")).collect()]
        name = f"{number:06d}-{self._run}.json"
        written = self._directory / f".{name}"
        written.write_text(json.dumps(rows))
        written.rename(self._directory / name)
        say("written", number)
        data = [row["value"] for row in rows if row["kind"] == "data"]
        if data:
            say("has", data[-1])
        if self._last in data:
            self.has_last.set()


def say(*words: object) -> None:
    print("query", *words, flush=True)


def main(told: dict[str, Any]) -> None:
    builder = SparkSession.builder.master(told["master"])
    for key, value in (CONFIG | told.get("config", {})).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if "gate" in told:
        spark.dataSource.register(HeldSource)
    for each in (told, *told["also"]):
        run(spark, each)
    say("ended")
    spark.stop()


def run(spark: SparkSession, told: dict[str, Any]) -> None:
    source = spark.readStream.format("intergroup").options(**told["options"])
    if "gate" in told:
        source = source.format(HeldSource.name()).option(GATE, told["gate"])
    rows = source.load().select(*COLUMNS)
    sink = Sink(Path(told["batches"]), told["last"])
    query = (
        rows.writeStream.foreachBatch(sink.write)
        .option("checkpointLocation", told["checkpoint"])
        .trigger(**told["trigger"])
        .start()
    )
    say("started")
    try:
        while not sink.has_last.is_set():
            if query.awaitTermination(LOOK_SECONDS):
                return
        query.stop()
    except StreamingQueryException as error:
        if not told.get("fails"):
            raise
        say("failed", json.dumps(str(error)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
