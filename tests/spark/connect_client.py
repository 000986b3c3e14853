"""A program that has no JVM, only a connection to a Spark server: reads a group by batch and by stream, prints both.

python tests/spark/connect_client.py '{"options": {...}, "checkpoint": ...}'
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tests.spark.query import COLUMNS, CONFIG

TABLE = "live"


def main(told: dict[str, Any]) -> None:
    builder = SparkSession.builder.remote("local[2]")
    for key, value in CONFIG.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
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
        print(json.dumps([rows_of(history), rows_of(spark.table(TABLE))]))
    finally:
        spark.stop()


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    text = frame.withColumn("value", F.col("value").cast("string")).select(*COLUMNS)
    return [row.asDict() for row in text.collect()]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
