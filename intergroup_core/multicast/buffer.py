"""The message buffer: frames kept, as received, until every counted member has them (T3.5, R6)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque

from intergroup_core.ids import MemberId
from intergroup_core.wire.run import Run


class MessageBuffer:
    """Runs of every source by seq. It never drops what is not stable; its bound stops senders instead."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._runs: dict[MemberId, deque[Run]] = {}
        self.bytes = 0
        self.most_bytes = 0

    @property
    def free(self) -> int:
        return max(0, self._limit - self.bytes)

    def add(self, run: Run) -> None:
        runs = self._runs.get(run.source)
        if runs is None:
            runs = self._runs[run.source] = deque()
        if not runs or runs[-1].seq < run.seq:
            runs.append(run)
        else:
            runs.insert(bisect_left(runs, run.seq, key=lambda held: held.seq), run)
        self.bytes += run.nbytes
        if self.bytes > self.most_bytes:
            self.most_bytes = self.bytes

    def held(self, source: MemberId, first: int, last: int) -> list[Run]:
        """What is here of a range, in order."""
        runs = self._runs.get(source)
        if not runs:
            return []
        found: list[Run] = []
        at = max(0, bisect_right(runs, first, key=lambda held: held.seq) - 1)
        for index in range(at, len(runs)):
            run = runs[index]
            if run.seq > last:
                break
            start, stop = max(first, run.seq) - run.seq, min(last, run.last_seq) - run.seq + 1
            if start < stop:
                found.append(run.slice(start, stop))
        return found

    def newest(self, source: MemberId) -> Run | None:
        """The run with the highest seq of a source."""
        runs = self._runs.get(source)
        return runs[-1] if runs else None

    def drop_after(self, source: MemberId, seq: int) -> None:
        """Forget what a source sent after a seq: it is discarded by all (M4)."""
        runs = self._runs.get(source)
        while runs and runs[-1].last_seq > seq:
            run = runs.pop()
            self.bytes -= run.nbytes
            if run.seq <= seq:
                kept = run.slice(0, seq - run.seq + 1)
                runs.append(kept)
                self.bytes += kept.nbytes

    def drop_stable(self, stable: int) -> bool:
        """Forget every run that lies wholly at or below the stable timestamp; whether there was one."""
        dropped = False
        for runs in self._runs.values():
            while runs and runs[0].last_timestamp <= stable:
                self.bytes -= runs.popleft().nbytes
                dropped = True
        return dropped
