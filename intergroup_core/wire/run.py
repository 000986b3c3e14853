"""Runs: consecutive frames of one sender, the unit of the hot path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from intergroup_core.config import HEADER_BYTES
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.wire.checksum import Words
from intergroup_core.wire.exchange import Repair

Bytes = NDArray[np.uint8]


class Run:
    """Checked data frames of equal size with consecutive seqs and timestamps.

    `ends` are the indices of frames that end a message, `end_lengths` their payload lengths; every other
    frame is full. An ordered membership message is a run of its own, marked `change`. `first_words` are those of the
    frames, where whoever made the run had them side by side. Not frozen for speed; nobody changes one after it is made.
    """

    __slots__ = (
        "_first_words",
        "change",
        "count",
        "end_lengths",
        "ends",
        "fragment",
        "frames",
        "repair",
        "seq",
        "source",
        "timestamp",
        "view_tag",
    )

    def __init__(
        self,
        source: MemberId,
        seq: int,
        timestamp: int,
        view_tag: int,
        frames: Words,
        fragment: int,
        ends: list[int],
        end_lengths: list[int],
        repair: Repair | None = None,
        change: bool = False,
        first_words: Words | None = None,
    ) -> None:
        self.source = source
        self.seq = seq
        self.timestamp = timestamp
        self.view_tag = view_tag
        self.frames = frames
        self.count = len(frames)
        self.fragment = fragment
        self.ends = ends
        self.end_lengths = end_lengths
        self.repair = repair
        self.change = change
        self._first_words = first_words

    @property
    def repaired(self) -> bool:
        return self.repair is not None

    @property
    def last_seq(self) -> int:
        return self.seq + self.count - 1

    @property
    def last_timestamp(self) -> Timestamp:
        return Timestamp(self.timestamp + self.count - 1)

    @property
    def frame_bytes(self) -> int:
        return int(self.frames.shape[1]) * 8

    @property
    def nbytes(self) -> int:
        return self.count * int(self.frames.shape[1]) * 8

    @property
    def first_words(self) -> Words:
        """Of every frame, its checksum in it; where they lie side by side, none of them misses the cache."""
        return self.frames[:, 0] if self._first_words is None else self._first_words

    def slice(self, start: int, stop: int) -> Run:
        """Frames [start, stop) as a run of their own."""
        if start == 0 and stop == self.count:
            return self
        ends: list[int] = []
        lengths: list[int] = []
        previous_end = -1
        for end, length in zip(self.ends, self.end_lengths, strict=True):
            if end >= stop:
                break
            if end < start:
                previous_end = end
            else:
                ends.append(end - start)
                lengths.append(length)
        fragment = self.fragment + start if previous_end < 0 else start - previous_end - 1
        return Run(
            self.source,
            self.seq + start,
            self.timestamp + start,
            self.view_tag,
            self.frames[start:stop],
            fragment,
            ends,
            lengths,
            self.repair,
            self.change,
            None if self._first_words is None else self._first_words[start:stop],
        )

    def payload(self, start: int, stop: int) -> Bytes:
        """The payloads of frames [start, stop), without headers, still in place."""
        return self.frames[start:stop].view(np.uint8)[:, HEADER_BYTES:]

    def __repr__(self) -> str:
        return f"Run({self.source:016x}, seq {self.seq}..{self.last_seq}, ts {self.timestamp:x}, ends {self.ends[:4]})"
