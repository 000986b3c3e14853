"""Reliable timestamp ordered delivery: one order for the whole group (T4.8, D2, D3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from intergroup_core.counters import Counters
from intergroup_core.delivery.assembly import Assembly
from intergroup_core.ids import MAX_TIMESTAMP, MemberId
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.run import Run


class _Source:
    __slots__ = ("assembly", "by_keepalive", "id", "promise", "queue")

    def __init__(self, source: MemberId, promise: int) -> None:
        self.id = source
        self.promise = promise
        self.by_keepalive = False
        self.assembly = Assembly()
        self.queue: deque[Chunk] = deque()

    def lowest_undelivered(self) -> int | None:
        """Timestamp of the first frame that is here and not delivered."""
        return self.queue[0].start_timestamp if self.queue else self.assembly.start_timestamp


class ReliableTimestampOrdered:
    """A queue and a promise per source; the least complete message goes when no source can still undercut it.

    A member's own promise to itself is unbounded: its clock has seen everything it delivers, so whatever it
    sends later is above.
    """

    def __init__(self, me: MemberId, sources: Iterable[MemberId], start: int, counters: Counters) -> None:
        self._counters = counters
        self._sources = {source: _Source(source, MAX_TIMESTAMP if source == me else start) for source in sources}
        self._me = me
        self.delivered = start
        """The timestamp of the last message delivered: the group's delivered time (D4)."""
        self.blocked = False
        """Whether a complete message waits for another source."""

    def arrived(self, run: Run) -> None:
        """Only what is in order counts."""

    def ordered(self, run: Run) -> None:
        source = self._sources[run.source]
        self._raise(source, run.last_timestamp, by_keepalive=False)
        if (chunk := source.assembly.add(run)) is not None:
            source.queue.append(chunk)

    def promised(self, source: MemberId, timestamp: int) -> None:
        self._raise(self._sources[source], timestamp, by_keepalive=True)

    def _raise(self, source: _Source, timestamp: int, *, by_keepalive: bool) -> None:
        if timestamp > source.promise:
            source.promise = timestamp
            source.by_keepalive = by_keepalive

    def take(self) -> list[Chunk]:
        taken: list[Chunk] = []
        self.blocked = False
        while (source := self._least()) is not None:
            chunk = source.queue[0]
            first = chunk.first_timestamp
            limit = self._limit(source, first)
            if first > limit:
                self.blocked = True
                break
            if chunk.last_timestamp <= limit:
                source.queue.popleft()
            else:
                chunk, source.queue[0] = chunk.cut(limit)
                self._counters.run_splits += 1
            self.delivered = chunk.last_timestamp
            taken.append(chunk)
        return taken

    def _least(self) -> _Source | None:
        """The source whose head is least by (timestamp, sender id)."""
        least: _Source | None = None
        least_first = 0
        for source in self._sources.values():
            if source.queue:
                first = source.queue[0].first_timestamp
                if least is None or first < least_first or (first == least_first and source.id < least.id):
                    least, least_first = source, first
        return least

    def _limit(self, least: _Source, first: int) -> int:
        """Up to which timestamp messages of the least source precede everything of the others."""
        limit = int(MAX_TIMESTAMP)
        by_keepalive = False
        for other in self._sources.values():
            if other is least:
                continue
            if other.queue:
                head = other.queue[0].first_timestamp
                bound = head if least.id < other.id else head - 1
            else:
                bound = other.promise
                by_keepalive |= other.by_keepalive
            if bound < limit:
                limit = bound
        if by_keepalive and first <= limit:
            self._counters.keepalive_deliveries += 1
        return limit

    def blocked_on(self) -> list[tuple[MemberId, int]]:
        """Sources whose promise the least message waits for, and the promise it needs."""
        source = self._least()
        if source is None:
            return []
        wanted = source.queue[0].first_timestamp
        return [
            (other.id, wanted)
            for other in self._sources.values()
            if other is not source and not other.queue and other.promise < wanted
        ]

    def acknowledged(self, own: int) -> int:
        lowest = own
        for source in self._sources.values():
            begun = source.lowest_undelivered()
            bound = source.promise if begun is None else begun - 1
            if bound < lowest:
                lowest = bound
        return lowest
