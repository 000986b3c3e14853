# Databricks notebook source
# MAGIC %md
# MAGIC # One order of several senders, and who was there
# MAGIC
# MAGIC A group is named, not configured: whoever joins it receives what any member sends. Read with `delivery = rto`,
# MAGIC the records of all senders have **one order**, and a **view row** stands in it wherever a sender came or went.
# MAGIC
# MAGIC This notebook plays the senders itself, on loopback, so it runs on one machine, such as a single-node cluster.
# MAGIC Between machines members find each other by multicast, which most cloud networks do not carry.

# COMMAND ----------

import sys
from pathlib import Path

here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
sys.path.insert(0, str(here.parent))

from loopback_group import LoopbackGroup, local_session

spark = globals().get("spark") or local_session("one order")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Senders
# MAGIC Two desks join and send. `ack="delivered"` returns when a record has its place in the order and is in the
# MAGIC sender's log.

# COMMAND ----------

group = LoopbackGroup("desks")
north, south = group.sender("north"), group.sender("south")
for number in range(10):
    north.send(f"north {number}".encode(), ack="delivered")
    south.send(f"south {number}".encode(), ack="delivered")
late = group.sender("late")
late.send(b"late 0", ack="delivered")

# COMMAND ----------

# MAGIC %md
# MAGIC ## A stream
# MAGIC `availableNow` reads what is there and ends; without it the query goes on.

# COMMAND ----------

events = (
    spark.readStream.format("intergroup")
    .options(**group.options)  # the group; and here loopback, and a directory for Spark's own site
    .option("delivery", "rto")
    .option("startingOffsets", "earliest")
    .load()
)
query = (
    events.writeStream.format("memory")
    .queryName("desk_events")
    .option("checkpointLocation", group.checkpoint())
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()

# COMMAND ----------

rows = spark.sql("""
    SELECT kind, sender, CAST(value AS STRING) AS value, members
    FROM desk_events ORDER BY position
""").collect()
for row in rows:
    print(f"{row.kind}  {row.value if row.kind == 'data' else 'who sends from here on: ' + ', '.join(row.members)}")

# COMMAND ----------

# MAGIC %md
# MAGIC The view row with `late` stands behind all that was sent without it, and before its first record.

# COMMAND ----------

joined = next(at for at, row in enumerate(rows) if row.kind == "view" and "late" in row.members)
assert [row.value for row in rows[joined:] if row.kind == "data"] == ["late 0"]
assert sum(row.kind == "data" for row in rows[:joined]) == 20

group.close()
result = "one order: 21 records of 3 senders, the last of them behind the view that it came with"
print(result)
