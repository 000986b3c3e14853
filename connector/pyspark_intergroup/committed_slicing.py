"""Cuts a range of `rto` into what single tasks read of it, what is committed being read where it was decided.

A task reads several ranges one after the other: what is not staged, then the rows of a transaction, then what follows
its decision, and so on. Many small transactions are one task's, and the rows of a large one are several's.
"""

from __future__ import annotations

from collections.abc import Iterator

from intergroup_core.ids import MemberId, Service
from intergroup_core.log.choice import Counting
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.places import Piece
from intergroup_core.log.stream import StreamReader
from intergroup_core.wire.glance import labels_in
from pyspark_intergroup.committed import Committed
from pyspark_intergroup.course import Course, Step
from pyspark_intergroup.slice import AnySlice, LogSlice, LostSlice, Shown, SliceBundle
from pyspark_intergroup.slicing import SLICE_BYTES, Gathered, Slicer
from pyspark_intergroup.transactions import LostTransaction, Transaction

MAX_BUNDLE = 1_000
"""Ranges of one task."""
PASSED_OVER_BYTES = SLICE_BYTES // 4
"""Of what lies between the rows of a transaction: where there is more, these are in ranges of their own."""


_Found = tuple[LogSlice | LostSlice, bool]
"""A range, and whether it is as large as one is to be."""


class CommittedSlicer:
    """Divides ranges of one group's stream for who reads what is committed."""

    def __init__(self, slicer: Slicer, committed: Committed) -> None:
        self._slicer = slicer
        self._committed = committed

    def slices(self, reader: StreamReader, start: OrderCut, stop: OrderCut) -> list[AnySlice]:
        """RangeUnavailable or TransactionMissing where the logs do not hold all of it."""
        most_bytes = self._most_bytes(reader, start, stop)
        bundles = _Bundles(most_bytes, self._slicer.sizes.most_rows)
        for each, full in self._ranges(reader, start, stop, most_bytes):
            bundles.add(each, full=full)
        return bundles.finished()

    def _most_bytes(self, reader: StreamReader, start: OrderCut, stop: OrderCut) -> int:
        sizes = self._slicer.sizes
        if sizes.least == 1:
            return SLICE_BYTES
        steps = self._committed.course(reader, start, stop).steps()
        return sizes.most_bytes(sum(step.nbytes + sum(each.nbytes for each in step.visible) for step in steps))

    def _ranges(self, reader: StreamReader, start: OrderCut, stop: OrderCut, most_bytes: int) -> Iterator[_Found]:
        """In the order of their rows; those that are full are to be read by a task of their own."""
        course = self._committed.course(reader, start, stop)
        at: OrderCut = start
        plain: Gathered | None = None
        passed, due = 0, most_bytes
        for step in course.steps():
            here = course.cut
            assert isinstance(here, OrderCut)
            if step.rows and plain is None:
                plain = Gathered(at)
            if plain is not None:
                plain.add(step)
                passed += step.nbytes
                full = passed >= due or plain.has_rows(self._slicer.sizes.most_rows)
                if step.ends and (full or step.visible):
                    yield self._slicer.slice_of(plain, plain.describer.described(here)), full
                    plain = None
                    # What a slice has too much, its last step being what it is, the next one has less.
                    due = max(due, passed - passed % most_bytes + most_bytes) if full else due
            for transaction in step.visible:
                yield from self._shown(reader, transaction, most_bytes)
            at = here
        if plain is not None:
            yield self._slicer.slice_of(plain, plain.describer.described(stop)), False

    def _shown(
        self, reader: StreamReader, transaction: Transaction | LostTransaction, most_bytes: int
    ) -> Iterator[_Found]:
        if isinstance(transaction, Transaction):
            yield from _ShownRanges(self._slicer, transaction, most_bytes).of(reader)
            return
        decision = transaction.decision
        lost = LostSlice(
            group=self._slicer.group,
            service=Service.RTO,
            start=None,
            stop=OrderCut(decision.timestamp, decision.sender),
            reason=transaction.reason,
            sender=decision.sender,
        )
        yield lost, True


