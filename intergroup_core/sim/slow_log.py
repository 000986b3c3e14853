"""A member's log that takes its time: what is appended is durable a while later, in order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from random import Random

from intergroup_core.ids import MemberId
from intergroup_core.sim.scheduler import Scheduler
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.run import Run

MAX_FRAMES = 256
"""Given at a time."""


class SlowLog:
    """How long it takes is simulated, and that it still has everything; what a crash leaves is another's matter."""

    def __init__(self, scheduler: Scheduler, rng: Random, longest_ns: int) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self._longest_ns = longest_ns
        self._busy_until = 0
        self._runs: dict[MemberId, list[Run]] = {}

    def append(self, chunk: Chunk, done: Callable[[], None]) -> None:
        self._runs.setdefault(chunk.source, []).extend((*chunk.head, chunk.run))
        ready = self._scheduler.now + self._rng.randrange(self._longest_ns)
        self._busy_until = max(self._busy_until, ready)
        self._scheduler.at(self._busy_until, done)

    def held(self, source: MemberId, first: int, last: int) -> list[Run]:
        """What is here of a range, the beginning of it where it is long."""
        found: list[Run] = []
        last = min(last, first + MAX_FRAMES - 1)
        runs = self._runs.get(source, [])
        for run in runs[max(0, bisect_right(runs, first, key=lambda run: run.seq) - 1) :]:
            if run.seq > last:
                break
            start, stop = max(first, run.seq) - run.seq, min(last, run.last_seq) - run.seq + 1
            if start < stop:
                found.append(run.slice(start, stop))
        return found
