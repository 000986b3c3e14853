"""The streaming sink: tasks stage the rows of a micro-batch, and the driver commits it under its batch id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from intergroup_core.errors import LocalProtocolError
from pyspark_intergroup.committing import abandon_written, commit_written
from pyspark_intergroup.write_options import WriteOptions
from pyspark_intergroup.write_schema import RowLayout
from pyspark_intergroup.writing import TaskWriter, Transaction

if TYPE_CHECKING:
    import pyarrow as pa

QUERY, RUN, BATCH = "sql.streaming.queryId", "spark.jobGroup.id", "streaming.sql.batchId"
"""Properties of a task. Spark makes each run of a query a job group, named by the run's id."""


class GroupStreamWriter(DataSourceStreamArrowWriter):
    """Made anew for every step of every batch: who writes is known to tasks alone, and they tell the driver."""

    def __init__(self, options: WriteOptions, layout: RowLayout) -> None:
        self._options = options
        self._tasks = TaskWriter(options, layout)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._tasks.write(iterator, _transaction() if self._options.transactional else None)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        commit_written(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        abandon_written(self._options, messages)


def _transaction() -> Transaction:
    context = TaskContext.get()
    told = {name: context.getLocalProperty(name) if context is not None else None for name in (QUERY, RUN, BATCH)}
    query, run, batch = (told[name] for name in (QUERY, RUN, BATCH))
    if query is None or run is None or batch is None:
        missing = ", ".join(name for name, value in told.items() if value is None)
        raise LocalProtocolError(
            f"Spark does not tell a task of a streaming query {missing}, without which its rows cannot be counted; "
            "set transactional to false, or write in foreachBatch with txnAppId and txnVersion"
        )
    return Transaction(query, run, int(batch), lasting=True)
