"""A query from one group into another, in a process of its own which may be killed at any moment.

python tests/spark/pipeline.py '{"master": ..., "source": {...}, "sink": {...}, "checkpoint": ..., "config": {...}}'

A line of output says when a batch has become part of the checkpoint.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tests.spark.query import CONFIG, say

LOOK_SECONDS = 0.05


def main(told: dict[str, Any]) -> None:
    builder = SparkSession.builder.master(told["master"])
    for key, value in (CONFIG | told["config"]).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.readStream.format("intergroup").options(**told["source"]).load()
    written = rows.where("kind = 'data'").select(F.col("value").cast("string").alias("value"))
    query = (
        written.writeStream.format("intergroup")
        .options(**told["sink"])
        .option("checkpointLocation", told["checkpoint"])
        .trigger(**told["trigger"])
        .start()
    )
    say("started")
    seen = -1
    try:
        while not query.awaitTermination(LOOK_SECONDS):
            progress = query.lastProgress
            if progress is not None and progress.batchId > seen:
                seen = progress.batchId
                say("committed", seen)
    except StreamingQueryException as error:
        say("failed", json.dumps(str(error)[:2_000]))
    say("ended")
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
