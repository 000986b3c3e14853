"""Windows that close at once and lose nothing: a watermark of zero seconds.

    python spark_examples/windows.py

A watermark says how late a row may come. Elsewhere that is a guess: too small loses rows, too large delays results. In
`rto` rows come in the order of `timestamp`, from all senders together, so after a row nothing can come with an earlier
one; and a micro-batch never ends between two rows of equal `timestamp`. So `withWatermark("timestamp", "0 seconds")`
drops nothing, and a window is complete as soon as any row behind it has come.

`timestamp` is the group's own time: wall time, moved forward where it has to be so that effects come behind causes.
"""

from __future__ import annotations

import time

from loopback_group import LoopbackGroup, run_alone
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

TURBINES = ("north", "south", "west")
TURNS = 25
"""Of each turbine."""


def per_window(events: DataFrame) -> DataFrame:
    return events.groupBy(F.window("timestamp", "500 milliseconds"), "sender").count()


def run(spark: SparkSession) -> str:
    with LoopbackGroup("turbines") as group:
        turbines = [group.sender(name) for name in TURBINES]
        for _ in range(TURNS):
            for turbine in turbines:
                turbine.send(b"turn", ack="delivered")
            time.sleep(0.05)  # so that there are several windows

        def read_with(reader):
            # Without view rows: they have timestamps too, but nothing is counted here but turns.
            return (
                reader.format("intergroup")
                .options(**group.options)
                .option("kinds", "data")
                .option("columns", "timestamp,sender")
            )

        counts = (
            read_with(spark.readStream)
            .option("startingOffsets", "earliest")
            .option("maxRowsPerTrigger", 30)
            .load()
            .withWatermark("timestamp", "0 seconds")
        )
        query = (
            per_window(counts)
            .writeStream.format("memory")
            .queryName("turns")
            .outputMode("append")  # a window is written once, when it is complete
            .option("checkpointLocation", group.checkpoint())
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        written = {(row.window.start, row.sender): row["count"] for row in spark.table("turns").collect()}
        dropped = sum(
            operator["numRowsDroppedByWatermark"]
            for progress in query.recentProgress
            for operator in progress["stateOperators"]
        )

        # The same from a replay, where everything is there: all windows but the one that is still open.
        history = read_with(spark.read).load()
        closed = per_window(history).where(F.col("window.end") <= history.agg(F.max("timestamp")).first()[0])
        expected = {(row.window.start, row.sender): row["count"] for row in closed.collect()}

    batches = sum(progress["numInputRows"] > 0 for progress in query.recentProgress)
    print(f"  {len(written)} counts of complete windows from {batches} micro-batches, {dropped} rows dropped as late")
    assert batches > 1
    assert dropped == 0
    assert written == expected
    return f"windows: {len(written)} counts as in a replay, with a watermark of zero and no row dropped"


if __name__ == "__main__":
    run_alone(run)
