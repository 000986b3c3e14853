"""Turns slices into the Arrow batches that Spark takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from intergroup_core.ids import COUNTER_BITS, EPOCH_US, MemberId, Service
from intergroup_core.log.arrow import ArrowRows, RowFilter, schema_of
from intergroup_core.log.choice import All, Choice, Counting, Plain
from intergroup_core.log.data_batch import Moved
from intergroup_core.log.part import cut_timestamp
from pyspark_intergroup.options import UNCOMMITTED, ReadOptions
from pyspark_intergroup.schema import arrow_schema, checked_user_schema, default_schema
from pyspark_intergroup.serving import Readers, SliceServer
from pyspark_intergroup.slice import LogSlice, LostSlice, SliceBundle
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
        self._committed = options.isolation != UNCOMMITTED
        self._filter = RowFilter(kinds=frozenset(options.kinds), senders=frozenset(options.senders))
        # What lies at a path is there or nowhere: nobody joins a group for it.
        executors = options.executors if options.path is None else "fetch"
        self._server = SliceServer(options.config, executors, options.fetch_timeout_s)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        match partition:
            case LogSlice():
                yield from self._of_logs(partition, {})
            case SliceBundle():
                readers: Readers = {}
                for each in partition.slices:
                    yield from self._of_logs(each, readers)
            case LostSlice():
                if "gap" in self._filter.kinds:
                    yield self._fitted(self._gap(partition))
            case _:
                raise TypeError(f"{type(partition).__name__} is no slice of a group")

    def _of_logs(self, wanted: LogSlice, readers: Readers) -> Iterator[pa.RecordBatch]:
        shown = wanted.shown
        choice: Choice = All()
        moved: Moved | None = None
        kept = self._filter
        if shown is not None:
            choice = Counting(shown.txn, shown.attempts)
            moved = Moved(shown.timestamp, shown.sender, shown.ordinal)
            kept = replace(kept, kinds=kept.kinds & {"data"})
        elif self._committed and wanted.service is Service.RTO:
            choice = Plain()
        elif wanted.data_only:
            kept = replace(kept, kinds=kept.kinds & {"data"})
        told: set[MemberId] = set()
        with self._server.ranges(wanted, readers) as ranges:
            for found in ranges:
                rows = ArrowRows(found.reader, self._columns, kept, choice=choice, moved=moved, told=told)
                for batch in rows.batches(found.start, found.stop, rows=BATCH_ROWS):
                    yield self._fitted(batch)
                # A transaction that lies in two logs goes on in the second.
                moved = moved._replace(ordinal=rows.ordinal) if moved is not None else None

    def _gap(self, lost: LostSlice) -> pa.RecordBatch:
        at = cut_timestamp(lost.stop)
        values = {
            "kind": "gap",
            "group_name": lost.group,
            "position": f"{at:016x}-{lost.sender:016x}-{0:016x}-{0:08x}",
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
