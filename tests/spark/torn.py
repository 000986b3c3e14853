"""A sink whose tasks fail after all their rows are staged: at their first attempt, or until a file is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_intergroup.source import InterGroupSource
from pyspark_intergroup.stream_writer import GroupStreamWriter
from pyspark_intergroup.write_options import WriteOptions
from pyspark_intergroup.write_schema import layout_of

HEALED = "healed"
"""An option: tasks fail until this file exists, and not at their first attempt only."""


class TornSource(InterGroupSource):
    """What it stages in vain nobody may see."""

    def __init__(self, options: dict[str, str]) -> None:
        given = dict(options)
        self._healed = given.pop(HEALED, None)
        super().__init__(given)

    @classmethod
    def name(cls) -> str:
        return "torn"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        options = WriteOptions.of(self.options, streaming=True)
        writer = TornWriter(options, layout_of(schema, options))
        writer.healed = Path(self._healed) if self._healed is not None else None
        return writer


class TornWriter(GroupStreamWriter):
    """One that fails too late."""

    healed: Path | None = None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        written = super().write(iterator)
        context = TaskContext.get()
        assert context is not None
        torn = context.attemptNumber() == 0 if self.healed is None else not self.healed.exists()
        if torn:
            raise RuntimeError("this task fails after its rows were staged")
        return written
