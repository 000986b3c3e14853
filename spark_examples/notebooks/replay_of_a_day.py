# Databricks notebook source
# MAGIC %md
# MAGIC # Replay
# MAGIC
# MAGIC Sites keep the group's log for a while: a day or 1 GiB, unless told otherwise. `spark.read` replays it as a
# MAGIC batch, from its beginning or from a time, a view or an offset. Spark's own site fetches what it never received
# MAGIC from the others.

# COMMAND ----------

import sys
import time
from pathlib import Path

here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
sys.path.insert(0, str(here.parent))

from loopback_group import LoopbackGroup, local_session

spark = globals().get("spark") or local_session("replay of a day")

# COMMAND ----------

# MAGIC %md
# MAGIC ## A day of a shop, sent before Spark reads anything

# COMMAND ----------

group = LoopbackGroup("shop")
shop = group.sender("shop")
shop.send_many([b'{"item": "bread", "price": 3.5}'] * 12, ack="delivered")
time.sleep(0.01)
noon = time.time_ns() // 1_000_000  # milliseconds since 1970
time.sleep(0.01)
shop.send_many([b'{"item": "cake", "price": 5.0}'] * 5, ack="delivered")
time.sleep(0.5)  # a batch ends at what every site has

# COMMAND ----------

# MAGIC %md
# MAGIC ## All of it, decoded
# MAGIC With a schema the columns come out of the value, JSON by default; a leading `_` names the source's own columns.

# COMMAND ----------

sales = (
    spark.read.format("intergroup").options(**group.options).schema("item string, price double, _sender string").load()
)
totals = {row.item: row.total for row in sales.groupBy("item").agg({"price": "sum"}).toDF("item", "total").collect()}
print(totals)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The afternoon alone

# COMMAND ----------

afternoon = (
    spark.read.format("intergroup")
    .options(**group.options)
    .option("startingTimestamp", noon)
    .schema("item string, price double")
    .load()
)
items = {row.item for row in afternoon.collect()}

assert totals == {"bread": 42.0, "cake": 25.0}
assert items == {"cake"}
group.close()
result = "replay of a day: 17 sales, of which the afternoon has only cake"
print(result)
