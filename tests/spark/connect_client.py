"""A program that has no JVM, only a connection to a Spark server: reads a group by batch and by stream, writes what it
read to another group though every task of that fails at first, and prints all of it.

python tests/spark/connect_client.py '{"options": {...}, "sink": {...}, "checkpoint": ...}'
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tests.spark.query import COLUMNS, CONFIG
from tests.spark.torn import TornSource

TABLE = "live"


def main(told: dict[str, Any]) -> None:
    builder = SparkSession.builder.remote("local[2,2]")  # a task may be tried twice
    for key, value in CONFIG.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        spark.dataSource.register(TornSource)
        history = spark.read.format("intergroup").options(**told["options"]).load()
        live = spark.readStream.format("intergroup").options(**told["options"]).load()
        query = (
            live.writeStream.format("memory")
            .queryName(TABLE)
            .option("checkpointLocation", told["checkpoint"])
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        written = (
            live.where("kind = 'data'")
            .select("value")
            .writeStream.format(TornSource.name())
            .options(**told["sink"])
            .option("checkpointLocation", told["checkpoint"] + "-sink")
            .trigger(availableNow=True)
            .start()
        )
        assert written.awaitTermination(60)
        copied = spark.read.format("intergroup").options(**told["sink"]).option("kinds", "data").load()
        whose = {row.txn.split("/")[0] for row in copied.select("txn").collect()}
        print(json.dumps([rows_of(history), rows_of(spark.table(TABLE)), rows_of(copied), whose == {written.id}]))
    finally:
        spark.stop()


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    text = frame.withColumn("value", F.col("value").cast("string")).select(*COLUMNS)
    return [row.asDict() for row in text.collect()]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
