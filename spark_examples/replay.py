"""Replay: what the group's logs still hold, as a batch, whole or from a point on.

    python spark_examples/replay.py

Every site that sends or reads keeps the group's log for a while (24 h or 1 GiB, unless told otherwise), and Spark's
own site fetches what it missed from the others. So `spark.read` replays what was sent before it was ever started. A
point is a time, a view, or an offset that a stream has been at.
"""

from __future__ import annotations

import time

from loopback_group import LoopbackGroup, run_alone
from pyspark.sql import SparkSession

ORDERS = 20
"""In the morning, and as many in the afternoon."""


def run(spark: SparkSession) -> str:
    with LoopbackGroup("orders") as group:

        def replay(**options: str) -> list[str]:
            read = spark.read.format("intergroup").options(**group.options).options(**options)
            rows = read.option("kinds", "data").option("columns", "position,value").load()
            return [bytes(row.value).decode() for row in rows.orderBy("position").collect()]

        shop = group.sender("shop")
        morning = [f"morning {number}" for number in range(ORDERS)]
        afternoon = [f"afternoon {number}" for number in range(ORDERS)]
        shop.send_many([order.encode() for order in morning], ack="delivered")

        # A stream reads the morning and ends. Where it ended is in its progress, as it is in its checkpoint.
        stream = (
            spark.readStream.format("intergroup")
            .options(**group.options)
            .option("startingOffsets", "earliest")
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", group.checkpoint())
            .trigger(availableNow=True)
            .start()
        )
        stream.awaitTermination()
        morning_end = stream.lastProgress.sources[0].endOffset

        time.sleep(0.01)
        noon = time.time_ns() // 1_000_000  # milliseconds since 1970; ISO 8601 would do as well
        time.sleep(0.01)
        shop.send_many([order.encode() for order in afternoon], ack="delivered")

        # A batch of "everything" ends at what every site has, which this order is a moment after it was acknowledged.
        time.sleep(0.5)
        everything = replay()
        by_time = replay(startingTimestamp=str(noon))
        until_noon = replay(endingTimestamp=str(noon))
        by_offset = replay(startingOffsets=morning_end)

    assert everything == morning + afternoon
    assert until_noon == morning
    assert by_time == afternoon
    assert by_offset == afternoon
    print(f"  all: {len(everything)}; until noon: {len(until_noon)}; from noon on: {len(by_time)}")
    print(f"  from where the stream had ended: {len(by_offset)}, from {by_offset[0]!r} to {by_offset[-1]!r}")
    return f"replay: {len(everything)} orders whole, {len(by_time)} from a time on and the same from an offset on"


if __name__ == "__main__":
    run_alone(run)
