"""Goes through a range of a stream, in the order of this site's logs, and knows at each step where the range could end.

Only headers are looked at. A gap has no place of its own in an order, so nothing ends right behind one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from intergroup_core.ids import COUNTER_BITS, MemberId, ViewId
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.entry import UNKNOWN_RECORDS, EntryHeader, Kind
from intergroup_core.log.reader import Piece
from intergroup_core.log.standings import Passed
from intergroup_core.log.stream import StreamReader
from pyspark_intergroup.transactions import LostTransaction, Transaction


class Step(NamedTuple):
    """What a log holds next."""

    piece: Piece
    rows: int
    """As the senders state them; of a part of an entry, estimated."""
    nbytes: int
    first: int
    last: int
    """Timestamps."""
    visible: tuple[Transaction | LostTransaction, ...] = ()
    """Transactions whose rows follow right behind it, for who reads what is committed."""

    @property
    def ends(self) -> bool:
        """Whether a range can end right behind it."""
        return self.piece.entry.header.kind != Kind.GAP


class Course:
    """The steps of a range; `cut` is where the last one led."""

    def __init__(self, reader: StreamReader, start: Cut, stop: Cut) -> None:
        self._reader = reader
        self._start = start
        self._begun = False
        self._stop = stop
        self._log, self._entry = (start.log, start.entry) if isinstance(start, EntryCut) else (0, 0)
        self._last: tuple[int, MemberId] = (0, MemberId(0))
        self._view: ViewId | None = None if isinstance(start, EntryCut) else start.view
        self._passed = Passed()

    @property
    def cut(self) -> Cut:
        match self._start:
            case EntryCut():
                return EntryCut(self._log, self._entry)
            case OrderCut():
                timestamp, sender = self._last
                return OrderCut(timestamp, sender, self._view) if timestamp else self._start
            case SourceCut():
                return self._passed.cut if self._begun else self._start

    def reached(self, source: MemberId) -> int:
        """In `rso`, where a sender stands."""
        return self._passed.reached(source)

    def steps(self) -> Iterator[Step]:
        if isinstance(self._start, SourceCut) and isinstance(self._stop, SourceCut):
            self._passed = self._reader.passed(self._start, self._stop)
            self._begun = True
        for piece in self._reader.pieces(self._start, self._stop, check=False):
            for step in self._steps_of(piece):
                self._pass(step)
                yield step

    def _steps_of(self, piece: Piece) -> Iterator[Step]:
        yield step_of(piece)

    def _pass(self, step: Step) -> None:
        header = step.piece.entry.header
        self._log, self._entry = header.log, header.entry + 1
        if header.kind == Kind.VIEW:
            install = step.piece.entry.install()
            self._view = install.view.id
            self._passed.enter(install)
        if header.kind == Kind.GAP:
            self._passed.skip()
            return
        source = MemberId(header.source)
        self._last = step.last, source
        if header.kind == Kind.DATA and isinstance(self._start, SourceCut):
            self._passed.data(source, _last_seq(step.piece))


class Moment(NamedTuple):
    """Steps that must not be parted by the end of a batch."""

    cut: Cut
    rows: int
    nbytes: int
    last: int


def moments(course: Course, *, by_time: bool) -> Iterator[Moment]:
    """A course by where a batch may end: behind any step or, by time, only where the next is of a later microsecond.

    Rows show microseconds, and a reader's watermark takes a row for late that comes after one of the same time.
    """
    rows = nbytes = last = 0
    passed = False
    cut: Cut | None = None
    for step in course.steps():
        if cut is not None and not (by_time and step.first >> COUNTER_BITS <= last >> COUNTER_BITS):
            yield Moment(cut, rows, nbytes, last)
            rows = nbytes = 0
            passed = False
        rows += step.rows + sum(each.rows for each in step.visible)
        nbytes += step.nbytes + sum(each.nbytes for each in step.visible)
        passed = True
        if step.ends:
            cut, last = course.cut, step.last
        else:
            cut = None
    if passed:
        yield Moment(course.cut, rows, nbytes, last)


def cut_before_time(course: Course, start: Cut, stop: Cut, timestamp: int, *, by_time: bool) -> Cut:
    """The last cut on a course before which every row has a lower timestamp."""
    cut = start
    for moment in moments(course, by_time=by_time):
        if moment.last >= timestamp:
            return cut
        cut = moment.cut
    return stop


def cut_before_view(course: Course, start: Cut, view: ViewId) -> Cut | None:
    """The last cut on a course before a view's own row; None where that is not on it."""
    cut = start
    for step in course.steps():
        header = step.piece.entry.header
        if header.kind == Kind.VIEW and step.piece.entry.install().view.id == view:
            return cut
        if step.ends:
            cut = course.cut
    return None


def step_of(piece: Piece) -> Step:
    header = piece.entry.header
    if header.kind != Kind.DATA or piece.whole:
        rows = _stated_rows(header)
        return Step(piece, rows, header.size, header.first_timestamp, header.last_timestamp)
    run = piece.entry.chunk().run
    part = (piece.stop - piece.first) / header.messages
    return Step(
        piece,
        max(1, round(_stated_rows(header) * part)),
        max(1, round(header.size * part)),
        run.timestamp + run.ends[piece.first],
        run.timestamp + run.ends[piece.stop - 1],
    )


def _stated_rows(header: EntryHeader) -> int:
    if header.kind != Kind.DATA:
        return 1
    return header.records if header.records != UNKNOWN_RECORDS else header.messages


def _last_seq(piece: Piece) -> int:
    header = piece.entry.header
    if piece.stop == header.messages:
        return header.last_seq
    run = piece.entry.chunk().run
    return run.seq + run.ends[piece.stop - 1]
