"""Cuts a range into what single tasks read: stretches of the one order, or some of the senders each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from intergroup_core.client.fetching import Keeper
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.chain import Described, Describer, describe
from intergroup_core.log.cut import Cut, SourceCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.stream import StreamReader
from pyspark_intergroup.course import Course, Step
from pyspark_intergroup.slice import LogSlice, Shown

SLICE_BYTES = 32 << 20
"""Of a task where nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSizes:
    """How a range is divided."""

    least: int = 1
    """Slices that are wanted, where there are so many steps."""
    most_rows: int | None = None
    """Of one slice, exceeded by a step at most."""

    def most_bytes(self, total: int) -> int:
        """As many slices for each that is wanted: tasks that run side by side then end together."""
        rounds = max(1, -(-total // (SLICE_BYTES * self.least)))
        return max(1, -(-total // (self.least * rounds)))


class Slicer:
    """Divides ranges of one group's stream."""

    def __init__(self, group: str, service: Service, holders: Sequence[Keeper], sizes: SliceSizes) -> None:
        self._group = group
        self._service = service
        self._holders = tuple(holders)
        self._sizes = sizes

    @property
    def group(self) -> str:
        return self._group

    @property
    def sizes(self) -> SliceSizes:
        return self._sizes

    def slices(self, reader: StreamReader, start: Cut, stop: Cut) -> list[LogSlice]:
        """RangeUnavailable where the logs do not hold all of it."""
        if isinstance(start, SourceCut) and isinstance(stop, SourceCut):
            return list(self._by_sender(reader, start, stop))
        return list(self._in_order(reader, start, stop))

    def _in_order(self, reader: StreamReader, start: Cut, stop: Cut) -> Iterator[LogSlice]:
        most_bytes = self._most_bytes(reader, start, stop)
        course = Course(reader, start, stop)
        gathered = Gathered(start)
        passed, due = 0, most_bytes
        for step in course.steps():
            gathered.add(step)
            passed += step.nbytes
            # What a slice has too much, its last step being what it is, the next one has less.
            if step.ends and (passed >= due or gathered.has_rows(self._sizes.most_rows)):
                yield self.slice_of(gathered, gathered.describer.described(course.cut))
                gathered = Gathered(course.cut)
                due = max(due, passed - passed % most_bytes + most_bytes)
        if gathered.files:
            yield self.slice_of(gathered, gathered.describer.described(stop))

    def _most_bytes(self, reader: StreamReader, start: Cut, stop: Cut) -> int:
        if self._sizes.least == 1:
            return SLICE_BYTES
        return self._sizes.most_bytes(sum(step.nbytes for step in Course(reader, start, stop).steps()))

    def _by_sender(self, reader: StreamReader, start: SourceCut, stop: SourceCut) -> Iterator[LogSlice]:
        """Views and gaps, which are nobody's, are in each slice, for rows say in which view they came, and rows of the
        first one. All of whom a gap skipped something are there, so that it is told of once."""
        course = Course(reader, start, stop)
        totals: dict[MemberId, _Total] = {}
        shared = _Total()
        files: dict[str, None] = {}
        for step in course.steps():
            header = step.piece.entry.header
            total = totals.setdefault(MemberId(header.source), _Total()) if header.kind == Kind.DATA else shared
            total.rows += step.rows
            total.nbytes += step.nbytes
            files[step.piece.entry.file] = None
        if not totals and not shared.rows:
            return
        before, skipped = reader.passed(start, stop), reader.skipped(start, stop)
        # Each slice names all whose messages go to any of them: who is not named moves with the views.
        begin = dict(start.seqs) | {sender: before.reached(sender) for sender in (*totals, *skipped)}
        most_bytes = self._sizes.most_bytes(sum(total.nbytes for total in totals.values()))
        for number, senders in enumerate(_shared_out(totals, skipped, most_bytes, self._sizes.most_rows)):
            passed = {*senders, *(skipped if number == 0 else ())}
            # Views in the range may say of a sender more, or less, than the end of it does.
            ends = begin | {sender: stop.seqs.get(sender, course.reached(sender)) for sender in passed}
            bag = [totals[sender] for sender in senders] + ([shared] if number == 0 else [])
            yield LogSlice(
                group=self._group,
                service=self._service,
                described=describe(reader, SourceCut(begin, start.view), SourceCut(ends, stop.view)),
                parts=_parts(files),
                holders=self._holders,
                rows=sum(total.rows for total in bag),
                nbytes=sum(total.nbytes for total in bag),
                data_only=number > 0,
            )

    def slice_of(self, gathered: Gathered, described: Described, shown: Shown | None = None) -> LogSlice:
        return LogSlice(
            group=self._group,
            service=self._service,
            described=described,
            parts=_parts(gathered.files),
            holders=self._holders,
            rows=gathered.rows,
            nbytes=gathered.nbytes,
            shown=shown,
        )


class Gathered:
    """A slice that grows."""

    def __init__(self, start: Cut) -> None:
        self.describer = Describer(start)
        self.files: dict[str, None] = {}
        self.rows = 0
        self.nbytes = 0

    def add(self, step: Step) -> None:
        self.pass_over(step)
        self.rows += step.rows
        self.nbytes += step.nbytes

    def pass_over(self, step: Step) -> None:
        """One that lies in the range, but has nothing for who reads it."""
        self.describer.piece(step.piece)
        self.files[step.piece.entry.file] = None

    def has_rows(self, most: int | None) -> bool:
        return most is not None and self.rows >= most


def _parts(files: dict[str, None]) -> tuple[str, ...]:
    """The directories that files of logs lie in."""
    return tuple(dict.fromkeys(str(Path(file).parent) for file in files))


@dataclass(slots=True)
class _Total:
    rows: int = 0
    nbytes: int = 0


def _shared_out(
    totals: dict[MemberId, _Total], together: Collection[MemberId], most_bytes: int, most_rows: int | None
) -> Iterator[list[MemberId]]:
    """Senders in bags of about so much; some of them all in the first one."""
    first = [sender for sender in totals if sender in together]
    bag: list[MemberId] = []
    rows = nbytes = 0
    for senders in (first, *([sender] for sender in totals if sender not in together)):
        bag += senders
        rows += sum(totals[sender].rows for sender in senders)
        nbytes += sum(totals[sender].nbytes for sender in senders)
        if nbytes >= most_bytes or (most_rows is not None and rows >= most_rows):
            yield bag
            bag, rows, nbytes = [], 0, 0
    if bag or not totals:
        yield bag
