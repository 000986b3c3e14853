"""The batch sink: one transaction for all rows of a frame."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pyspark_intergroup.committing import abandon_written, commit_written
from pyspark_intergroup.write_options import WriteOptions
from pyspark_intergroup.write_schema import RowLayout
from pyspark_intergroup.writing import TaskWriter, Transaction

if TYPE_CHECKING:
    import pyarrow as pa


class GroupBatchWriter(DataSourceArrowWriter):
    """Made once, on the driver; tasks have copies, which only write."""

    def __init__(self, options: WriteOptions, layout: RowLayout) -> None:
        self._options = options
        self._tasks = TaskWriter(options, layout)
        self._transaction = _transaction(options) if options.transactional else None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._tasks.write(iterator, self._transaction)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        commit_written(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        abandon_written(self._options, messages)


def _transaction(options: WriteOptions) -> Transaction:
    run = str(uuid.uuid4())
    if options.application is None or options.version is None:
        return Transaction(run, run, 0, lasting=False)
    return Transaction(options.application, run, options.version, lasting=True)
