"""Some entries of a log that follow each other, read as if they were a log of their own."""

from __future__ import annotations

from intergroup_core.effects import Install
from intergroup_core.ids import ViewId
from intergroup_core.log.cut import Cut
from intergroup_core.log.entry import Kind
from intergroup_core.log.index import IndexBuilder
from intergroup_core.log.reader import LogReader, Place
from intergroup_core.log.segment import OpenedSegment


class LogSpan(LogReader):
    """Entries [first, stop) of a log that has no damage in it, as that was at its last look."""

    def __init__(self, log: LogReader, first: int, stop: int) -> None:
        self._log = log
        self._first, self._stop = first, stop
        super().__init__(log.disk)

    @property
    def first(self) -> int:
        return self._first

    @property
    def stop(self) -> int:
        return self._stop

    @property
    def readable(self) -> int:
        return self._stop

    def refresh(self) -> None:
        """It stays what it is."""
        self.manifest = self._log.manifest
        held = (each for each in self._log.segments if each.first < self._stop and each.stop > self._first)
        self._segments = [self._held_of(segment) for segment in held]

    def _held_of(self, segment: OpenedSegment) -> OpenedSegment:
        first, stop = max(segment.first, self._first), min(segment.stop, self._stop)
        if (first, stop) == (segment.first, segment.stop):
            return segment
        builder = IndexBuilder(segment.first, int(segment.index.points["highest"][0]))
        for entry in self._log.entries(first, stop, check=False):
            view = entry.install().view.id if entry.kind is Kind.VIEW else None
            builder.add(entry.header, entry.offset, view)
        return OpenedSegment(segment.first, builder.index())

    # The view in force may stand before what is read here.

    def install_before(self, entry: int) -> Install | None:
        return self._log.install_before(entry)

    def install_at(self, cut: Cut | Place) -> Install | None:
        return self._log.install_at(cut)

    def place_of_view(self, view: ViewId) -> Place:
        return max(self._log.place_of_view(view), Place(self._first - 1))
