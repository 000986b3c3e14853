"""What committed readers get of a group, read as Spark's batch read does it and without a JVM."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from pyspark_intergroup.source import InterGroupSource


class Committed(NamedTuple):
    """Data rows in their order."""

    rows: list[str]
    positions: list[str]
    batches: list[str]
    """The transactions that these rows came with, one after the other."""


def committed_in(group: str, home: Path, **options: str) -> Committed:
    """Through the agent of a site."""
    wanted = {"group": group, "interface": "lo", "agent": str(home), "kinds": "data", "columns": "value,position,txn"}
    source = InterGroupSource(wanted | options)
    reader = source.reader(source.schema())
    found = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    return Committed(
        [row["value"].decode() for row in found],
        [row["position"] for row in found],
        [txn for txn, _ in groupby(found, key=lambda row: row["txn"])],
    )
