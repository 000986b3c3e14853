"""A source that yields Arrow batches made beforehand: as fast as a Python source can be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType


class ReadySource(DataSource):
    """Options: `file`, an Arrow file with the rows of one task, `fields`, its schema, `tasks` of a batch, `batches`."""

    @classmethod
    def name(cls) -> str:
        return "intergroup-ready"

    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(self.options["fields"]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return ReadyReader(self.options["file"], int(self.options["tasks"]), int(self.options["batches"]))


class ReadyReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A batch for each trigger until there are no more."""

    def __init__(self, file: str, tasks: int, batches: int) -> None:
        self._file, self._tasks, self._batches = file, tasks, batches

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"batch": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return {"batch": min(start["batch"] + 1, self._batches)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """There is never more than what there is."""

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition(task) for task in range(self._tasks)] if end["batch"] > start["batch"] else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(self._file) as mapped:
            reader = pa.ipc.open_file(mapped)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)
