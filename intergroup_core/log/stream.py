"""A stream as one site holds it: its parts in order, what can be read across them, and what is missing in between."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from intergroup_core.effects import Install
from intergroup_core.errors import LogError, RangeUnavailable
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.arrangement import stretches_of
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.jumps import Filling, Jump, fillings_of, jumps_of, may_jump
from intergroup_core.log.manifest import MANIFEST, read_manifest
from intergroup_core.log.part import OrderPart, Part, cut_timestamp, part_of, says_something
from intergroup_core.log.reader import LogReader, Piece, Place, each_gap_once
from intergroup_core.log.segment import Damage
from intergroup_core.log.standings import Passed
from intergroup_core.log.stretch import OrderStretch, Range, SourceStretch, Stretch
from intergroup_core.ports import Disk


class StreamReader:
    """The parts of one stream; what was appended, begun, fetched or removed since is seen after `refresh`."""

    def __init__(self, disks: Sequence[Disk], known: StreamReader | None = None) -> None:
        """What another reader has looked through already is not looked through again."""
        self._readers: dict[int, LogReader] = dict(known._readers) if known is not None else {}
        self._stretches: list[Stretch[Any]] = []
        self._fillings: dict[int, list[Filling]] = {}
        """By the log that jumps there."""
        self._fillers: list[OrderPart] = []
        """Parts that are read only where another one jumps."""
        self._disks: Sequence[Disk] = disks
        self.errors: list[LogError] = []
        """Why parts were left out, or end earlier than they did: what is damaged there is missing here, and may be
        fetched again."""
        self.refresh()

    def refresh(self, disks: Sequence[Disk] | None = None) -> None:
        """Look again; with a new list where parts may have come or gone."""
        self._disks = self._disks if disks is None else disks
        self.errors = []
        readers: dict[int, LogReader] = {}
        parts: list[Part[Any]] = []
        for disk in self._disks:
            try:
                reader = self._look(disk)
                if reader is None:
                    continue
                if reader.manifest.service is not Service.UU and says_something(reader):
                    parts.append(part_of(reader))
                    if reader.damaged_end is not None:
                        self.errors.append(reader.damaged_end.error())
            except LogError as error:
                if not _is_gone(disk):
                    self.errors.append(error)
            else:
                readers[reader.manifest.log] = reader
        self._readers = readers
        self._fillings = fillings_of([part for part in parts if isinstance(part, OrderPart)])
        self._fillers = [filling.part for each in self._fillings.values() for filling in each]
        self._stretches = stretches_of([part for part in parts if part not in self._fillers])

    def _look(self, disk: Disk) -> LogReader | None:
        """The log in a directory; None where it is only being made."""
        if MANIFEST not in disk.names():
            return None
        known = self._readers.get(read_manifest(disk).log)
        if known is None:
            return LogReader(disk)
        known.refresh()
        return known

    @property
    def parts(self) -> list[LogReader]:
        """Those that hold anything, in the order of the stream; in `uu` in the order given."""
        if self._service is Service.UU:
            return [reader for reader in self._readers.values() if says_something(reader)]
        return [part.reader for stretch in self._stretches for part in stretch.parts]

    @property
    def logs(self) -> list[LogReader]:
        """All that hold anything, those included that are read only where another one jumps, in no order."""
        return [reader for reader in self._readers.values() if says_something(reader)]

    @property
    def highest(self) -> int:
        """The highest timestamp that any part knows of; a site's clock starts above it."""
        known = [0]
        for reader in self._readers.values():
            known += [segment.index.totals.highest for segment in reader.segments[-1:]]
            known += [cut_timestamp(reader.manifest.after), cut_timestamp(reader.manifest.upto)]
        return max(known)

    def first(self) -> Cut | None:
        """The cut behind which everything is held, up to the first hole; None where nothing is."""
        if self._stretches:
            earliest: Cut = self._stretches[0].begin
            return earliest
        parts = self.parts
        return EntryCut(parts[0].manifest.log, parts[0].first) if parts else None

    def head(self) -> Cut | None:
        """The cut behind everything that the last part, and all that it continues, holds; None where nothing is.

        What was fetched because a gap had skipped it begins later than the log with the gap, but need not end later.
        """
        if self._stretches:
            last: Cut = self._furthest.end
            return last
        parts = self.parts
        return parts[-1].head() if parts else None

    @property
    def damaged_head(self) -> Damage | None:
        """What is damaged behind the head, which so may not be the end of all that was here."""
        parts = self._furthest.parts if self._stretches else []
        return next((part.reader.damaged_end for part in parts if part.reader.damaged_end is not None), None)

    @property
    def _furthest(self) -> Stretch[Any]:
        return max(reversed(self._stretches), key=lambda stretch: stretch.reach)

    def holes(self) -> list[tuple[Cut, Cut]]:
        """Between which cuts something is missing, or may be; in `uu` no part continues another, and there are none.

        In `rso` the second cut is of use only where it was said behind which one the part there begins.
        """
        return [(one.end, other.begin) for one, other in itertools.pairwise(self._stretches)]

    def place_of(self, cut: OrderCut | EntryCut) -> tuple[LogReader, Place]:
        """The part that holds a cut, and where it lies there."""
        if isinstance(cut, EntryCut):
            reader = self._log(cut)
            return reader, reader.place_of(cut)
        stretch = self._stretch_of(cut)
        assert isinstance(stretch, OrderStretch)
        part = stretch.parts[stretch.holder(cut) or 0]
        assert isinstance(part, OrderPart)
        return part.reader, part.place_of(cut)

    def holders(self, cut: OrderCut) -> list[OrderPart]:
        """The parts that hold a cut of `rto`, those included that are read only where another one jumps."""
        parts = [*(part for stretch in self._stretches for part in stretch.parts), *self._fillers]
        return [part for part in parts if isinstance(part, OrderPart) and part.holds(cut)]

    def ranges(self, start: Cut, stop: Cut) -> list[Range]:
        """Which logs give what lies between two cuts, in order; RangeUnavailable where something of it is missing.

        In `rso` two of them may have the same gap: who reads them one by one tells of it once (`each_gap_once`).
        """
        match start, stop:
            case EntryCut(), EntryCut():
                return self._entry_ranges(start, stop)
            case OrderCut(), OrderCut():
                return self._order_ranges(start, stop)
            case SourceCut(), SourceCut():
                return self._source_stretch(start, stop).ranges(start, stop)
            case _:
                raise RangeUnavailable("a range has both its ends in the order of one service; give two cuts of it")

    def _order_ranges(self, start: OrderCut, stop: OrderCut) -> list[Range]:
        within, upto = self._filler_of(start), self._filler_of(stop)
        if within is not None:
            if within.holds(stop):
                return [Range(within.reader, within.place_of(start), within.place_of(stop))]
            first = Range(within.reader, within.place_of(start), within.place_of(within.end))
            return [first, *self._order_ranges(within.end, stop)]
        if upto is not None:
            begins = upto.holds(start)
            last = Range(upto.reader, upto.place_of(start if begins else upto.begin), upto.place_of(stop))
            return [last] if begins else [*self._order_ranges(start, upto.begin), last]
        begin, end = self._stretch_of(start), self._stretch_of(stop)
        # Where one stretch ends another may begin, and only that leads on.
        for beginning in [stretch for stretch in self._stretches if stretch.holds(start)]:
            found: list[Range] = []
            at = start
            for stretch in self._course(beginning):
                if stretch.holds(stop):
                    return list(self._filled([*found, *stretch.ranges(at, stop)], start, stop))
                found += stretch.ranges(at, stretch.end)
                at = stretch.end
        raise self._hole_behind(begin if self._before(begin, end) else end)

    def _filler_of(self, cut: OrderCut) -> OrderPart | None:
        """What has a cut that lies in nothing but what some log skipped."""
        if any(stretch.holds(cut) for stretch in self._stretches):
            return None
        return next((part for part in self._fillers if part.holds(cut)), None)

    def _filled(self, ranges: list[Range], start: OrderCut, stop: OrderCut) -> Iterator[Range]:
        """The same with what was fetched in the place of what a log skipped."""
        for found in ranges:
            assert isinstance(found.start, Place)
            assert isinstance(found.stop, Place)
            at = found.start
            for part, begin, end in self._fillings.get(found.reader.manifest.log, ()):
                # A range that begins or ends within it does so at a cut that both have.
                known = (at <= begin or part.holds(start)) and (end <= found.stop or part.holds(stop))
                if end <= at or found.stop <= begin or not known:
                    continue
                if at < begin:
                    yield Range(found.reader, at, begin)
                first = part.place_of(part.begin if at <= begin else start)
                yield Range(part.reader, first, part.place_of(part.end if end <= found.stop else stop))
                at = min(end, found.stop)
            if at < found.stop or at == found.start:
                yield Range(found.reader, at, found.stop)

    @property
    def may_jump(self) -> bool:
        """Whether any log has gaps or known damage in it."""
        return any(may_jump(reader) for reader in self._readers.values())

    def jumps(self, start: OrderCut, stop: OrderCut) -> list[Jump]:
        """Where between two cuts something is missing in the logs that give it, be it skipped or damaged."""
        found: list[Jump] = []
        for each in self.ranges(start, stop):
            assert isinstance(each.start, Place)
            assert isinstance(each.stop, Place)
            if may_jump(each.reader):
                begin, end = each.start, each.stop
                found += [
                    jump
                    for jump in jumps_of(each.reader)
                    if jump.is_crossed(begin, end) or self._is_left_within(jump, begin)
                ]
        return found

    def _is_left_within(self, jump: Jump, place: Place) -> bool:
        """Whether a range begins where what was fetched ends, before the first message behind what is missing."""
        if not jump.first < place.entry < jump.stop:
            return False
        return any(filling.stop == place for filling in self._fillings.get(jump.log.manifest.log, ()))

    def skipped(self, start: Cut, stop: Cut) -> set[MemberId]:
        """Of whom gaps skipped something of a range of `rso` that is held."""
        if not isinstance(start, SourceCut) or not isinstance(stop, SourceCut):
            return set()
        return self._source_stretch(start, stop).skipped(start, stop)

    def passed(self, start: SourceCut, stop: SourceCut) -> Passed:
        """Somebody who is about to go through a range of `rso`."""
        return Passed(self._source_stretch(start, stop).lineage.at(start.view), start.seqs, start.view)

    def carried_on(self, start: SourceCut, stop: SourceCut) -> SourceCut:
        """A later cut of `rso` with those that only an earlier one names, unless the views say where they ended."""
        knowing = (each for each in self._stretches if isinstance(each, SourceStretch) and stop.view in each.views)
        ended = next((each.lineage.at(stop.view).ended for each in knowing), set())
        left = {source: seq for source, seq in start.seqs.items() if source not in stop.seqs and source not in ended}
        return SourceCut(left | dict(stop.seqs), stop.view)

    def _entry_ranges(self, start: EntryCut, stop: EntryCut) -> list[Range]:
        """In `uu` logs have nothing to do with each other, but that one site wrote one after another."""
        logs = list(self._readers)
        first, last = logs.index(self._log(start).manifest.log), logs.index(self._log(stop).manifest.log)
        if first > last:
            raise RangeUnavailable(f"{stop} is of an older log than {start}; exchange them")
        found = []
        for log in logs[first : last + 1]:
            reader = self._readers[log]
            begin = start if log == start.log else EntryCut(log, reader.first)
            found.append(Range(reader, begin, stop if log == stop.log else EntryCut(log, reader.stop)))
        return found

    def steps(self, start: OrderCut | SourceCut) -> list[tuple[Range, Cut]]:
        """How to read on from a cut, log by log, as far as nothing is missing; with each the cut that is reached so.

        RangeUnavailable where the cut itself is not held.
        """
        found: list[tuple[Range, Cut]] = []
        for stretch in self._course(self._stretch_from(start)):
            ranges = stretch.ranges(start, stretch.end)
            first = len(stretch.parts) - len(ranges)
            ends: list[Cut] = [*stretch.ends[first + 1 :], stretch.end]
            if isinstance(start, SourceCut) and isinstance(stretch, SourceStretch):
                ends = [stretch.later(start, end) for end in ends if isinstance(end, SourceCut)]
            found += zip(ranges, ends, strict=True)
            start = stretch.end
        return found

    def _course(self, stretch: Stretch[Any]) -> Iterator[Stretch[Any]]:
        """A stretch and those in which it goes on: what was fetched of another side of a partition ends in a view that
        both sides came to, and this side has that, and what follows, in a stretch with another beginning."""
        passed = [stretch]
        yield stretch
        while (following := self._meets(stretch.end, passed)) is not None:
            passed.append(following)
            yield following
            stretch = following

    def _meets(self, end: Cut, passed: list[Stretch[Any]]) -> Stretch[Any] | None:
        if not isinstance(end, OrderCut) or end.view is None:
            return None  # by its timestamp alone nobody can tell on which side of a partition it lies
        return next((each for each in self._stretches if each not in passed and each.holds(end)), None)

    def _stretch_from(self, start: OrderCut | SourceCut) -> Stretch[Any]:
        if isinstance(start, OrderCut):
            return self._stretch_of(start)
        holders = [each for each in self._stretches if isinstance(each, SourceStretch) and each.holds(start)]
        if holders:
            # What one of them skipped another may have, because it was fetched; but that may end here.
            return min(holders, key=lambda each: (not each.leads_on(start), bool(each.skipped(start, each.end))))
        raise RangeUnavailable(
            f"{self} does not hold {start}, only {self._held()}; fetch it from another site, or wait"
        )

    def pieces(self, start: Cut, stop: Cut, *, check: bool = True) -> Iterator[Piece]:
        """Everything between two cuts; what two parts hold is given once."""
        told: set[MemberId] = set()
        for found in self.ranges(start, stop):
            yield from each_gap_once(found.reader.pieces(found.start, found.stop, check=check), told)

    def install_at(self, cut: Cut) -> Install | None:
        """The view in force at a cut, where a part knows it."""
        if isinstance(cut, EntryCut):
            return self._log(cut).install_at(cut)
        for part in (*(part for stretch in self._stretches for part in stretch.parts), *self._fillers):
            if part.holds(cut) if cut.view is None else cut.view in part.views:
                return part.reader.install_at(cut)
        return None

    @property
    def _service(self) -> Service | None:
        return next((reader.manifest.service for reader in self._readers.values()), None)

    def _log(self, cut: EntryCut) -> LogReader:
        reader = self._readers.get(cut.log)
        if reader is None:
            raise RangeUnavailable(f"{self} has no log {cut.log:016x}; read it where it was made")
        return reader

    def _stretch_of(self, cut: OrderCut) -> Stretch[Any]:
        for stretch in self._stretches:
            if stretch.holds(cut):
                return stretch
        raise RangeUnavailable(f"{self} does not hold {cut}, only {self._held()}; fetch it from another site, or wait")

    def _source_stretch(self, start: SourceCut, stop: SourceCut) -> SourceStretch:
        sources = [each for each in self._stretches if isinstance(each, SourceStretch)]
        holders = [each for each in sources if not each.lacks(start, stop)]
        if holders:
            return min(holders, key=lambda stretch: bool(stretch.skipped(start, stop)))
        begin = next((stretch for stretch in self._stretches[:-1] if stretch.holds(start)), None)
        if begin is not None and any(stretch.holds(stop) for stretch in self._stretches if stretch is not begin):
            raise self._hole_behind(begin)
        raise RangeUnavailable(
            f"{self} does not hold what lies between {start} and {stop}, only {self._held()}; "
            "fetch it from another site, or wait"
        )

    def _before(self, one: Stretch[Any], other: Stretch[Any]) -> bool:
        return self._stretches.index(one) < self._stretches.index(other)

    def _hole_behind(self, stretch: Stretch[Any]) -> RangeUnavailable:
        start, stop = self.holes()[self._stretches.index(stretch)]
        return RangeUnavailable(f"{self} has a hole between {start} and {stop}; fetch that from another site")

    def _held(self) -> str:
        stretches = [f"{stretch.begin} to {stretch.end}" for stretch in self._stretches[-_SHOWN:]]
        return " and ".join(stretches) or "nothing"

    def __str__(self) -> str:
        manifest = next((reader.manifest for reader in self._readers.values()), None)
        return f"the stream {manifest.service.value} of {manifest.group}" if manifest is not None else "an empty stream"


_SHOWN = 4
"""Stretches, the last ones, that an error names."""


def _is_gone(disk: Disk) -> bool:
    """Whether a part was removed while one looked at it."""
    try:
        return MANIFEST not in disk.names()
    except LogError:
        return True
