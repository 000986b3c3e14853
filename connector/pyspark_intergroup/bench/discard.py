"""A sink that takes Arrow batches and drops them: as fast as a Python sink can be."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType


class DiscardSink(DataSource):
    """It has no options."""

    @classmethod
    def name(cls) -> str:
        return "intergroup-discard"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return DiscardWriter()


class DiscardWriter(DataSourceStreamArrowWriter):
    """Looks at every batch, so that it has come."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for batch in iterator:
            assert batch.num_columns
        return WriterCommitMessage()
