"""Makes records of the rows of a task, for the group that each of them goes to."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from intergroup_core.client.names import checked_name
from intergroup_core.errors import ValueMalformed
from intergroup_core.wire.records import RecordBatch, Rows
from pyspark_intergroup.arrow_encoder import arrow_records
from pyspark_intergroup.arrow_records import records_of
from pyspark_intergroup.header_encoder import header_records
from pyspark_intergroup.json_encoder import json_records
from pyspark_intergroup.write_schema import GROUP_COLUMN, RowLayout

MAX_ENCODED_BYTES = 1 << 28
"""Of a batch that is encoded at once: its text may be six times as long, and must stay below what Arrow can count."""


class RowEncoder:
    """For batches of one schema."""

    def __init__(self, layout: RowLayout, group: str | None) -> None:
        self._layout = layout
        self._group = group

    def encoded(self, batch: pa.RecordBatch) -> Iterator[tuple[str, Rows]]:
        """The rows of a batch, in their order within each group."""
        for group, rows in self._routed(batch):
            for piece in _pieces(rows):
                yield group, self._rows(piece)

    def _routed(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if not batch.num_rows:
            return
        if self._layout.group is None:
            assert self._group is not None
            yield self._group, batch
            return
        names = batch.column(self._layout.group)
        if names.null_count:
            if self._group is None:
                raise ValueMalformed(
                    f"a row has null in {GROUP_COLUMN}, and the write names no group for it; give the option group"
                )
            names = pc.fill_null(names, self._group)
        found = pc.unique(names).to_pylist()
        for name in found:
            group = checked_name(name, f"a name in the column {GROUP_COLUMN}")
            yield group, batch if len(found) == 1 else batch.filter(pc.equal(names, name))

    def _rows(self, batch: pa.RecordBatch) -> Rows:
        layout = self._layout
        if layout.encode == "raw":
            return self._raw(batch)
        columns = batch.select(layout.encoded)
        try:
            columns.validate(full=True)
        except pa.ArrowException as error:  # Spark lets text be any bytes
            raise ValueMalformed(f"a row cannot be encoded as {layout.encode}: {error!s:.200}") from None
        return Rows(json_records(columns) if layout.encode == "json" else arrow_records(columns))

    def _raw(self, batch: pa.RecordBatch) -> Rows:
        layout = self._layout
        assert layout.value is not None
        value = batch.column(layout.value)
        if value.null_count:
            raise ValueMalformed("a row has null in value, and a record always has one; leave such rows out")
        keys: RecordBatch | None = None
        nulls = None
        if layout.key is not None and (key := batch.column(layout.key)).null_count < batch.num_rows:
            keys = records_of(key)
            nulls = key.is_null().to_numpy(zero_copy_only=False) if key.null_count else None
        headers = None if layout.headers is None else header_records(batch.column(layout.headers))
        return Rows(records_of(value), keys, nulls, headers)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch, in parts where it is very large."""
    if batch.nbytes <= MAX_ENCODED_BYTES or batch.num_rows == 1:
        yield batch
        return
    middle = batch.num_rows // 2
    for first, stop in ((0, middle), (middle, batch.num_rows)):
        # Taken, for of a slice some would encode all that lies beneath it.
        yield from _pieces(batch.take(pa.array(range(first, stop), pa.int64())))
