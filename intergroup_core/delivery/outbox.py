"""Records the application handed over that no message has taken yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from intergroup_core.errors import Backpressure, LocalProtocolError, MessageTooLarge
from intergroup_core.wire.records import (
    COUNT_BYTES,
    LENGTH_BYTES,
    MAX_RECORDS,
    Payload,
    RecordBatch,
    pack_one,
    pack_sized,
)

Records = Sequence[bytes] | RecordBatch
"""What may be sent: a sequence of records, or a batch that has them end to end and must not change until it is sent."""


class _Block:
    """The records of one call, taken from the front."""

    __slots__ = ("_ends", "_records", "_sizes", "count", "start", "taken", "total")

    def __init__(self, records: Records, sizes: NDArray[np.int64] | None, total: int) -> None:
        self._records = records
        self._sizes = sizes
        self._ends: NDArray[np.int64] | None = None
        self.count = len(records)
        self.total = total
        """Bytes of all of them, lengths counted."""
        self.start = 0
        self.taken = 0
        """Bytes of the records before `start`, lengths counted."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        if self._sizes is None:
            self._sizes = _sizes(self._records)
        return self._sizes

    def fits(self, room: int) -> bool:
        return self.total - self.taken <= room

    @property
    def empty(self) -> bool:
        return self.start == self.count

    def first_bytes(self) -> int:
        """Of the next record, its length counted."""
        return self.total if self.count == 1 else LENGTH_BYTES + int(self.sizes[self.start])

    def only(self) -> memoryview | bytes:
        """The record of a block that has one."""
        records = self._records
        if isinstance(records, RecordBatch):
            return records.data[int(records.offsets[0]) : int(records.offsets[1])].data
        return records[0]

    def take(self, room: int, most: int, parts: list[memoryview | bytes]) -> NDArray[np.int64] | None:
        """The sizes of the next records that fit; their bytes are added to the parts."""
        start, count = self.start, self.count
        if self.fits(room) and count - start <= most:
            stop, taken = count, self.total
        else:
            ends = self._running_ends()
            stop = min(int(np.searchsorted(ends, self.taken + room, side="right")), start + most)
            if stop == start:
                return None
            taken = int(ends[stop - 1])
        records = self._records
        if isinstance(records, RecordBatch):
            parts.append(records.data[int(records.offsets[start]) : int(records.offsets[stop])].data)
        else:
            parts.extend(records if stop - start == count else records[start:stop])
        self.start, self.taken = stop, taken
        return self.sizes[start:stop]

    def _running_ends(self) -> NDArray[np.int64]:
        """Where each record ends, lengths counted: needed only by a block that is cut."""
        if self._ends is None:
            self._ends = np.cumsum(self.sizes + LENGTH_BYTES)
        return self._ends


class _Whole:
    """A message that is made already and is not bundled with others."""

    __slots__ = ("payload", "records")

    def __init__(self, payload: Payload, records: int) -> None:
        self.payload = payload
        self.records = records


MESSAGE_SLACK = 4_096
"""What a message that is made already may have beside the bytes of its one record: lengths, a label."""
ROOM_FRACTION = 8
"""Who waits for room is told once an eighth of the queue is free, so that it is not woken for every message."""


