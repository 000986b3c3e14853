"""The batch source: replays what the logs of a group hold between two points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from pyspark_intergroup.options import ReadOptions
from pyspark_intergroup.path_planner import PathPlanner
from pyspark_intergroup.planner import Planner
from pyspark_intergroup.pushing import narrowed
from pyspark_intergroup.rows import RowReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class GroupBatchReader(DataSourceReader):
    """Plans once, on the driver; tasks have copies, which only read."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._rows = RowReader(options, schema)

    def partitions(self) -> Sequence[InputPartition]:
        if self._options.path is not None:
            return PathPlanner(self._options).slices()
        planner = Planner(self._options)
        try:
            return planner.slices(planner.initial(), planner.final())
        finally:
            planner.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._rows.read(partition)


class PushdownBatchReader(GroupBatchReader):
    """One that looks at the query's filters; a class of its own, for Spark fails every read of a reader that does
    unless `spark.sql.python.filterPushdown.enabled` is set."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        self._options = narrowed(self._options, filters)
        self._rows = RowReader(self._options, self._schema)
        return filters
