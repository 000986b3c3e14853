"""Reliable source ordered delivery: each source's messages in its order, without gap or duplicate (T4.7)."""

from __future__ import annotations

from collections.abc import Mapping

from intergroup_core.delivery.assembly import Assembly
from intergroup_core.ids import MemberId
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.run import Run


class _Source:
    __slots__ = ("assembly", "last_seq", "promise")

    def __init__(self, activation: int, promise: int) -> None:
        self.last_seq = activation - 1
        """The activation point is the first frame to deliver (D1)."""
        self.promise = promise
        self.assembly = Assembly()


class ReliableSourceOrdered:
    """Follows its active sources, each from its activation point; others are ignored."""

    MAX_GONE = 256
    """Departed sources remembered, in case they return; the oldest are forgotten."""

    def __init__(self, activations: Mapping[MemberId, int], start: int) -> None:
        self._sources: dict[MemberId, _Source] = {}
        self._gone: dict[MemberId, _Source] = {}
        self._ready: list[Chunk] = []
        for source, activation in activations.items():
            self.add(source, start, activation)

    def add(self, source: MemberId, promise: int, activation: int) -> None:
        """A new source is active from its first message on (D12); one that is here, or was before, goes on.

        Views follow the timestamp order, which may be behind: what a source said after it returned may have been
        delivered before its departure was.
        """
        present = self._sources.get(source)
        if present is None and (present := self._gone.pop(source, None)) is not None:
            self._sources[source] = present
        if present is None:
            self._sources[source] = _Source(activation, promise)
        else:
            present.promise = max(present.promise, promise)
            if activation - 1 > present.last_seq:
                present.last_seq = activation - 1
                present.assembly.clear()

    @property
    def sources(self) -> list[MemberId]:
        return list(self._sources)

    def remove(self, source: MemberId) -> None:
        """A departed source holds no acknowledgment back (D12)."""
        gone = self._sources.pop(source, None)
        if gone is not None:
            self._gone[source] = gone
            if len(self._gone) > self.MAX_GONE:
                self._gone.pop(next(iter(self._gone)))

    def arrived(self, run: Run) -> None:
        """Only what is in order counts."""

    def ordered(self, run: Run) -> None:
        source = self._sources.get(run.source)
        if source is None or run.last_seq <= source.last_seq:
            return
        fresh = run.slice(max(0, source.last_seq + 1 - run.seq), run.count)
        source.last_seq = fresh.last_seq
        source.promise = max(source.promise, fresh.last_timestamp)
        if fresh.change:
            return
        if (chunk := source.assembly.add(fresh)) is not None:
            self._ready.append(chunk)

    def promised(self, source: MemberId, timestamp: int) -> None:
        active = self._sources.get(source)
        if active is not None and timestamp > active.promise:
            active.promise = timestamp

    def take(self) -> list[Chunk]:
        ready, self._ready = self._ready, []
        return ready

    def acknowledged(self, own: int) -> int:
        """The least of its sources' promises, below any message in progress (D12)."""
        lowest = own
        for source in self._sources.values():
            begun = source.assembly.start_timestamp
            lowest = min(lowest, source.promise if begun is None else begun - 1)
        return lowest
