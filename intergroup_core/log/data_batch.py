"""Data rows as one Arrow batch; nothing in the pure part knows Arrow but this and `log/arrow.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from intergroup_core.ids import COUNTER_BITS, EPOCH_US, MemberId, format_member
from intergroup_core.log.messages import MessageColumns
from intergroup_core.log.text import POSITION_WIDTH, positions

_TIME = pa.timestamp("us", tz="UTC")


class Moved(NamedTuple):
    """Where the rows of a transaction are shown, which is not where they were staged."""

    timestamp: int
    sender: int
    ordinal: int = 0
    """Of the first message, among all of the transaction."""


class DataBatch:
    """Columns of data rows, each made when it is asked for."""

    def __init__(
        self,
        gathered: MessageColumns,
        group: str,
        view_id: str | None,
        name: Callable[[int], str],
        ordered: bool,
        moved: Moved | None = None,
    ) -> None:
        self._moved = moved
        self._gathered = gathered
        self._group = group
        self._view_id = view_id
        self._name = name
        self._ordered = ordered
        self._rows = gathered.rows
        self._counts = gathered.counts
        self._made: dict[bool, pa.Array] = {}

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([self._column(field) for field in schema], schema=schema)

    def _column(self, field: pa.Field) -> pa.Array:
        match field.name:
            case "value":
                offsets, data = self._gathered.values()
                return pa.Array.from_buffers(pa.binary(), self._rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
            case "seq":
                return self._per_message(self._gathered.seqs)
            case "lamport":
                return self._per_message(self._places_in_time())
            case "timestamp":
                return self._times(moved=self._moved is not None)
            case "sent_timestamp":
                return self._times(moved=False)
            case "record":
                return pa.array(self._records())
            case "position":
                return self._positions()
            case "sender":
                return self._of_senders(self._name)
            case "sender_id":
                return self._of_senders(lambda member: format_member(MemberId(member)))
            case "kind":
                return pa.repeat(pa.scalar("data"), self._rows)
            case "group_name":
                return pa.repeat(pa.scalar(self._group), self._rows)
            case "view_id":
                return pa.repeat(pa.scalar(self._view_id, pa.string()), self._rows)
            case "key":
                return self._keys()
            case "headers":
                return self._headers(field.type)
            case "txn":
                return self._txns()
            case _:
                return pa.nulls(self._rows, field.type)

    def _places_in_time(self) -> NDArray[np.uint64]:
        if self._moved is None:
            return self._gathered.timestamps
        return np.full(self._gathered.messages, self._moved.timestamp, dtype=np.uint64)

    def _per_message(self, numbers: NDArray[np.uint64]) -> pa.Array:
        return pa.array(np.repeat(numbers.astype(np.int64), self._counts))

    def _times(self, *, moved: bool) -> pa.Array:
        """What is asked for twice is made once."""
        if moved not in self._made:
            timestamps = self._places_in_time() if moved else self._gathered.timestamps
            times = (timestamps >> np.uint64(COUNTER_BITS)).astype(np.int64) + EPOCH_US
            self._made[moved] = pa.array(np.repeat(times, self._counts)).view(_TIME)
        return self._made[moved]

    def _records(self) -> NDArray[np.int32]:
        begins = np.cumsum(self._counts) - self._counts
        return np.arange(self._rows, dtype=np.int32) - np.repeat(begins.astype(np.int32), self._counts)

    def _positions(self) -> pa.Array:
        gathered = self._gathered
        if self._moved is not None:
            senders = np.full(gathered.messages, self._moved.sender, dtype=np.uint64)
            named = self._places_in_time(), senders, gathered.attachments.ordinals(gathered.messages)
        else:
            named = gathered.timestamps if self._ordered else gathered.places, gathered.senders, gathered.seqs
        text = positions(*named, self._counts, self._records())
        offsets = np.arange(self._rows + 1, dtype=np.int32) * np.int32(POSITION_WIDTH)
        return pa.Array.from_buffers(
            pa.string(), self._rows, [None, pa.py_buffer(offsets), pa.py_buffer(text.reshape(-1))]
        )

    def _keys(self) -> pa.Array:
        found = self._gathered.attachments.keys(self._rows)
        if found is None:
            return pa.nulls(self._rows, pa.binary())
        valid = np.packbits(found.valid, bitorder="little")
        buffers = [pa.py_buffer(valid), pa.py_buffer(found.offsets), pa.py_buffer(found.data)]
        return pa.Array.from_buffers(pa.binary(), self._rows, buffers)

    def _headers(self, kind: pa.ListType) -> pa.Array:
        """Lists that are empty where a record has none."""
        counts = np.zeros(self._rows + 1, dtype=np.int32)
        pairs: list[tuple[str, bytes | None]] = []
        for row, headers in self._gathered.attachments.headers():
            counts[row + 1] = len(headers)
            pairs += headers
        names = pa.array([name for name, _ in pairs], type=pa.string())
        values = pa.array([value for _, value in pairs], type=pa.binary())
        fields = pa.StructArray.from_arrays([names, values], fields=list(kind.value_type))
        offsets = pa.py_buffer(np.cumsum(counts, dtype=np.int32))
        return pa.Array.from_buffers(kind, self._rows, [None, offsets], children=[fields])

    def _txns(self) -> pa.Array:
        found = self._gathered.attachments.txns(self._gathered.messages)
        if found is None:
            return pa.nulls(self._rows, pa.string())
        which, texts = found
        indices = np.repeat(which, self._counts)
        return pa.array(texts, type=pa.string()).take(pa.array(indices, mask=indices < 0))

    def _of_senders(self, name: Callable[[int], str]) -> pa.Array:
        found, inverse = np.unique(self._gathered.senders, return_inverse=True)
        names = pa.array([name(member) for member in found.tolist()], type=pa.string())
        if len(found) == 1:
            return pa.repeat(names[0], self._rows)
        indices = pa.array(np.repeat(inverse.astype(np.int32), self._counts))
        return names.take(indices)
