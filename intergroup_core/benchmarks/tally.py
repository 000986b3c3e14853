"""The receiving application of a benchmark: sums lengths and first bytes of every record it is handed."""

from __future__ import annotations

import hashlib
import struct
import time

import numpy as np

from intergroup_core.benchmarks.channel import Fields
from intergroup_core.runtime.inbox import Event
from intergroup_core.wire.chunk import Chunk

Sample = tuple[int, int, int]
"""An instant, and the bytes and records up to it."""
_NAME = struct.Struct("<QQ").pack


class Tally:
    """Sums over records, how they grew while watched, and a digest of the order in which messages came."""

    def __init__(self, *, digest: bool) -> None:
        self.records = 0
        self.bytes = 0
        self.first_bytes = 0
        self.messages = 0
        self._order = hashlib.blake2b(digest_size=16) if digest else None
        self._begin = self._end = 0
        self._first: Sample | None = None
        self._last: Sample = (0, 0, 0)

    def add(self, event: Event) -> None:
        if not isinstance(event, Chunk):
            return
        for batch in event.batches():
            offsets = batch.offsets
            starts = offsets[:-1]
            self.records += len(starts)
            self.bytes += int(offsets[-1])
            self.first_bytes += int(np.add.reduce(batch.data[starts], dtype=np.int64))
        self.messages += event.count
        if self._order is not None:
            first = event.run.seq
            for end in event.run.ends:
                self._order.update(_NAME(event.source, first + end))
        if self._begin <= (at := time.monotonic_ns()) <= self._end:
            self._last = (at, self.bytes, self.records)
            self._first = self._first or self._last

    def watch(self, begin: int, end: int) -> None:
        """Measure growth between two instants of the monotonic clock."""
        self._begin, self._end = begin, end

    def growth(self) -> Fields:
        """Bytes and records a second from the first to the last delivery inside what was watched."""
        if self._first is None or self._first == self._last:
            return {"bytes_per_s": 0.0, "records_per_s": 0.0}
        (at, size, count), (later, larger, more) = self._first, self._last
        seconds = (later - at) / 1e9
        return {"bytes_per_s": (larger - size) / seconds, "records_per_s": (more - count) / seconds}

    def sums(self) -> Fields:
        return {"records": self.records, "bytes": self.bytes, "first_bytes": self.first_bytes}

    @property
    def order(self) -> str | None:
        return self._order.hexdigest() if self._order is not None else None