class Outbox:
    """A queue bounded in bytes, from which messages are bundled."""

    def __init__(self, limit_bytes: int, max_message_bytes: int) -> None:
        self._limit = limit_bytes
        self._max_message = max_message_bytes
        self._blocks: deque[_Block | _Whole] = deque()
        self.bytes = 0
        """Of records and their lengths."""
        self._refused = 0
        """Bytes that somebody was told to wait with."""

    def __bool__(self) -> bool:
        return bool(self._blocks)

    @property
    def records(self) -> int:
        """Records that no message has taken."""
        return sum(block.records if isinstance(block, _Whole) else block.count - block.start for block in self._blocks)

    @property
    def free(self) -> int:
        return max(0, self._limit - self.bytes)

    def offer(self, records: Records) -> None:
        """Take all of the records, or none and say why."""
        if isinstance(records, (bytes, bytearray, memoryview)):
            raise LocalProtocolError("send takes a sequence of records; wrap a single one in a list")
        if not len(records):
            return
        if not isinstance(records, RecordBatch):
            records = tuple(records)  # the caller may do with its list what it likes
        sizes: NDArray[np.int64] | None = None
        if isinstance(records, tuple) and len(records) == 1:
            worst, largest = 0, len(records[0])  # the usual case of a caller who wants it there soon
        else:
            sizes = _sizes(records)
            worst = int(sizes.argmax())
            largest = int(sizes[worst])
        if largest > self._max_message:
            raise MessageTooLarge(
                f"record {worst} has {largest} bytes; the group takes at most {self._max_message}: "
                "split it or raise group.max_message_bytes at every member"
            )
        total = (largest if sizes is None else int(sizes.sum())) + LENGTH_BYTES * len(records)
        if self._blocks and total > self.free:
            self._refused = min(total, self._limit)
            raise Backpressure(f"{total} bytes offered, the send queue has room for {self.free}: wait for room")
        self._blocks.append(_Block(records, sizes, total))
        self.bytes += total

    def offer_messages(self, messages: Sequence[tuple[Payload, int]]) -> None:
        """Take messages that are made already, with the number of records in each: all of them, or none and say why."""
        total = sum(len(payload) for payload, _ in messages)
        largest = max((len(payload) for payload, _ in messages), default=0)
        if largest > self._max_message + MESSAGE_SLACK:
            raise MessageTooLarge(
                f"a message of {largest} bytes; the group takes at most {self._max_message}: "
                "split it or raise group.max_message_bytes at every member"
            )
        if self._blocks and total > self.free:
            self._refused = min(total, self._limit)
            raise Backpressure(f"{total} bytes offered, the send queue has room for {self.free}: wait for room")
        for payload, records in messages:
            self.offer_message(payload, records)

    def offer_message(self, payload: Payload, records: int = 0) -> None:
        """Take a message as it stands, whatever the room."""
        self._blocks.append(_Whole(payload, records))
        self.bytes += len(payload)

    def has_room_again(self) -> bool:
        """Whether, for the first time since records were refused, there is room for as many, and not just barely."""
        if not self._refused or self.free < max(self._refused, self._limit // ROOM_FRACTION):
            return False
        self._refused = 0
        return True

    def first_payload_bytes(self) -> int:
        """The least payload the next message can have."""
        block = self._blocks[0]
        if isinstance(block, _Whole):
            return len(block.payload)
        return COUNT_BYTES + block.first_bytes()

    def bundle(self, limit: int) -> tuple[Payload, int]:
        """The payload of the next message, of at least one record and else within a limit, and its records."""
        first = self._blocks[0]
        if isinstance(first, _Whole):
            self._blocks.popleft()
            self.bytes -= len(first.payload)
            return first.payload, first.records
        if first.count == 1 and len(self._blocks) == 1:
            self._blocks.popleft()
            self.bytes -= first.total
            return pack_one(first.only()), 1
        room = max(limit, self.first_payload_bytes()) - COUNT_BYTES
        sizes: list[NDArray[np.int64]] = []
        parts: list[memoryview | bytes] = []
        count = 0
        while self._blocks:
            block = self._blocks[0]
            if isinstance(block, _Whole):
                break
            if parts and room < limit // 2 and not block.fits(room):
                break  # cutting a block costs a copy of all that is bundled; a message half full is large enough
            before = block.taken
            taken = block.take(room, MAX_RECORDS - count, parts)
            if taken is None:
                break
            sizes.append(taken)
            count += len(taken)
            room -= block.taken - before
            self.bytes -= block.taken - before
            if block.empty:
                self._blocks.popleft()
        if count == 1:
            return pack_one(parts[0]), 1
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        return pack_sized(sizes[0] if len(sizes) == 1 else np.concatenate(sizes), data), count


def _sizes(records: Records) -> NDArray[np.int64]:
    if isinstance(records, RecordBatch):
        return records.offsets[1:] - records.offsets[:-1]
    return np.fromiter(map(len, records), dtype=np.int64, count=len(records))
