"""Records inside a message: a count, an array of lengths, then the bytes, as an Arrow column wants them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intergroup_core.wire.run import Bytes

COUNT_BYTES = 4
LENGTH_BYTES = 4
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


def payload_bytes(record_bytes: int, records: int) -> int:
    """The payload that so many records of so many bytes in all take."""
    return COUNT_BYTES + LENGTH_BYTES * records + record_bytes


def pack_records(records: Sequence[bytes]) -> list[bytes]:
    """The payload of a message as parts to be written one after the other."""
    count = len(records)
    lengths = np.empty(count + 1, dtype="<u4")
    lengths[0] = count
    if count == 1:
        lengths[1] = len(records[0])
    else:
        lengths[1:] = np.fromiter(map(len, records), dtype=np.uint32, count=count)
    return [lengths.tobytes(), *records]


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
