"""Batches with values, as a log gives them to a decoder."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from intergroup_core.log.arrow import schema_of
from pyspark_intergroup.values import ValueDecoder

COLUMNS = ("kind", "group_name", "sender_id", "seq", "record", "value")


def a_batch(values: Sequence[bytes | None], kinds: Sequence[str] | None = None) -> pa.RecordBatch:
    """A row per value, the messages numbered from 100 on."""
    rows = len(values)
    columns = {
        "kind": kinds or ["data"] * rows,
        "group_name": ["prices"] * rows,
        "sender_id": ["0123456789abcdef"] * rows,
        "seq": list(range(100, 100 + rows)),
        "record": [7] * rows,
        "value": values,
    }
    schema = schema_of(COLUMNS)
    return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def decoded(
    decoder: ValueDecoder, values: Sequence[bytes | None], kinds: Sequence[str] | None = None
) -> list[dict[str, object]]:
    result = decoder.decode(a_batch(values, kinds))
    assert result.schema.equals(decoder.schema)
    result.validate(full=True)
    rows: list[dict[str, object]] = result.to_pylist()
    return rows
