"""A dashboard of latest values: what the network brings, at once, and nothing that is late.

    python spark_examples/dashboard.py

`delivery=uu` promises neither order nor completeness, and therefore waits for nobody: a reader like this one is not
counted by the senders, so any number of them costs the group nothing. It suits values that replace each other. A
record that got lost is made good by the next one, and one that was overtaken is known by its number.
"""

from __future__ import annotations

import json
import threading

from loopback_group import LoopbackGroup, run_alone, wait_until
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import intergroup_core as ig

GAUGES = ("flow", "level", "pressure")
LAST = 20
"""The number of the last value, which a gauge repeats until it is told to stop."""


def publish(gauge: ig.BlockingMember, stopping: threading.Event) -> None:
    number = 0
    while not stopping.wait(0.1):
        number = min(number + 1, LAST)
        # In uu the name of a sender is not known to a reader, only its id: the value says whose it is.
        gauge.send(json.dumps({"gauge": gauge.name, "number": number, "value": number * 1.5}).encode())


def run(spark: SparkSession) -> str:
    with LoopbackGroup("dashboard") as group:
        gauges = [group.sender(name) for name in GAUGES]
        latest = (
            spark.readStream.format("intergroup")
            .options(**group.options)
            .option("delivery", "uu")
            .schema("gauge string, number long, value double")
            .load()
            .groupBy("gauge")
            .agg(F.max("number").alias("number"), F.max_by("value", "number").alias("value"))
        )
        query = (
            latest.writeStream.format("memory")
            .queryName("dashboard")
            .outputMode("complete")
            .option("checkpointLocation", group.checkpoint())
            .start()
        )
        stopping = threading.Event()
        threads = [threading.Thread(target=publish, args=(gauge, stopping)) for gauge in gauges]
        try:
            for thread in threads:
                thread.start()
            shown = spark.table("dashboard")
            wait_until(
                query, lambda: shown.where(F.col("number") == LAST).count() == len(GAUGES), "the last value of each"
            )
        finally:
            stopping.set()
            for thread in threads:
                thread.join()
            query.stop()
        found = shown.orderBy("gauge").collect()

    for row in found:
        print(f"  {row.gauge:10} {row.value}")
    assert [(row.gauge, row.value) for row in found] == [(name, LAST * 1.5) for name in GAUGES]
    return f"dashboard: the latest value of each of {len(GAUGES)} gauges"


if __name__ == "__main__":
    run_alone(run)
