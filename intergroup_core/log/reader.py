"""Reads a log: finds cuts, timestamps and messages by the indexes, and gives what lies between two places.

It needs nobody's help: what a writer appended since is seen after `refresh`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from intergroup_core.effects import Install
from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import MemberId, Service, ViewId
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.entries import Entry, LogEntries
from intergroup_core.log.entry import Kind
from intergroup_core.log.skips import Skip, skips_of
from intergroup_core.wire.chunk import Chunk


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


class RangeReader(Protocol):
    """What gives the content of ranges: one log, or a stream of several."""

    def pieces(self, start: Cut, stop: Cut, *, check: bool = True) -> Iterator[Piece]: ...

    def install_at(self, cut: Cut) -> Install | None:
        """The view in force at a cut, where that is known."""


class LogReader(LogEntries):
    """The log in one directory, with its places."""

    def start(self) -> Place:
        return Place(self.first)

    def end(self) -> Place:
        return Place(self.stop)

    def place_of_timestamp(self, timestamp: int) -> Place:
        """Before the first entry that has this timestamp or a later one; in `rto` that is exact to the message."""
        start = self._point_of_timestamp(self.first, timestamp)
        for entry in self.entries(start, check=False):
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
            for entry in self.entries(start, segment.stop, check=False):
                header = entry.header
                if header.kind == Kind.DATA and header.source == sender and header.last_seq >= seq:
                    run = entry.chunk().run
                    return Place(header.entry, bisect_left(run.ends, seq - run.seq))
        return self.end()

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
        if cut == self.manifest.upto:
            return self.end()  # with a gap that may stand there, of which no cut tells
        begin = self.place_of_view(cut.view).entry if cut.view is not None else self.first
        start = max(begin, self._point_of_timestamp(begin, cut.timestamp))
        behind = Place(start)
        wanted = (cut.timestamp, cut.sender)
        for entry in self.entries(start, check=False):
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
        if behind.entry <= self.first + 1 and self._is_removed(wanted):
            raise RangeUnavailable(
                f"{self._disk.where} does not go back so far: what follows the cut was removed; read it at another site"
            )
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

    def pieces(self, start: Cut | Place, stop: Cut | Place, *, check: bool = True) -> Iterator[Piece]:
        """Everything between two points, in the order of this log; views that are only carried are left out."""
        if isinstance(start, SourceCut) or isinstance(stop, SourceCut):
            if not isinstance(start, SourceCut) or not isinstance(stop, SourceCut):
                raise RangeUnavailable("a range has both its ends in the order of one service; give two cuts of rso")
            yield from self._source_pieces(start, stop, check=check)
            return
        begin = start if isinstance(start, Place) else self.place_of(start)
        end = stop if isinstance(stop, Place) else self.place_of(stop)
        for entry in self.entries(begin.entry, end.entry + bool(end.message), check=check):
            header = entry.header
            if header.carried:
                continue
            first = begin.message if header.entry == begin.entry else 0
            last = end.message if header.entry == end.entry else header.messages
            if header.kind != Kind.DATA or first < last:
                yield Piece(entry, first, last)

    def _source_pieces(self, start: SourceCut, stop: SourceCut, *, check: bool) -> Iterator[Piece]:
        """Of each sender the seqs behind one cut and not behind the other, and the views between theirs.

        A gap belongs to the view that follows it, and to every range of which it skipped something: by a cut behind it
        nobody can tell whether somebody heard of it.
        """
        wanted = {
            source: (start.seqs.get(source, 0), last)
            for source, last in stop.seqs.items()
            if last > start.seqs.get(source, 0)
        }
        views = (
            self.place_of_view(start.view).entry + 1 if start.view is not None else self.first,
            self.place_of_view(stop.view).entry + 1 if stop.view is not None else self.first,
        )
        ends = [self._last_place(source, last) for source, (_, last) in wanted.items()]
        begins = [self.place_of_message(source, low + 1).entry for source, (low, _) in wanted.items()]
        if self.first:
            self._refuse_removed({source: low for source, (low, _) in wanted.items()})
        if views[1] > views[0]:
            begins.append(views[0])
            ends.append(Place(views[1] - 1))
        crossed = [skip for skip in self.skips() if skip.is_crossed(*wanted.get(skip.source, (0, 0)))]
        begins += [skip.first_gap for skip in crossed]
        ends += [Place(skip.last_gap) for skip in crossed]
        if not begins:
            return
        last = min(self.stop, max(end.entry for end in ends) + 1)
        for entry in self.entries(min(begins), last, check=False):
            header = entry.header
            piece = Piece(entry, 0, header.messages)
            if header.kind == Kind.DATA:
                low, high = wanted.get(MemberId(header.source), (0, -1))
                if header.last_seq <= low or header.first_seq > high:
                    continue
                if header.first_seq <= low or header.last_seq > high:
                    run = entry.chunk().run
                    piece = Piece(entry, bisect_right(run.ends, low - run.seq), bisect_right(run.ends, high - run.seq))
                    if piece.first >= piece.stop:
                        continue
            elif header.carried or not (views[0] <= header.entry < views[1] or _has_skipped(entry, crossed)):
                continue
            if check:
                entry.check()
            yield piece

    def skips(self) -> list[Skip]:
        """What gaps skipped, by sender."""
        seen = (self.first, self.stop)
        if self._skips is None or self._skips[0] != seen:
            self._skips = seen, skips_of(self)
        return self._skips[1]

    _skips: tuple[tuple[int, int], list[Skip]] | None = None
    """As they were when the log held these entries."""

    def _last_place(self, source: MemberId, last: int) -> Place:
        """Where a sender's messages up to a seq end; a complete log need not have one of that very seq."""
        place, upto = self.place_of_message(source, last), self.manifest.upto
        complete = isinstance(upto, SourceCut) and upto.seqs.get(source, 0) >= last
        if place.entry >= self.stop and not complete:
            raise RangeUnavailable(f"{self._disk.where} does not reach so far; wait, or fetch it from another site")
        return place

    def install_at(self, cut: Cut | Place) -> Install | None:
        """The view in force at a cut, None where this log does not know it."""
        if isinstance(cut, Place):
            return self._install_at_entry(cut.entry)
        if isinstance(cut, EntryCut):
            return self.install_before(self.place_of(cut).entry)
        if cut.view is not None:
            entry = self.place_of_view(cut.view).entry
            return next(self.entries(entry, entry + 1)).install()
        if isinstance(cut, SourceCut):
            return None
        return self._install_at_entry(self.place_of(cut).entry)

    def _install_at_entry(self, entry: int) -> Install | None:
        # A view that is carried stands behind the place where it is in force already.
        carried = entry < self.stop and next(self.entries(entry, entry + 1, check=False)).header.carried
        return self.install_before(entry + carried)

    def _refuse_removed(self, wanted: dict[MemberId, int]) -> None:
        """In a log whose beginning was removed, a sender's first seq must follow at once."""
        firsts: dict[int, int] = {}
        for segment in self._segments:
            for source, first, _ in segment.index.sources.tolist():
                firsts.setdefault(source, first)
        for source, low in wanted.items():
            if firsts.get(source, 0) > low + 1:
                raise RangeUnavailable(
                    f"{self._disk.where} holds of {source:016x} what follows {firsts[source]}, not {low}; "
                    "read it at another site"
                )

    def head(self) -> Cut:
        """The cut behind everything that is held, by the order of the log's service."""
        match self.manifest.service:
            case Service.UU:
                return EntryCut(self.manifest.log, self.stop)
            case Service.RTO:
                context = self.context()
                view = context.install.view.id if context.install is not None else None
                return OrderCut(context.timestamp, MemberId(context.source), view)
            case Service.RSO:
                seqs: dict[MemberId, int] = {}
                for segment in self._segments:
                    seqs |= {MemberId(source): last for source, _, last in segment.index.sources.tolist()}
                install = self.install_before(self.stop)
                return SourceCut(seqs, install.view.id if install is not None else None)


def _has_skipped(entry: Entry, skips: list[Skip]) -> bool:
    """Whether an entry is a gap that some of these go back to."""
    return entry.kind is Kind.GAP and any(skip.first_gap <= entry.header.entry <= skip.last_gap for skip in skips)


def _messages_upto(entry: Entry, timestamp: int) -> int:
    """How many messages of a data entry are ordered at or before a timestamp."""
    run = entry.chunk().run
    return bisect_right(run.ends, timestamp - run.timestamp)
