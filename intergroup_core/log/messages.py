"""The records of many messages as columns: one copy of their bytes, and numbers for each message.

Messages of one frame each, all alike, are taken by the run; of longer ones each costs a few calls, whatever the number
of its records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from intergroup_core.config import HEADER_BYTES
from intergroup_core.log.entry import EntryHeader
from intergroup_core.log.reader import Piece
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.records import COUNT_BYTES, LENGTH_BYTES, MAX_RECORDS
from intergroup_core.wire.run import Bytes, Run

_SENDER, _SEQ, _TIMESTAMP, _PLACE, _COUNT = range(5)
"""What is known of a message, a column each."""
_COUNTED_UP = np.array([0, 1, 1, 1, 0], dtype=np.uint64)
"""What grows from one message of one frame to the next."""
_LENGTH_AT = 12
"""Where a frame's header has the length of its payload."""


class MessageColumns:
    """What names and orders each message that is made of records, how many there are, and their bytes."""

    def __init__(self) -> None:
        self.rows = 0
        self.value_bytes = 0
        self._blocks: list[NDArray[np.uint64]] = []
        self._waiting: list[tuple[int, int, int, int, int]] = []
        """Messages that came one by one, not yet a block."""
        self._lengths: list[NDArray[np.uint32]] = []
        """Of the records."""
        self._parts: list[_Part] = []

    @property
    def senders(self) -> NDArray[np.uint64]:
        return self._column(_SENDER)

    @property
    def seqs(self) -> NDArray[np.uint64]:
        return self._column(_SEQ)

    @property
    def timestamps(self) -> NDArray[np.uint64]:
        return self._column(_TIMESTAMP)

    @property
    def places(self) -> NDArray[np.uint64]:
        return self._column(_PLACE)

    @property
    def counts(self) -> NDArray[np.int64]:
        return self._column(_COUNT).astype(np.int64)

    def _column(self, which: int) -> NDArray[np.uint64]:
        self._settle()
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0][:, which]

    def _settle(self) -> None:
        if self._waiting:
            self._blocks.append(np.array(self._waiting, dtype=np.uint64))
            self._waiting = []

    def add(self, piece: Piece) -> None:
        """The messages of a piece of a data entry."""
        header = piece.entry.header
        if header.frames == 1:
            self._add_short(header, piece.entry.payload())
            return
        chunk = piece.entry.chunk()
        run, head = chunk.run, chunk.head
        place, first = header.place, piece.first
        if first == 0 and head:
            self._add_long(chunk, 0, place)
            first = 1
        if first >= piece.stop:
            return
        begin = run.ends[first - 1] + 1 if first else 0
        frames_each_one = run.ends[piece.stop - 1] - begin == piece.stop - 1 - first
        if frames_each_one and self._add_alike(run, first, piece.stop, begin, place):
            return
        for at in range(first, piece.stop):
            self._add_long(chunk, at, place)

    def _add_short(self, header: EntryHeader, payload: memoryview) -> None:
        """The usual entry of a quiet group: one message in one frame."""
        size = int.from_bytes(payload[_LENGTH_AT : _LENGTH_AT + 2], "little")
        body = payload[HEADER_BYTES : HEADER_BYTES + size]
        count = int.from_bytes(body[:COUNT_BYTES], "little")
        start = COUNT_BYTES + LENGTH_BYTES * count
        if size < COUNT_BYTES or count > MAX_RECORDS or start > size:
            return
        lengths = np.frombuffer(body, dtype="<u4", count=count, offset=COUNT_BYTES)
        if start + int(lengths.sum(dtype=np.int64)) != size:
            return
        self._waiting.append((header.source, header.last_seq, header.last_timestamp, header.place + 1, count))
        self._lengths.append(lengths)
        self._add_part(_Part(np.frombuffer(body, dtype=np.uint8).reshape(1, -1), b"", start), count)

    def _add_alike(self, run: Run, first: int, stop: int, begin: int, place: int) -> bool:
        """Messages of one frame whose records have the same lengths, all at once."""
        lengths = run.end_lengths[first:stop]
        if len(set(lengths)) != 1 or lengths[0] < COUNT_BYTES:
            return False
        octets = run.payload(begin, begin + stop - first)
        count = int.from_bytes(octets[0, :COUNT_BYTES].tobytes(), "little")
        start = COUNT_BYTES + LENGTH_BYTES * count
        if not 0 < count <= MAX_RECORDS or start > lengths[0]:
            return False
        heads = octets[:, :start]
        if not (heads == heads[0]).all():
            return False
        sizes = heads[0, COUNT_BYTES:].copy().view("<u4")
        if int(sizes.sum(dtype=np.int64)) + start != lengths[0]:
            return False
        messages = stop - first
        block = np.empty((messages, 5), dtype=np.uint64)
        base = (run.source, run.seq + begin, run.timestamp + begin, place + first + 1, count)
        np.add(np.array(base, dtype=np.uint64), _COUNTED_UP * np.arange(messages, dtype=np.uint64)[:, None], out=block)
        self._settle()
        self._blocks.append(block)
        self._lengths.append(np.tile(sizes, messages))
        self._add_part(_Part(octets[:, start : lengths[0]], b"", 0), messages * count)
        return True

    def _add_long(self, chunk: Chunk, at: int, place: int) -> None:
        """One message, of however many frames."""
        run = chunk.run
        begin = run.ends[at - 1] + 1 if at else 0
        end = run.ends[at]
        body = run.payload(begin, end + 1)
        head = b"" if at or not chunk.head else b"".join(part.payload(0, part.count).tobytes() for part in chunk.head)
        size = len(head) + (len(body) - 1) * body.shape[1] + run.end_lengths[at]
        lengths = _lengths(head, body, size)
        if lengths is None:
            return
        start = COUNT_BYTES + LENGTH_BYTES * len(lengths)
        self._waiting.append((run.source, run.seq + end, run.timestamp + end, place + at + 1, len(lengths)))
        self._lengths.append(lengths)
        self._add_part(_Part(body, head, start, size), len(lengths))

    def _add_part(self, part: _Part, rows: int) -> None:
        self._parts.append(part)
        self.rows += rows
        self.value_bytes += part.value_bytes

    def values(self) -> tuple[NDArray[np.int32], Bytes]:
        """Offsets and bytes of all records, laid end to end by one copy.

        A message is copied whole, so that its lengths land on the end of the one before it, which is copied after
        it and puts that right.
        """
        slack = max((part.skipped for part in self._parts), default=0)
        place = np.empty(slack + self.value_bytes, dtype=np.uint8)
        stop = len(place)
        for part in reversed(self._parts):
            part.copy_to(place, stop)
            stop -= part.value_bytes
        offsets = np.zeros(self.rows + 1, dtype=np.int32)
        if self._lengths:
            np.cumsum(np.concatenate(self._lengths), out=offsets[1:], dtype=np.int32)
        return offsets, place[slack:]


