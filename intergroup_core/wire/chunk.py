"""Chunks: one or more complete, consecutive messages of one sender, as they are handed over."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intergroup_core.config import HEADER_BYTES
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.wire.header import HEADER_WORDS
from intergroup_core.wire.labels import Label, remembered_label
from intergroup_core.wire.records import RecordBatch, Rows, label_in, unpack_records, unpack_rows
from intergroup_core.wire.run import Bytes, Run

_LOW32 = np.uint64(0xFFFFFFFF)


class Message(NamedTuple):
    """One message, named and ordered by its last frame (D8)."""

    source: MemberId
    seq: int
    timestamp: Timestamp
    payload: Bytes

    def batch(self) -> RecordBatch | None:
        return unpack_records(self.payload)

    def rows(self) -> Rows | None:
        return unpack_rows(self.payload)

    def label(self) -> Label | None:
        """What its records are staged for."""
        packed = label_in(self.payload)
        return remembered_label(packed) if packed else None

    def records(self) -> list[bytes]:
        """The records, none where the payload is not made of records."""
        batch = self.batch()
        return batch.to_list() if batch is not None else []


class Chunk:
    """Whole messages: `head` holds runs that begin the first one, `run` ends with the last frame of the last.

    A chunk is split only where an order cuts it; the payload is put together when somebody reads it.
    """

    __slots__ = ("head", "run")

    def __init__(self, head: tuple[Run, ...], run: Run) -> None:
        self.head = head
        self.run = run

    @property
    def source(self) -> MemberId:
        return self.run.source

    @property
    def change(self) -> bool:
        """Whether this is an ordered membership message, which is not for the application."""
        return self.run.change

    @property
    def count(self) -> int:
        return len(self.run.ends)

    @property
    def start_timestamp(self) -> int:
        """Of the first frame of the first message."""
        return self.head[0].timestamp if self.head else self.run.timestamp

    @property
    def first_timestamp(self) -> int:
        """By which the first message is ordered."""
        return self.run.timestamp + self.run.ends[0]

    @property
    def last_timestamp(self) -> int:
        """By which the last message is ordered."""
        return self.run.timestamp + self.run.count - 1

    @property
    def first_seq(self) -> int:
        return self.head[0].seq if self.head else self.run.seq

    @property
    def last_seq(self) -> int:
        return self.run.last_seq

    @property
    def nbytes(self) -> int:
        return self.run.nbytes + sum(run.nbytes for run in self.head)

    def cut(self, bound: int) -> tuple[Chunk, Chunk]:
        """The messages at or below a timestamp, and the others; neither part may be empty."""
        run = self.run
        inside = bisect_right(run.ends, bound - run.timestamp)
        stop = run.ends[inside - 1] + 1
        return Chunk(self.head, run.slice(0, stop)), Chunk((), run.slice(stop, run.count))

    def first_word(self) -> int:
        """What the payload of the first message begins with: the number of its records and how they are laid out."""
        first = (self.head[0] if self.head else self.run).frames[0]
        return int(first[HEADER_WORDS]) & 0xFFFFFFFF if len(first) > HEADER_WORDS else 0

    def further_words(self) -> NDArray[np.uint64]:
        """The same of all messages but the first."""
        run = self.run
        if len(run.ends) == 1 or run.frames.shape[1] == HEADER_WORDS:
            return np.zeros(len(run.ends) - 1, dtype=np.uint64)
        starts = np.array(run.ends[:-1], dtype=np.int64) + 1
        words: NDArray[np.uint64] = run.frames[starts, HEADER_WORDS] & _LOW32
        return words

    def messages(self) -> Iterator[Message]:
        run, head, start = self.run, self.head, 0
        for end, length in zip(run.ends, run.end_lengths, strict=True):
            payload = _join(head, run, start, end + 1, length)
            yield Message(run.source, run.seq + end, Timestamp(run.timestamp + end), payload)
            head, start = (), end + 1

    def batches(self) -> Iterator[RecordBatch]:
        """The records of every message, without an object per record."""
        for message in self.messages():
            batch = message.batch()
            if batch is not None:
                yield batch


def _join(head: tuple[Run, ...], run: Run, start: int, stop: int, last_length: int) -> Bytes:
    """A message's payload in one piece: in place where it is a single frame, else by one copy."""
    if not head and stop - start == 1:
        single: Bytes = run.frames[start].view(np.uint8)[HEADER_BYTES : HEADER_BYTES + last_length]
        return single
    body = run.payload(start, stop)
    parts = [*(part.payload(0, part.count) for part in head), body]
    joined = np.empty(sum(part.size for part in parts), dtype=np.uint8)
    at = 0
    for part in parts:
        joined[at : at + part.size].reshape(part.shape)[:] = part
        at += part.size
    return joined[: at - body.shape[1] + last_length]
