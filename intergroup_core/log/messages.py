"""The records of many messages as columns: one copy of their bytes, and numbers for each message.

Messages of one frame each, all alike, are taken by the run; of longer ones each costs a few calls, whatever the number
of its records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intergroup_core.log.reader import Piece
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.records import COUNT_BYTES, LENGTH_BYTES, MAX_RECORDS
from intergroup_core.wire.run import Bytes, Run

_NOTHING: NDArray[np.int64] = np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class MessageColumns:
    """For each message that is made of records: what names and orders it, and how many there are."""

    senders: list[NDArray[np.uint64]]
    seqs: list[NDArray[np.uint64]]
    timestamps: list[NDArray[np.uint64]]
    places: list[NDArray[np.uint64]]
    counts: list[NDArray[np.int64]]
    lengths: list[NDArray[np.uint32]]
    """Of the records."""
    parts: list[_Part]
    rows: int = 0
    value_bytes: int = 0

    @classmethod
    def empty(cls) -> MessageColumns:
        return cls([], [], [], [], [], [], [])

    def add(self, piece: Piece) -> None:
        """The messages of a piece of a data entry."""
        chunk = piece.entry.chunk()
        run, head = chunk.run, chunk.head
        place = piece.entry.header.place
        first = piece.first
        if first == 0 and head:
            self._add_long(chunk, 0, place)
            first = 1
        if first >= piece.stop:
            return
        ends = np.array(run.ends[first : piece.stop], dtype=np.int64)
        begins = np.empty_like(ends)
        begins[0] = run.ends[first - 1] + 1 if first else 0
        begins[1:] = ends[:-1] + 1
        if len(ends) > 1 and (ends == begins).all() and self._add_alike(run, first, piece.stop, begins, place):
            return
        for at in range(first, piece.stop):
            self._add_long(chunk, at, place)

    def _add_alike(self, run: Run, first: int, stop: int, frames: NDArray[np.int64], place: int) -> bool:
        """Messages of one frame whose records have the same lengths, all at once."""
        lengths = run.end_lengths[first:stop]
        if len(set(lengths)) != 1 or lengths[0] < COUNT_BYTES:
            return False
        octets = run.payload(int(frames[0]), int(frames[-1]) + 1)
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
        messages = len(frames)
        ramp = np.arange(messages, dtype=np.uint64)
        base = np.uint64(int(frames[0]))
        self.senders.append(np.full(messages, run.source, dtype=np.uint64))
        self.seqs.append(np.uint64(run.seq) + base + ramp)
        self.timestamps.append(np.uint64(run.timestamp) + base + ramp)
        self.places.append(np.uint64(place + first + 1) + ramp)
        self.counts.append(np.full(messages, count, dtype=np.int64))
        self.lengths.append(np.tile(sizes, messages))
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
        self.senders.append(np.array([run.source], dtype=np.uint64))
        self.seqs.append(np.array([run.seq + end], dtype=np.uint64))
        self.timestamps.append(np.array([run.timestamp + end], dtype=np.uint64))
        self.places.append(np.array([place + at + 1], dtype=np.uint64))
        self.counts.append(np.array([len(lengths)], dtype=np.int64))
        self.lengths.append(lengths)
        self._add_part(_Part(body, head, start, size), len(lengths))

    def _add_part(self, part: _Part, rows: int) -> None:
        self.parts.append(part)
        self.rows += rows
        self.value_bytes += part.value_bytes

    def values(self) -> tuple[NDArray[np.int32], Bytes]:
        """Offsets and bytes of all records, laid end to end by one copy.

        A message is copied whole, so that its lengths land on the end of the one before it, which is copied after
        it and puts that right.
        """
        slack = max((part.skipped for part in self.parts), default=0)
        place = np.empty(slack + self.value_bytes, dtype=np.uint8)
        stop = len(place)
        for part in reversed(self.parts):
            part.copy_to(place, stop)
            stop -= part.value_bytes
        offsets = np.zeros(self.rows + 1, dtype=np.int32)
        if self.lengths:
            np.cumsum(np.concatenate(self.lengths), out=offsets[1:], dtype=np.int32)
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
