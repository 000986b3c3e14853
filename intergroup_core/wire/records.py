"""Records inside a message: a count, an array of lengths, then the bytes, as an Arrow column wants them."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intergroup_core.wire.run import Bytes

COUNT_BYTES = 4
LENGTH_BYTES = 4
_ONE_RECORD = struct.Struct("<II")
MAX_RECORDS = (1 << 24) - 1
"""The upper byte of the count names the layout, of which 0 is the only one."""


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Record i is data[offsets[i]:offsets[i + 1]]."""

    offsets: NDArray[np.int64]
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_list(self) -> list[bytes]:
        data = self.data.tobytes()
        offsets = self.offsets.tolist()
        return [data[start:stop] for start, stop in itertools.pairwise(offsets)]


class Payload:
    """A message's payload in two parts, count and lengths and then the records' bytes, copied only into frames."""

    __slots__ = ("_head", "_tail")

    def __init__(self, head: bytes, data: bytes | memoryview) -> None:
        self._head = head
        self._tail = data

    def __len__(self) -> int:
        return len(self._head) + len(self._tail)

    def copy_to(self, place: memoryview) -> None:
        """Write all of it at the beginning of a place that is large enough."""
        head = len(self._head)
        place[:head] = self._head
        place[head : head + len(self._tail)] = self._tail

    def slice(self, start: int, stop: int) -> Bytes:
        """Bytes [start, stop) of the two parts laid end to end."""
        head = len(self._head)
        data = np.frombuffer(self._tail, dtype=np.uint8)
        if start >= head:
            return data[start - head : stop - head]
        lengths = np.frombuffer(self._head, dtype=np.uint8)
        if stop <= head:
            return lengths[start:stop]
        return np.concatenate((lengths[start:], data[: stop - head]))

    def copy_rows(self, rows: Bytes) -> None:
        """Fill rows of equal width from the beginning."""
        count, width = rows.shape
        mixed = min(count, -(-len(self._head) // width))
        if mixed:
            rows[:mixed] = self.slice(0, mixed * width).reshape(mixed, width)
        if count > mixed:
            rows[mixed:] = self.slice(mixed * width, count * width).reshape(count - mixed, width)


def pack_one(record: bytes | memoryview) -> Payload:
    """The payload of a message with a single record."""
    return Payload(_ONE_RECORD.pack(1, len(record)), record)


def pack_records(records: Sequence[bytes]) -> Payload:
    """The payload of a message made of these records."""
    sizes = np.fromiter(map(len, records), dtype="<u4", count=len(records))
    return pack_sized(sizes, b"".join(records))


def pack_sized(sizes: NDArray[np.integer[Any]], data: bytes | memoryview) -> Payload:
    """The same from lengths and bytes that lie end to end."""
    head = np.empty(len(sizes) + 1, dtype="<u4")
    head[0] = len(sizes)
    head[1:] = sizes
    return Payload(head.tobytes(), data)


def unpack_records(payload: Bytes) -> RecordBatch | None:
    """The records of a payload, or None where its lengths do not add up."""
    if len(payload) < COUNT_BYTES:
        return None
    count = int.from_bytes(payload[:COUNT_BYTES].tobytes(), "little")
    start = COUNT_BYTES + LENGTH_BYTES * count
    if count > MAX_RECORDS or start > len(payload):
        return None
    offsets = np.empty(count + 1, dtype=np.int64)
    offsets[0] = 0
    np.cumsum(payload[COUNT_BYTES:start].view("<u4"), out=offsets[1:], dtype=np.int64)
    if start + int(offsets[count]) != len(payload):
        return None
    return RecordBatch(offsets, payload[start:])
