"""From group to group: every order is priced once, though the query between them ends and starts again.

    python spark_examples/pipeline.py

A query reads orders from one group, prices them and writes them to another. Each micro-batch is a transaction: whoever
reads the second group gets all of its rows or none, in one stretch of the order, and gets them once, whatever was tried
again on the way. So a group is a step between queries as a topic of a broker is, without the broker.

The same holds inside `foreachBatch` with `txnAppId` and `txnVersion`: here a batch that is written twice is there once.
"""

from __future__ import annotations

import json
import random
from itertools import groupby

from loopback_group import LoopbackGroup, run_alone
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

DESKS = ("north", "south")
PRICES = {"apples": 3, "pears": 4, "plums": 7}
ORDERS = 60
"""Of each desk."""

ORDER = "desk string, fruit string, pieces long"
PRICED = "desk string, fruit string, total long"


def send_orders(group: LoopbackGroup) -> list[dict[str, object]]:
    sent: list[dict[str, object]] = []
    for name in DESKS:
        desk, chance = group.sender(name), random.Random(name)
        orders = [
            {"desk": name, "fruit": chance.choice(list(PRICES)), "pieces": chance.randint(1, 9)} for _ in range(ORDERS)
        ]
        desk.send_many([json.dumps(order).encode() for order in orders], ack="delivered")
        sent += orders
    return sent


def priced(orders: DataFrame) -> DataFrame:
    price = F.create_map(*(F.lit(part) for pair in PRICES.items() for part in pair))
    return orders.select("desk", "fruit", (F.col("pieces") * price[F.col("fruit")]).alias("total"))


def run(spark: SparkSession) -> str:
    with LoopbackGroup("orders") as orders, LoopbackGroup("priced") as invoices:
        wanted = sorted(
            (order["desk"], order["fruit"], PRICES[order["fruit"]] * order["pieces"]) for order in send_orders(orders)
        )
        stream = (
            spark.readStream.format("intergroup")
            .options(**orders.options)
            .option("startingOffsets", "earliest")
            .option("maxRowsPerTrigger", 40)
            .schema(ORDER)
            .load()
        )

        def start(**trigger):
            # Columns that are no raw record become one: `encode` says how. A majority of the sites that keep the
            # group's log must have a batch before it counts as written; here that is one site.
            return (
                priced(stream)
                .writeStream.format("intergroup")
                .options(**invoices.options)
                .option("encode", "json")
                .option("ack", "majority")
                .option("checkpointLocation", orders.checkpoint())
                .trigger(**trigger)
                .start()
            )

        start(once=True).awaitTermination()  # some of it, and then the query ends
        query = start(availableNow=True)
        query.awaitTermination()

        reader = spark.read.format("intergroup").options(**invoices.options)
        rows = reader.schema(f"{PRICED}, _txn string, _position string").load().orderBy("_position").collect()
        batches = [txn for txn, _ in groupby(row._txn for row in rows)]

        # A batch write that may be repeated says which one it is; the second of these finds itself done.
        for _ in range(2):
            (
                spark.createDataFrame([("all", "all", sum(row.total for row in rows))], PRICED)
                .write.format("intergroup")
                .options(**invoices.options)
                .option("encode", "json")
                .option("txnAppId", "sum of the day")
                .option("txnVersion", 1)
                .mode("append")
                .save()
            )
        sums = reader.schema(PRICED).load().where("desk = 'all'").collect()

    print(f"  {len(rows)} orders in {len(batches)} batches: {', '.join(batches[:2])}, ...")
    assert sorted((row.desk, row.fruit, row.total) for row in rows) == wanted
    assert len(batches) == len(set(batches)) > 1, "a batch is not in one stretch"
    assert [row.total for row in sums] == [sum(total for _, _, total in wanted)]
    return f"pipeline: {len(rows)} orders priced once in {len(batches)} whole batches, and their sum written once"


if __name__ == "__main__":
    run_alone(run)
