"""A ledger without a database: balances that are right because all branches' entries have one order.

    python spark_examples/ledger.py

Three branches book on the same accounts, all at once. A withdrawal counts only if the account covers it at that
moment, so the balances depend on the order of *all* entries, not of one branch's. With `delivery=rto` there is one such
order and every reader gets it: here a stream and a replay at another site come to the same balances, and refuse the
same withdrawals.

View rows stand among the entries where a branch came or went. So the ledger also knows who could have contributed to
each stretch of entries: a silent branch and a missing one are not the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from loopback_group import LoopbackGroup, run_alone
from pyspark.sql import DataFrame, Row, SparkSession

import intergroup_core as ig

BRANCHES = ("geneva", "lagos", "osaka")
ACCOUNTS = ("rent", "wages", "travel")
ENTRIES = 40
"""Of each branch."""

# The values are JSON, so a schema decodes them. Names with a leading _ are the source's own columns.
SCHEMA = "account string, amount long, _kind string, _sender string, _position string, _members array<string>"


class Ledger:
    """Entries booked one after the other."""

    def __init__(self) -> None:
        self.balances = dict.fromkeys(ACCOUNTS, 0)
        self.refused: list[str] = []
        self.stretches: list[tuple[str, int]] = []
        """Who was there, and how many entries came while that was so."""

    def book(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row._kind == "view":
                self.stretches.append((", ".join(sorted(row._members)), 0))
                continue
            members, entries = self.stretches[-1]
            self.stretches[-1] = members, entries + 1
            if self.balances[row.account] + row.amount < 0:
                self.refused.append(row._position)
            else:
                self.balances[row.account] += row.amount


def send_entries(branch: ig.BlockingMember) -> None:
    chance = random.Random(branch.name)
    for _ in range(ENTRIES):
        entry = {"account": chance.choice(ACCOUNTS), "amount": chance.randint(-100, 90)}
        branch.send(json.dumps(entry).encode())
    branch.flush("delivered")  # returns when the entries have their place in the order and are in this site's log


def run(spark: SparkSession) -> str:
    with LoopbackGroup("ledger") as group:
        branches = [group.sender(name) for name in BRANCHES]
        with ThreadPoolExecutor() as pool:
            list(pool.map(send_entries, branches))

        streamed = Ledger()

        def book(frame: DataFrame, batch_id: int) -> None:
            # A micro-batch may have several partitions; `_position` sorts as delivered, whatever a shuffle did.
            streamed.book(frame.orderBy("_position").collect())

        query = (
            spark.readStream.format("intergroup")
            .options(**group.options)
            .option("delivery", "rto")
            .option("startingOffsets", "earliest")
            .option("maxRowsPerTrigger", 50)
            .schema(SCHEMA)
            .load()
            .writeStream.foreachBatch(book)
            .option("checkpointLocation", group.checkpoint())
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

        replayed = Ledger()
        history = spark.read.format("intergroup").options(**group.options_at("auditor")).schema(SCHEMA).load()
        replayed.book(history.orderBy("_position").collect())

    for members, entries in streamed.stretches:
        print(f"  {entries:4} entries while these could book: {members}")
    for account, balance in streamed.balances.items():
        print(f"  {account:8} {balance:6}")

    assert sum(entries for _, entries in streamed.stretches) == ENTRIES * len(BRANCHES)
    assert streamed.refused, "no withdrawal was refused, so the order has not mattered"
    assert (streamed.balances, streamed.refused) == (replayed.balances, replayed.refused)
    return (
        f"ledger: {ENTRIES * len(BRANCHES)} entries of {len(BRANCHES)} branches, {len(streamed.refused)} refused; "
        "the stream and a replay at another site have the same balances"
    )


if __name__ == "__main__":
    run_alone(run)
