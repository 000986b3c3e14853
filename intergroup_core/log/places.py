"""Places in a log: finds cuts, timestamps, views and messages by the indexes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import MemberId, ViewId
from intergroup_core.log.cut import EntryCut, OrderCut
from intergroup_core.log.entries import Entry, LogEntries
from intergroup_core.log.entry import Kind
from intergroup_core.ports import Disk
from intergroup_core.wire.chunk import Chunk

FOUND_CUTS = 16
"""Whose places are remembered."""


class Piece(NamedTuple):
    """An entry, or of a data entry the messages [first, stop)."""

    entry: Entry
    first: int
    stop: int

    @property
    def whole(self) -> bool:
        return self.first == 0 and self.stop == self.entry.header.messages

    def chunk(self) -> Chunk:
        """Its messages; not for views and gaps."""
        chunk = self.entry.chunk()
        if self.whole:
            return chunk
        ends = chunk.run.ends
        run = chunk.run.slice(ends[self.first - 1] + 1 if self.first else 0, ends[self.stop - 1] + 1)
        return Chunk(() if self.first else chunk.head, run)


class Place(NamedTuple):
    """Before a message of an entry: the first of its messages where nothing else is said."""

    entry: int
    message: int = 0


class LogPlaces(LogEntries):
    """The log in one directory, and where things are in it."""

    def __init__(self, disk: Disk) -> None:
        self._found: dict[OrderCut, Place] = {}
        """Cuts behind which there is more, so that their place stays: who plans asks for each of them several times."""
        super().__init__(disk)

    def start(self) -> Place:
        return Place(self.first)

    def end(self) -> Place:
        return Place(self.stop)

    def place_of_timestamp(self, timestamp: int) -> Place:
        """Before the first entry that has this timestamp or a later one; in `rto` that is exact to the message."""
        start = self._point_of_timestamp(self.first, timestamp)
        for entry in self.entries(start, self.readable, check=False):
            header = entry.header
            if header.last_timestamp >= timestamp and header.kind != Kind.GAP and not header.carried:
                if header.kind == Kind.DATA and header.first_timestamp < timestamp:
                    return Place(header.entry, _messages_upto(entry, timestamp - 1))
                return Place(header.entry)
        return self.end()

    def place_of_message(self, sender: MemberId, seq: int) -> Place:
        """Before the first message of a sender whose seq is not lower."""
        for segment in self._segments:
            start = segment.index.point_of_message(sender, seq)
            if start is None:
                continue
            for entry in self.entries(start, segment.readable, check=False):
                header = entry.header
                if header.kind == Kind.DATA and header.source == sender and header.last_seq >= seq:
                    run = entry.chunk().run
                    return Place(header.entry, bisect_left(run.ends, seq - run.seq))
        return self.end()

    def message_from(self, sender: MemberId, seq: int) -> int | None:
        """The first seq of a sender's messages here that is not lower; None where there is none."""
        place = self.place_of_message(sender, seq)
        if place.entry == self.stop:
            return None
        run = next(self.entries(place.entry, place.entry + 1, check=False)).chunk().run
        return run.seq + run.ends[place.message]

    def place_of_view(self, view: ViewId) -> Place:
        """Before a view; where it was removed but still is in force at the beginning, before what is left of it."""
        for segment in self._segments:
            for place in segment.index.view_places():
                if place.view == view and (place.own or segment is self._segments[0]):
                    return Place(place.entry)
        raise RangeUnavailable(f"{self._disk.where} does not hold view {view}; fetch the range from another site")

    def place_of(self, cut: OrderCut | EntryCut) -> Place:
        """Where a cut lies in this log."""
        if isinstance(cut, EntryCut):
            if cut.log != self.manifest.log:
                raise RangeUnavailable(
                    f"the cut is of log {cut.log:016x} and {self._disk.where} is another; read it where it was made"
                )
            return Place(cut.entry)
        if cut == self.manifest.upto and self.damaged_end is None:
            return self.end()  # with a gap that may stand there, of which no cut tells
        known = self._found.get(cut)
        behind = known if known is not None and known.entry >= self.first else self._place_behind(cut)
        if behind.entry <= self.first + 1 and self._is_removed((cut.timestamp, cut.sender)):
            raise RangeUnavailable(
                f"{self._disk.where} does not go back so far: what follows the cut was removed; read it at another site"
            )
        return behind

    def _place_behind(self, cut: OrderCut) -> Place:
        begin = self.place_of_view(cut.view).entry if cut.view is not None else self.first
        start = max(begin, self._point_of_timestamp(begin, cut.timestamp))
        behind = Place(start)
        wanted = (cut.timestamp, cut.sender)
        for entry in self.entries(start, self.readable, check=False):
            header = entry.header
            if header.kind == Kind.GAP or header.carried:
                continue
            if (header.first_timestamp, header.source) > wanted or self._ends_view(entry, cut.view):
                break
            if (header.last_timestamp, header.source) > wanted:
                bound = cut.timestamp if header.source <= cut.sender else cut.timestamp - 1
                behind = Place(header.entry, _messages_upto(entry, bound))
                break
            behind = Place(header.entry + 1)
            if cut.view is not None and (header.last_timestamp, header.source) == wanted:
                break  # what follows may be damaged, and does not matter
        else:
            return behind  # as far as the log goes by now
        if len(self._found) >= FOUND_CUTS:
            del self._found[next(iter(self._found))]
        self._found[cut] = behind
        return behind

    def _ends_view(self, entry: Entry, view: ViewId | None) -> bool:
        """Whether the view that a cut lies in, where it names one, is over here."""
        return view is not None and entry.kind is Kind.VIEW and entry.install().view.id != view

    def _is_removed(self, wanted: tuple[int, int]) -> bool:
        """Whether a cut lies before what was removed last from the beginning of the log."""
        if not self.first:
            return False
        header = next(self.entries(self.first, self.first + 1, check=False)).header
        before = (header.last_timestamp, header.source) if header.carried else (header.first_timestamp, header.source)
        return wanted < before

    def _point_of_timestamp(self, begin: int, timestamp: int) -> int:
        """An entry not before `begin`, before which every timestamp is lower than this one, or `begin`."""
        start = begin
        for segment in self._segments:
            before = int(segment.index.points["highest"][0]) if len(segment.index.points) else timestamp
            if before >= timestamp:
                break
            start = max(start, segment.index.point_of_timestamp(timestamp)[0])
        return start


def _messages_upto(entry: Entry, timestamp: int) -> int:
    """How many messages of a data entry are ordered at or before a timestamp."""
    run = entry.chunk().run
    return bisect_right(run.ends, timestamp - run.timestamp)
