"""Parts of a stream: logs of one (group, service), each with the cuts between which it holds everything.

A site begins a new part whenever its member starts anew, and one more for each range that it fetches. In `rto` and
`rso` cuts mean the same in all of them, so a part can be known to go on where another ends; in `uu` each part is an
order of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from intergroup_core.ids import MemberId, Service, ViewId
from intergroup_core.log.cut import BEHIND_ALL, Cut, OrderCut, SourceCut
from intergroup_core.log.entry import EntryHeader, Kind
from intergroup_core.log.index import ViewPlace
from intergroup_core.log.lineage import Lineage
from intergroup_core.log.reader import LogReader, Place

C = TypeVar("C", OrderCut, SourceCut)


class Part(Generic[C]):
    """One log of a stream, as it was at the last look."""

    begin: C
    """All that lies behind this cut, up to `end`, is here."""
    end: C
    """What is damaged at the end of the log lies behind it."""

    def __init__(self, reader: LogReader) -> None:
        self.reader = reader
        self.empty = reader.stop == reader.first
        places = [place for segment in reader.segments for place in segment.index.view_places()]
        self.views: dict[ViewId, None] = dict.fromkeys(place.view for place in places)
        """In the order of the log."""
        self._first = None if self.empty else next(reader.entries(reader.first, check=False)).header
        self._first_view = places[0] if places else None

    @property
    def first_timestamp(self) -> int:
        """Of its first message or view; of an empty one, where it lies."""
        found = (segment.index.totals.first_timestamp for segment in self.reader.segments)
        return next((timestamp for timestamp in found if timestamp), 0)

    @property
    def order(self) -> tuple[int, bool]:
        """By which parts stand in a stream; one without entries stands behind what it follows."""
        return self.first_timestamp, self.empty

    @property
    def _carried(self) -> ViewPlace | None:
        """The view that was in force where the log begins, where it says so."""
        return self._first_view if self._first is not None and self._first.carried else None

    @property
    def _complete_upto(self) -> Cut | None:
        """Up to where it was said to be complete, unless its end is damaged since."""
        return self.reader.manifest.upto if self.reader.damaged_end is None else None

    def holds(self, cut: C) -> bool:
        """Whether a cut lies in this part, its two ends included."""
        raise NotImplementedError

    def goes_on_from(self, end: C) -> bool:
        """Whether all behind the end of another part, which reaches to the beginning of this one, is here."""
        raise NotImplementedError


class OrderPart(Part[OrderCut]):
    """Of `rto`: cuts are points of the one order, told apart by their view where the order began again."""

    def __init__(self, reader: LogReader) -> None:
        super().__init__(reader)
        after, upto = reader.manifest.after, self._complete_upto
        if isinstance(after, OrderCut):
            self.begin = after
        elif self._first is not None and self._carried is not None:
            # It tells what came last before it.
            self.begin = OrderCut(self._first.last_timestamp, MemberId(self._first.source), self._carried.view)
        else:
            self.begin = self._own_beginning()
        self._behind_gaps = self._views_behind_gaps()
        head = reader.head()
        assert isinstance(head, OrderCut)
        self.end = upto if isinstance(upto, OrderCut) else self.begin if self.empty else head
        # A cut that does not name its view would be held with all that is in that view.
        self._begins_in = self.begin.view or (self._carried.view if self._carried is not None else None)
        self._ends_in = self.end.view or head.view

    def _views_behind_gaps(self) -> dict[ViewId, tuple[int, int] | None]:
        """Views that a member may have come into in their midst, and right before which message; None where none came.

        The log tells of such a view, but not of what was sent in it before."""
        found: dict[ViewId, tuple[int, int] | None] = {}
        for segment in self.reader.segments:
            for gap in segment.index.gaps["entry"].tolist():
                entered: ViewId | None = None
                for entry in self.reader.entries(gap + 1, self.reader.readable, check=False):
                    if entry.kind is Kind.DATA:
                        if entered is not None:
                            found[entered] = (entry.header.first_timestamp, entry.header.source - 1)
                        break
                    if entry.header.carried:
                        continue
                    if entry.kind is Kind.GAP or entered is not None:
                        break
                    entered = entry.install().view.id
                    found[entered] = None
        return found

    def _own_beginning(self) -> OrderCut:
        """Where nobody said what came before: a member is told the view in which it starts, but may start in its midst,
        so it is only from what follows that view that everything is here."""
        view: OrderCut | None = None
        for header in _placed(self.reader):
            # Nobody has the id 0, so there is a point right before everybody's messages.
            before = OrderCut(header.first_timestamp, MemberId(header.source - 1))
            if view is not None:
                return OrderCut(before.timestamp, before.sender, view.view)
            if header.kind != Kind.VIEW or self._first_view is None:
                return before
            view = OrderCut(header.first_timestamp, MemberId(header.source), self._first_view.view)
        return view or OrderCut(0, MemberId(0))

    @property
    def first_timestamp(self) -> int:
        return super().first_timestamp or self.begin.timestamp

    def holds(self, cut: OrderCut) -> bool:
        if cut in (self.begin, self.end):
            return True
        key = _key(cut)
        beyond = key > _key(self.end) and not self._ends_at(cut)
        if cut.view is None:
            return _key(self.begin) <= key and not beyond
        if (cut.view == self._ends_in and beyond) or (cut.view == self._begins_in and key < _key(self.begin)):
            return False
        if cut.view in self._behind_gaps and key != (cut.view.start, cut.view.leader):
            first = self._behind_gaps[cut.view]
            return first is not None and key >= first
        return cut.view in self.views or cut.view in (self.begin.view, self.end.view)

    def _ends_at(self, cut: OrderCut) -> bool:
        """Whether a cut is behind all of the timestamp at which this ends.

        A member that joins says so of where it begins: it knows the timestamp up to which its sponsor had delivered,
        and gets itself what that had not.
        """
        return cut.sender == BEHIND_ALL and cut.timestamp == self.end.timestamp

    def goes_on_from(self, end: OrderCut) -> bool:
        same_place = _key(self.begin) == _key(end) and None in (self.begin.view, end.view)
        return self.begin.view == end.view or same_place or self.holds(end)

    def place_of(self, cut: OrderCut) -> Place:
        """Where a cut that this part holds, or goes on from, lies in its log."""
        if cut.view is not None and cut.view not in self.views:
            return Place(self.reader.readable) if cut == self.end else self.reader.start()
        return self.reader.place_of(cut)


class SourcePart(Part[SourceCut]):
    """Of `rso`: cuts are points in the orders of all senders.

    Where nobody said behind which cut it begins, that is known of those senders only that have messages here: it can be
    read, but continues nothing, for others may have sent something in between.
    """

    def __init__(self, reader: LogReader) -> None:
        super().__init__(reader)
        after, upto = reader.senders_begin, self._complete_upto
        self.lineage: Lineage = reader.lineage()
        self.first_seqs, self.last_seqs = reader.first_seqs(), reader.last_seqs()
        """Of the messages that are in the log itself; `end` knows more where it was said between which cuts it lies."""
        self.skips = reader.skips()
        self.stated = after is not None
        if after is not None:
            self.begin = after
        else:
            first = {source: seq - 1 for source, seq in self.first_seqs.items()}
            missing = reader.manifest.missing
            if missing is not None:
                # Of those, too, of whom nothing is left; what follows is here, with whatever seq the first message has.
                first |= self.lineage.all_named(missing).seqs
            self.begin = SourceCut(first, self._first_view.view if self._first_view is not None else None)
        self.end = self.lineage.shortened(self._end(upto if isinstance(upto, SourceCut) else None))

    def _end(self, upto: SourceCut | None) -> SourceCut:
        lineage = self.lineage
        begin = lineage.all_named(self.begin)
        if upto is not None:
            # No further than it was asked for, though a view in it may say that more lies before that: it is not here.
            both = joined(begin, lineage.all_named(upto))
            return SourceCut(both.seqs, upto.view or next(reversed(self.views), None) or self.begin.view)
        view = next(reversed(self.views), None) or self.begin.view
        return joined(begin, lineage.reached(self.last_seqs, view))

    @property
    def first_timestamp(self) -> int:
        view = self.end.view
        return super().first_timestamp or (view.start if view is not None else 0)

    def holds(self, cut: SourceCut) -> bool:
        in_view = cut.view is None or cut.view in self.views or cut.view in (self.begin.view, self.end.view)
        begin, end = self.lineage.all_named(self.begin).seqs, self.lineage.all_named(self.end).seqs
        seqs = self.lineage.at(cut.view).placed(cut.seqs)
        above = all(seqs.get(source, 0) >= low for source, low in begin.items())
        below = all(seq <= end.get(source, 0) for source, seq in seqs.items())
        return in_view and above and below and not any(skip.is_within(seqs) for skip in self.skips)

    def goes_on_from(self, end: SourceCut) -> bool:
        return self.stated and (self.begin.view == end.view or end.view in self.views)


def joined(one: SourceCut, other: SourceCut) -> SourceCut:
    """Behind everything that two cuts are behind; the view is that of the later one, which is the second."""
    seqs = dict(one.seqs)
    for source, seq in other.seqs.items():
        seqs[source] = max(seq, seqs.get(source, 0))
    return SourceCut(seqs, other.view if other.view is not None else one.view)


def part_of(reader: LogReader) -> OrderPart | SourcePart:
    """The part that a log is; not for logs of `uu`."""
    return OrderPart(reader) if reader.manifest.service is Service.RTO else SourcePart(reader)


def says_something(reader: LogReader) -> bool:
    """Whether a log holds anything, if only that nothing lies between two cuts."""
    manifest = reader.manifest
    if manifest.fetching:
        return False  # nobody has compared it with its description yet
    return reader.stop > reader.first or (manifest.after is not None and manifest.upto is not None)


def cut_timestamp(cut: Cut | None) -> int:
    """A timestamp that a cut is known to be behind."""
    if isinstance(cut, OrderCut):
        return cut.timestamp
    return cut.view.start if isinstance(cut, SourceCut) and cut.view is not None else 0


def _key(cut: OrderCut) -> tuple[int, int]:
    return cut.timestamp, cut.sender


def _placed(reader: LogReader) -> Iterator[EntryHeader]:
    """Messages and views; a gap and a view that is carried have no place of their own."""
    for entry in reader.entries(reader.first, reader.readable, check=False):
        if entry.header.kind != Kind.GAP and not entry.header.carried:
            yield entry.header