class _ShownRanges:
    """The ranges in which the rows of one transaction lie."""

    def __init__(self, slicer: Slicer, transaction: Transaction, most_bytes: int) -> None:
        self._slicer = slicer
        self._transaction = transaction
        self._most_bytes = most_bytes
        self._choice = Counting(transaction.txn, transaction.attempts)
        self._ordinal = 0

    def of(self, reader: StreamReader) -> Iterator[_Found]:
        transaction = self._transaction
        course = Course(reader, transaction.start, transaction.stop)
        at: OrderCut = transaction.start
        gathered: Gathered | None = None
        begun = self._ordinal
        idle = 0
        for step in course.steps():
            here = course.cut
            assert isinstance(here, OrderCut)
            taken = self._taken(step.piece)
            if taken and gathered is None:
                gathered, begun, idle = Gathered(at), self._ordinal, 0
            self._ordinal += taken
            if gathered is not None:
                idle = self._add(gathered, step, taken, idle)
                many = gathered.nbytes >= self._most_bytes or gathered.has_rows(self._slicer.sizes.most_rows)
                if many or idle > PASSED_OVER_BYTES:
                    yield self._slice(gathered, at_or_before=here, ordinal=begun), many
                    gathered = None
            at = here
        if gathered is not None:
            yield self._slice(gathered, at_or_before=transaction.stop, ordinal=begun), False

    def _taken(self, piece: Piece) -> int:
        """How many messages of a piece are the transaction's."""
        if piece.entry.kind is not Kind.DATA or not self._choice.may_take(piece):
            return 0
        source = piece.entry.header.source
        return sum(self._choice.takes(each.label, source, each.seq) for each in labels_in(piece.chunk()))

    @staticmethod
    def _add(gathered: Gathered, step: Step, taken: int, idle: int) -> int:
        """How much was passed over since something was taken."""
        if not taken:
            gathered.pass_over(step)
            return idle + step.nbytes
        part = taken / (step.piece.stop - step.piece.first)
        gathered.add(step._replace(rows=max(1, round(step.rows * part)), nbytes=max(1, round(step.nbytes * part))))
        return 0

    def _slice(self, gathered: Gathered, *, at_or_before: OrderCut, ordinal: int) -> LogSlice:
        described = gathered.describer.described(at_or_before)
        assert isinstance(described.start, OrderCut)
        first, last = described.start.timestamp, at_or_before.timestamp
        transaction = self._transaction
        shown = Shown(
            txn=transaction.txn,
            timestamp=transaction.decision.timestamp,
            sender=MemberId(transaction.decision.sender),
            attempts=tuple(
                staged
                for staged in transaction.attempts
                if staged.first_timestamp <= last and first <= staged.last_timestamp
            ),
            ordinal=ordinal,
        )
        return self._slicer.slice_of(gathered, described, shown)


class _Bundles:
    """Ranges put together until there is enough for a task."""

    def __init__(self, most_bytes: int, most_rows: int | None) -> None:
        self._most_bytes = most_bytes
        self._most_rows = most_rows
        self._found: list[AnySlice] = []
        self._slices: list[LogSlice] = []
        self._rows = self._nbytes = 0

    def add(self, found: LogSlice | LostSlice, *, full: bool) -> None:
        if isinstance(found, LostSlice):
            self._end()
            self._found.append(found)
            return
        if self._slices and self._exceeded_by(found):
            self._end()
        self._slices.append(found)
        self._rows, self._nbytes = self._rows + found.rows, self._nbytes + found.nbytes
        if full:
            self._end()

    def _exceeded_by(self, found: LogSlice) -> bool:
        rows = self._most_rows is not None and self._rows + found.rows > self._most_rows
        return rows or self._nbytes + found.nbytes > self._most_bytes or len(self._slices) >= MAX_BUNDLE

    def _end(self) -> None:
        if self._slices:
            one = len(self._slices) == 1
            self._found.append(self._slices[0] if one else SliceBundle(slices=tuple(self._slices)))
        self._slices, self._rows, self._nbytes = [], 0, 0

    def finished(self) -> list[AnySlice]:
        self._end()
        return self._found
