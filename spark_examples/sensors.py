"""Fan-in of sensors: each sensor's readings complete and in its own order, without waiting for the others.

    python spark_examples/sensors.py

`delivery=rso` promises every sender's records in that sender's order, with no gap and no duplicate, and nothing between
two senders. Readings of one sensor never wait for another one that is slow or gone, and a micro-batch is split by
sender, so that tasks share the sensors out among themselves.
"""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor

from loopback_group import LoopbackGroup, run_alone, wait_until
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import intergroup_core as ig

SENSORS = ("boiler", "duct", "roof")
READINGS = 200
"""Of each sensor."""


def measure(sensor: ig.BlockingMember) -> None:
    for number in range(READINGS):
        reading = {"number": number, "celsius": 20 + math.sin(number / 10)}
        sensor.send(json.dumps(reading).encode())
    sensor.flush()


def run(spark: SparkSession) -> str:
    with LoopbackGroup("sensors") as group:
        # Sensors that are `rso` members themselves keep a log in that order, from which others get what they missed.
        sensors = [group.sender(name, delivery="rso") for name in SENSORS]

        # `_sender` is the name that the sensor joined under, and `_position` sorts as delivered within a sender.
        query = (
            spark.readStream.format("intergroup")
            .options(**group.options)
            .option("delivery", "rso")
            .option("minPartitions", len(SENSORS))
            .schema("number long, celsius double, _sender string, _position string")
            .load()
            .writeStream.format("memory")
            .queryName("readings")
            .option("checkpointLocation", group.checkpoint())
            .start()
        )
        try:
            # A stream begins at `latest`: what is sent from here on is read.
            wait_until(query, lambda: query.lastProgress is not None, "the query's first batch")
            with ThreadPoolExecutor() as pool:
                list(pool.map(measure, sensors))
            readings = spark.table("readings")
            wait_until(query, lambda: readings.count() >= READINGS * len(SENSORS), "all readings")
        finally:
            query.stop()

        by_sensor = readings.groupBy("_sender").agg(
            F.count("*").alias("readings"),
            F.round(F.avg("celsius"), 2).alias("mean"),
            F.transform(F.sort_array(F.collect_list(F.struct("_position", "number"))), lambda row: row.number).alias(
                "numbers"
            ),
        )
        found = by_sensor.orderBy("_sender").collect()

    for row in found:
        print(f"  {row._sender:8} {row.readings} readings, {row['mean']} degrees on average")
    assert [row._sender for row in found] == sorted(SENSORS)
    assert all(row.numbers == list(range(READINGS)) for row in found)
    return (
        f"sensors: {READINGS} readings of each of {len(SENSORS)} sensors, none missing, none twice, each in its order"
    )


if __name__ == "__main__":
    run_alone(run)
