"""Logs in directories and what a replay of them gives, without Spark's JVM."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from intergroup_core.ids import Service
from intergroup_core.log.cut import BEHIND_ALL, Cut, OrderCut
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.writer import create_log, open_log
from intergroup_core.runtime.disk import FileDisk
from pyspark_intergroup.options import ReadOptions
from pyspark_intergroup.path_planner import PathPlanner
from pyspark_intergroup.rows import RowReader
from pyspark_intergroup.schema import default_schema
from pyspark_intergroup.slice import LogSlice, LostSlice
from tests.builders import GROUP, START
from tests.log_builders import Row

BEFORE_ALL = OrderCut(START - 1, BEHIND_ALL)


def a_stored_log(
    directory: Path,
    deliveries: Iterable[Delivered],
    *,
    log: int = 1,
    service: Service = Service.RTO,
    after: Cut | None = BEFORE_ALL,
) -> Path:
    """What a member delivered, in a directory of its own."""
    disk = FileDisk.locked(directory)
    create_log(disk, log=log, group=GROUP, service=service, after=after if service is Service.RTO else None)
    writer = open_log(disk)
    for delivered in deliveries:
        writer.append(delivered)
    writer.close()
    disk.close()
    return directory


def read_options(path: Path, **options: str) -> ReadOptions:
    return ReadOptions.of({"path": str(path), "fetchTimeout": "200ms", **options}, streaming=False)


def slices_of(path: Path, **options: str) -> list[LogSlice | LostSlice]:
    return PathPlanner(read_options(path, **options)).slices()


def replayed(path: Path, **options: str) -> list[Row]:
    """All rows, in the order of slices."""
    asked = read_options(path, **options)
    return rows_in(asked, PathPlanner(asked).slices())


def rows_in(asked: ReadOptions, slices: Iterable[LogSlice | LostSlice]) -> list[dict[str, Any]]:
    reader = RowReader(asked, default_schema(asked.columns))
    return [row for each in slices for batch in reader.read(each) for row in batch.to_pylist()]
