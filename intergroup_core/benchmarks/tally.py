"""The receiving application of a benchmark: sums lengths and first bytes of every record it is handed."""

from __future__ import annotations

import hashlib
import struct
import time

import numpy as np

from intergroup_core.benchmarks.channel import Fields
from intergroup_core.runtime.inbox import Event
from intergroup_core.wire.chunk import Chunk

SAMPLE_NS = 20_000_000
_NAME = struct.Struct("<QQ").pack


class Tally:
    """Sums over records, how they grew in time, and a digest of the order in which messages came."""

    def __init__(self, *, digest: bool) -> None:
        self.records = 0
        self.bytes = 0
        self.first_bytes = 0
        self.messages = 0
        self._order = hashlib.blake2b(digest_size=16) if digest else None
        self._samples: list[tuple[int, int, int]] = []
        self._next_sample = 0

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
        at = time.monotonic_ns()
        if at >= self._next_sample:
            self._next_sample = at + SAMPLE_NS
            self._samples.append((at, self.bytes, self.records))

    def growth(self, begin: int, end: int) -> Fields:
        """Bytes and records a second between two instants."""
        inside = [sample for sample in self._samples if begin <= sample[0] <= end]
        if len(inside) < 2:
            return {"bytes_per_s": 0.0, "records_per_s": 0.0}
        (at, size, count), (later, larger, more) = inside[0], inside[-1]
        seconds = (later - at) / 1e9
        return {"bytes_per_s": (larger - size) / seconds, "records_per_s": (more - count) / seconds}

    def sums(self) -> Fields:
        return {"records": self.records, "bytes": self.bytes, "first_bytes": self.first_bytes}

    @property
    def order(self) -> str | None:
        return self._order.hexdigest() if self._order is not None else None
