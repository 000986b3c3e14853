"""Records the application handed over that no message has taken yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from intergroup_core.errors import Backpressure, MessageTooLarge
from intergroup_core.wire.records import COUNT_BYTES, LENGTH_BYTES, MAX_RECORDS


class _Block:
    """The records of one call; `ends` are their running sizes with lengths."""

    __slots__ = ("ends", "records", "sizes", "start")

    def __init__(self, records: Sequence[bytes], sizes: NDArray[np.uint32]) -> None:
        self.records = records
        self.sizes = sizes
        self.ends = np.cumsum(sizes, dtype=np.int64) + LENGTH_BYTES * np.arange(1, len(records) + 1)
        self.start = 0

    def taken_bytes(self) -> int:
        return int(self.ends[self.start - 1]) if self.start else 0

    def fitting(self, room: int) -> int:
        """The index after the last record that fits."""
        return int(np.searchsorted(self.ends, self.taken_bytes() + room, side="right"))


class Outbox:
    """A queue bounded in bytes, from which messages are bundled."""

    def __init__(self, limit_bytes: int, max_message_bytes: int) -> None:
        self._limit = limit_bytes
        self._max_message = max_message_bytes
        self._blocks: deque[_Block] = deque()
        self.bytes = 0
        """Of records and their lengths."""

    def __bool__(self) -> bool:
        return bool(self._blocks)

    @property
    def free(self) -> int:
        return max(0, self._limit - self.bytes)

    def offer(self, records: Sequence[bytes]) -> None:
        """Take all of the records, or none and say why."""
        if not records:
            return
        sizes = np.fromiter(map(len, records), dtype=np.int64, count=len(records))
        largest = int(sizes.max())
        if largest > self._max_message:
            index = int(sizes.argmax())
            raise MessageTooLarge(
                f"record {index} has {largest} bytes; the group takes at most {self._max_message}: "
                "split it or raise group.max_message_bytes at every member"
            )
        total = int(sizes.sum()) + LENGTH_BYTES * len(records)
        if self._blocks and total > self.free:
            raise Backpressure(f"{total} bytes offered, the send queue has room for {self.free}: wait for room")
        self._blocks.append(_Block(records, sizes.astype(np.uint32)))
        self.bytes += total

    def first_payload_bytes(self) -> int:
        """The least payload the next message can have."""
        block = self._blocks[0]
        return COUNT_BYTES + LENGTH_BYTES + int(block.sizes[block.start])

    def bundle(self, limit: int) -> tuple[bytes, int]:
        """The payload of the next message, of at least one record and else within a limit, and its records."""
        room = max(limit, self.first_payload_bytes()) - COUNT_BYTES
        parts: list[bytes] = []
        lengths: list[NDArray[np.uint32]] = []
        count = 0
        while self._blocks and room > 0:
            block = self._blocks[0]
            stop = min(block.fitting(room), block.start + MAX_RECORDS - count)
            if stop == block.start:
                break
            used = int(block.ends[stop - 1]) - block.taken_bytes()
            lengths.append(block.sizes[block.start : stop])
            whole = block.start == 0 and stop == len(block.records)
            parts.extend(block.records if whole else block.records[block.start : stop])
            count += stop - block.start
            block.start = stop
            room -= used
            self.bytes -= used
            if stop == len(block.records):
                self._blocks.popleft()
        head = [np.array([count], dtype="<u4"), *lengths]
        return b"".join([np.concatenate(head).astype("<u4", copy=False).tobytes(), *parts]), count