class _Part:
    """Bytes of records that lie next to each other but for what stands between frames."""

    __slots__ = ("_body", "_head", "_size", "skipped", "value_bytes")

    def __init__(self, body: Bytes, head: bytes, skipped: int, size: int | None = None) -> None:
        self._body = body
        self._head = head
        self._size = body.size if size is None else size
        self.skipped = skipped
        self.value_bytes = self._size - skipped

    def copy_to(self, place: Bytes, stop: int) -> None:
        """Write it so that it ends at `stop`; what is skipped goes before its beginning."""
        at = stop - self._size
        if self._head:
            place[at : at + len(self._head)] = np.frombuffer(self._head, dtype=np.uint8)
            at += len(self._head)
        count, width = self._body.shape
        full = (stop - at) // width
        if full:
            place[at : at + full * width].reshape(full, width)[:] = self._body[:full]
            at += full * width
        if at < stop:
            place[at:stop] = self._body[count - 1, : stop - at]


def _lengths(head: bytes, body: Bytes, size: int) -> NDArray[np.uint32] | None:
    """The lengths of a message's records, None where they do not add up."""
    if size < COUNT_BYTES:
        return None
    count = int.from_bytes(_begin(head, body, COUNT_BYTES).tobytes(), "little")
    start = COUNT_BYTES + LENGTH_BYTES * count
    if count > MAX_RECORDS or start > size:
        return None
    lengths: NDArray[np.uint32] = _begin(head, body, start)[COUNT_BYTES:].view("<u4")
    return lengths if start + int(lengths.sum(dtype=np.int64)) == size else None


def _begin(head: bytes, body: Bytes, wanted: int) -> Bytes:
    """The first bytes of a message, copied."""
    rest = max(0, wanted - len(head))
    rows = body[: -(-rest // body.shape[1])] if rest else body[:0]
    begin = np.concatenate((np.frombuffer(head, dtype=np.uint8), rows.reshape(-1)))[:wanted]
    return np.ascontiguousarray(begin)
