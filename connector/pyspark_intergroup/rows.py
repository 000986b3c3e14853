"""Turns slices into the Arrow batches that Spark takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from intergroup_core.ids import COUNTER_BITS, EPOCH_US
from intergroup_core.log.arrow import ArrowRows, RowFilter, schema_of
from intergroup_core.log.part import cut_timestamp
from pyspark_intergroup.options import ReadOptions
from pyspark_intergroup.schema import arrow_schema, checked_user_schema, default_schema
from pyspark_intergroup.serving import SliceServer
from pyspark_intergroup.slice import LogSlice, LostSlice
from pyspark_intergroup.values import ValueDecoder

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

BATCH_ROWS = 16_384
"""Of one Arrow batch, ended by the message that reaches it."""


class RowReader:
    """What a task does; it is sent to executors with the read, and holds nothing that is open."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._schema = arrow_schema(schema)
        self._decoder: ValueDecoder | None = None
        self._columns = options.columns
        if schema != default_schema(options.columns):
            asked = checked_user_schema(schema, corrupt_column=options.corrupt_column)
            self._decoder = ValueDecoder(self._schema, options.value_format, options.mode, asked.corrupt_column)
            self._columns = self._decoder.columns
        self._filter = RowFilter(kinds=frozenset(options.kinds), senders=frozenset(options.senders))
        # What lies at a path is there or nowhere: nobody joins a group for it.
        executors = options.executors if options.path is None else "fetch"
        self._server = SliceServer(options.config, executors, options.fetch_timeout_s)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        match partition:
            case LogSlice():
                yield from self._of_logs(partition)
            case LostSlice():
                if "gap" in self._filter.kinds:
                    yield self._fitted(self._gap(partition))
            case _:
                raise TypeError(f"{type(partition).__name__} is no slice of a group")

    def _of_logs(self, wanted: LogSlice) -> Iterator[pa.RecordBatch]:
        with self._server.ranges(wanted) as ranges:
            for found in ranges:
                rows = ArrowRows(found.reader, self._columns, self._filter)
                for batch in rows.batches(found.start, found.stop, rows=BATCH_ROWS):
                    yield self._fitted(batch)

    def _gap(self, lost: LostSlice) -> pa.RecordBatch:
        at = cut_timestamp(lost.stop)
        values = {
            "kind": "gap",
            "group_name": lost.group,
            "position": f"{at:016x}-{0:016x}-{0:016x}-{0:08x}",
            "timestamp": (at >> COUNTER_BITS) + EPOCH_US,
            "lamport": at,
        }
        schema = schema_of(self._columns)
        arrays = [pa.array([values.get(field.name)], type=field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """With exactly the columns and types that Spark wants."""
        if self._decoder is not None:
            batch = self._decoder.decode(batch)
        if batch.schema.equals(self._schema):
            return batch
        arrays = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(batch.columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
