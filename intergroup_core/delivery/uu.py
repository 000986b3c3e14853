"""Unreliable unordered delivery: what the network brings, at once (T4.6)."""

from __future__ import annotations

from intergroup_core.counters import Counters
from intergroup_core.delivery.assembly import Assembly
from intergroup_core.ids import MemberId
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.run import Run


class UnreliableUnordered:
    """Delivers original data only, never repairs (D5); a message of which a frame is missing is given up."""

    MAX_SOURCES = 4_096
    """Sources whose message in progress is remembered; beyond it the oldest is forgotten."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._sources: dict[MemberId, tuple[int, Assembly]] = {}
        self._ready: list[Chunk] = []

    def arrived(self, run: Run) -> None:
        if run.repaired:
            self._counters.repairs_ignored += 1
            return
        if run.change:
            self._sources[run.source] = (run.last_seq + 1, Assembly())
            return
        expected, assembly = self._sources.pop(run.source, (0, Assembly()))
        if run.seq != expected and assembly.partial:
            assembly.clear()
            self._counters.unreliable_incomplete += 1
        whole = run if assembly.partial or run.fragment == 0 else self._from_first_message(run)
        if whole is not None and (chunk := assembly.add(whole)) is not None:
            self._ready.append(chunk)
        if len(self._sources) >= self.MAX_SOURCES:
            self._sources.pop(next(iter(self._sources)))
        self._sources[run.source] = (run.last_seq + 1, assembly)

    def _from_first_message(self, run: Run) -> Run | None:
        """The part of a run that starts in mid-message which is of any use."""
        self._counters.unreliable_incomplete += 1
        start = run.ends[0] + 1 if run.ends else run.count
        return run.slice(start, run.count) if start < run.count else None

    def ordered(self, run: Run) -> None:
        """Order is of no interest here."""

    def promised(self, source: MemberId, timestamp: int) -> None:
        """Nor are promises."""

    def take(self) -> list[Chunk]:
        ready, self._ready = self._ready, []
        return ready

    def acknowledged(self, own: int) -> int:
        """It needs nothing repaired, so it holds nothing back."""
        return own
