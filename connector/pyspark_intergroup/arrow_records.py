"""Arrow columns of text or bytes as records, without a copy of what is in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from intergroup_core.wire.records import RecordBatch


def records_of(column: pa.Array) -> RecordBatch:
    """Of text or bytes; null is an empty record."""
    if column.null_count:
        column = pc.fill_null(column, "" if is_text(column.type) else b"")
    wide = kinds.is_large_string(column.type) or kinds.is_large_binary(column.type)
    _, places, data = column.buffers()
    if places is None:
        return RecordBatch(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8))
    stored = np.frombuffer(places, dtype=np.int64 if wide else np.int32)
    offsets = stored[column.offset : column.offset + len(column) + 1].astype(np.int64)
    content = np.frombuffer(data if data is not None else b"", dtype=np.uint8)[int(offsets[0]) : int(offsets[-1])]
    return RecordBatch(offsets - offsets[0], content)


def joined_records(parts: Sequence[bytes | memoryview]) -> RecordBatch:
    """A record of each part."""
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)), out=offsets[1:])
    return RecordBatch(offsets, np.frombuffer(b"".join(parts), dtype=np.uint8))


def is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind))


def is_bytes(kind: pa.DataType) -> bool:
    return bool(kinds.is_binary(kind) or kinds.is_large_binary(kind))
