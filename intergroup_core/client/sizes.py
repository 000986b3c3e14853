"""Records as the channel carries them: their sizes, and their bytes end to end, in pieces that fit a message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from intergroup_core.errors import MessageTooLarge
from intergroup_core.wire.records import RecordBatch

PIECE_BYTES = 8_000_000
"""About what one request carries; a larger record is not cut."""


def packed_records(records: Sequence[bytes] | RecordBatch, most_bytes: int) -> Iterator[tuple[bytes, bytes]]:
    """Sizes as 32-bit numbers and bytes, of as many records at a time as make up a piece.

    A record beyond the group's largest is refused before the first piece goes.
    """
    if isinstance(records, RecordBatch):
        offsets = records.offsets
    else:
        offsets = np.zeros(len(records) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, records), dtype=np.int64, count=len(records)), out=offsets[1:])
    sizes = np.diff(offsets)
    if len(sizes) and sizes.max() > most_bytes:
        raise MessageTooLarge(
            f"record {int(sizes.argmax())} has {int(sizes.max())} bytes; the group takes at most {most_bytes}: "
            "split it or raise group.max_message_bytes at every member"
        )
    first, count = 0, len(sizes)
    while first < count:
        limit = int(offsets[first]) + PIECE_BYTES
        stop = max(first + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        if isinstance(records, RecordBatch):
            data = records.data[int(offsets[first]) : int(offsets[stop])].tobytes()
        else:
            data = b"".join(records[first:stop])
        yield sizes[first:stop].astype("<u4").tobytes(), data
        first = stop
