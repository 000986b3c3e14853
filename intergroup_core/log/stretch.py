"""Stretches of a stream: parts of which each goes on where the one before it ends, so that nothing is missing."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Generic, NamedTuple

from intergroup_core.ids import MemberId, ViewId
from intergroup_core.log.cut import Cut, OrderCut, SourceCut
from intergroup_core.log.lineage import Lineage, Return
from intergroup_core.log.part import C, OrderPart, Part, SourcePart, cut_timestamp, joined
from intergroup_core.log.reader import LogReader, Place
from intergroup_core.log.skips import Skip
from intergroup_core.log.source_range import wanted_of


class Range(NamedTuple):
    """What one log gives of a range."""

    reader: LogReader
    start: Cut | Place
    stop: Cut | Place


class Stretch(Generic[C]):
    """Parts in a row; `ends` says for each of them up to where everything was held before it."""

    def __init__(self, first: Part[C]) -> None:
        self.parts: list[Part[C]] = [first]
        self.ends: list[C] = [first.begin]
        self.end: C = first.end

    @property
    def begin(self) -> C:
        return self.parts[0].begin

    @property
    def reach(self) -> tuple[int, int]:
        """How far it goes: by its end, and by what is in it where that says no more than a view."""
        segments = [segment for part in self.parts for segment in part.reader.segments]
        return cut_timestamp(self.end), max((segment.index.totals.highest for segment in segments), default=0)

    def holds(self, cut: C) -> bool:
        raise NotImplementedError

    def reaches(self, part: Part[C]) -> bool:
        """Whether a part begins somewhere in here, or where this ends."""
        return self.holds(part.begin)

    def covers(self, part: Part[C]) -> bool:
        """Whether there is nothing in a part that is not here."""
        return self.reaches(part) and self.holds(part.end)

    def is_continued_by(self, part: Part[C]) -> bool:
        """Whether nothing is missing between the end of this and what is in a part, which may overlap."""
        return self.reaches(part) and part.goes_on_from(self.end)

    def add(self, part: Part[C]) -> None:
        self.parts.append(part)
        self.ends.append(self.end)
        self.end = part.end

    def ranges(self, start: C, stop: C) -> list[Range]:
        """Which logs give what lies between two cuts, both of which are held here."""
        raise NotImplementedError


class OrderStretch(Stretch[OrderCut]):
    """Of `rto`: one part is read after another."""

    def holds(self, cut: OrderCut) -> bool:
        return self.holder(cut) is not None

    def holder(self, cut: OrderCut) -> int | None:
        """The first part in which a cut lies."""
        return next((at for at, part in enumerate(self.parts) if part.holds(cut)), None)

    def ranges(self, start: OrderCut, stop: OrderCut) -> list[Range]:
        first, last = self.holder(start), self.holder(stop)
        assert first is not None
        assert last is not None
        found = []
        for at in range(first, last + 1):
            part = self.parts[at]
            assert isinstance(part, OrderPart)
            begin = part.place_of(start if at == first else self.ends[at])
            # A gap at the very end of a part lies behind its last cut, and what follows is in the next one.
            end = part.place_of(stop if at == last else part.end)
            found.append(Range(part.reader, begin, end))
        return found


class SourceStretch(Stretch[SourceCut]):
    """Of `rso`: each part gives of each sender what those before it did not have.

    Its parts know different views. Together they say what a cut means that does not name everybody.
    """

    def __init__(self, first: Part[SourceCut]) -> None:
        super().__init__(first)
        assert isinstance(first, SourcePart)
        self.lineage = Lineage()
        self.lineage.take(first.lineage)
        self._begin = self.lineage.all_named(first.begin).seqs
        self._end = self.lineage.all_named(first.end)
        self._ends = [self._begin]
        self._last = dict(first.last_seqs)

    def add(self, part: Part[SourceCut]) -> None:
        assert isinstance(part, SourcePart)
        self.parts.append(part)
        self.ends.append(self.end)
        self._ends.append(self._end.seqs)
        self.lineage.take(part.lineage)
        self._end = self._joined(self._end, self.lineage.all_named(part.end))
        self.end = self.lineage.shortened(self._end)
        self._last = dict(joined(SourceCut(self._last), SourceCut(part.last_seqs)).seqs)

    @property
    def reached(self) -> SourceCut:
        """Its end, with everybody named."""
        return self._end

    @property
    def views(self) -> list[ViewId]:
        """Of all parts, in order."""
        return self.lineage.views

    def _placed(self, cut: SourceCut) -> Mapping[MemberId, int]:
        return self.lineage.at(cut.view).placed(cut.seqs)

    def holds(self, cut: SourceCut) -> bool:
        seqs = self._placed(cut)
        above = all(seqs.get(source, 0) >= low for source, low in self._begin.items())
        return above and self._is_below_end(cut) and not any(skip.is_within(seqs) for skip in self.skips)

    @property
    def skips(self) -> list[Skip]:
        """What gaps skipped that no part before had, of what each part was to give: the next may begin before it."""
        found = []
        for part, (before, upto) in zip(self.parts, pairwise([*self._ends, self._end.seqs]), strict=True):
            assert isinstance(part, SourcePart)
            for skip in part.skips:
                low, high = max(skip.low, before.get(skip.source, 0)), min(skip.high, upto.get(skip.source, 0))
                if low < high:
                    found.append(skip._replace(low=low, high=high))
        return found

    def reaches(self, part: Part[SourceCut]) -> bool:
        """A sender that the part does not know may have sent something in between.

        A part that has something of what a gap skipped here is of more use by itself: there it is read as it is.
        """
        assert isinstance(part, SourcePart)
        known = {source: first - 1 for source, first in part.first_seqs.items()} | self._places_of(part.begin, part)
        for source, last in self._end.seqs.items():
            # Of whom views say where it stands, but who has sent nothing here, nothing can be missing before that.
            before = known.get(source, None if source in self._last else 0)
            if before is None or not self._begin.get(source, 0) <= before <= last:
                return False
        return self._is_below_end(part.begin) and not self._skipped_some_of(part)

    def covers(self, part: Part[SourceCut]) -> bool:
        return self.holds(part.begin) and self._is_below_end(part.end) and not self._skipped_some_of(part)

    def _places_of(self, cut: SourceCut, part: SourcePart) -> dict[MemberId, int]:
        """Where senders stand at a cut of a part, by all that is known of its view."""
        return part.lineage.at(cut.view).placed(cut.seqs) | dict(self._placed(cut))

    def _skipped_some_of(self, part: Part[SourceCut]) -> bool:
        """Whether a part has something that a gap skipped here; it may have come by with the same gap."""
        assert isinstance(part, SourcePart)
        skips = self.skips
        if not skips:
            return False
        begin, end = self._places_of(part.begin, part), self._places_of(part.end, part)
        for skip in skips:
            low, high = max(skip.low, begin.get(skip.source, 0)), min(skip.high, end.get(skip.source, 0))
            own = (each for each in part.skips if each.source == skip.source)
            if low < high and not any(each.low <= low and high <= each.high for each in own):
                return True
        return False

    def _is_below_end(self, cut: SourceCut) -> bool:
        known = cut.view is None or cut.view in (self.begin.view, self.end.view) or cut.view in self.views
        return known and all(seq <= self._end.seqs.get(source, 0) for source, seq in self._placed(cut).items())

    def wanted(self, start: SourceCut, stop: SourceCut) -> dict[MemberId, tuple[int, int]]:
        """Of each sender the seqs that lie between two cuts."""
        return wanted_of(self.lineage.all_named(start), self.lineage.all_named(stop))

    def lacks(self, start: SourceCut, stop: SourceCut) -> bool:
        """Whether something between two cuts is not here; senders of which nothing is wanted do not matter."""
        wanted = self.wanted(start, stop)
        if any(low < self._begin.get(source, 0) for source, (low, _) in wanted.items()):
            return True
        if self._may_miss(wanted):
            return True
        held = joined(self._end, SourceCut(self._last)).seqs
        if any(high > held.get(source, 0) for source, (_, high) in wanted.items()):
            return True
        if any(
            self._was_parted(each, *wanted[each.source])
            for each in self.lineage.returns_behind(stop.view)
            if each.source in wanted
        ):
            return True
        places = [self.lineage.all_named(cut).seqs for cut in (start, stop)]
        if any(skip.is_within(seqs) for skip in self.skips if skip.source in wanted for seqs in places):
            return True
        known = {*self.views, self.begin.view, self.end.view}
        # A cut without a view is before the first one that there ever was.
        return start.view not in known or not (stop.view is None or stop.view in known)

    def _may_miss(self, wanted: Mapping[MemberId, tuple[int, int]]) -> bool:
        """Whether something of a range may lie before the beginning, of which nobody said where it was.

        Of senders that have messages in the first part the beginning says it, of others perhaps a later part.
        """
        first = self.parts[0]
        assert isinstance(first, SourcePart)
        if first.stated:
            return False
        lows = {source: low for source, (low, _) in wanted.items() if source not in first.first_seqs}
        later = [part.first_seqs for part in self.parts[1:] if isinstance(part, SourcePart)]
        unsure = first.reader.may_miss(lows)
        return any(all(seqs.get(each, lows[each] + 2) > lows[each] + 1 for seqs in later) for each in unsure)

    def _was_parted(self, gone: Return, low: int, high: int) -> bool:
        """Whether of a sender that was gone for a while something is wanted that others had of it meanwhile."""
        if low >= gone.high or high <= gone.low:
            return False
        upto = min(high, gone.high)
        firsts = (part.reader.message_from(gone.source, upto) for part in self.parts)
        return not any(first is not None and first <= gone.high for first in firsts)

    def leads_on(self, start: SourceCut) -> bool:
        """Whether there is anything behind a cut that is held here."""
        return self.later(start, self.end) != start

    def skipped(self, start: SourceCut, stop: SourceCut) -> set[MemberId]:
        """Of whom gaps skipped something of what lies between two cuts."""
        wanted = self.wanted(start, stop)
        return {skip.source for skip in self.skips if skip.is_crossed(*wanted.get(skip.source, (0, 0)))}

    def later(self, one: SourceCut, other: SourceCut) -> SourceCut:
        """Behind everything that two cuts are behind, whichever of them is in the later view."""
        full = self.lineage.all_named(one)
        both = self._joined(full, self.lineage.all_named(other))
        return one if both == full else self.lineage.shortened(both)

    def _joined(self, one: SourceCut, other: SourceCut) -> SourceCut:
        views = self.views
        if _behind(views, one.view) > _behind(views, other.view):
            one, other = other, one
        both = joined(one, other)
        return SourceCut(self.lineage.at(both.view).placed(both.seqs), both.view)

    def ranges(self, start: SourceCut, stop: SourceCut) -> list[Range]:
        """Each log is told of all its senders, so that it need not know what all logs together do."""
        wanted, lost = self.wanted(start, stop), self.lineage.lost_before(stop.view)
        views = self.views
        low, high = _behind(views, start.view), _behind(views, stop.view)
        found = []
        for part, (before, behind) in zip(self.parts, pairwise([*self._ends, self._end.seqs]), strict=True):
            assert isinstance(part, SourcePart)
            own = list(part.views)
            upto = min(high, _behind(views, own[-1])) if own else low
            # A gap may have skipped something of a sender of which the part itself has nothing.
            skipped = {skip.source: min(skip.high, behind.get(skip.source, 0)) for skip in part.skips}
            bounds = _known(own, views, low), _known(own, views, max(low, upto))
            # Nor has the part to look for what its views say of senders of which it has nothing.
            said = wanted_of(*(part.lineage.all_named(SourceCut({}, view)) for view in bounds))
            begin, end = (dict.fromkeys((*part.last_seqs, *skipped, *said), 0) for _ in range(2))
            for source in wanted.keys() & begin.keys():
                first, last = wanted[source]
                begin[source] = max(first, before.get(source, 0))
                reached = _agreed(part.last_seqs.get(source, 0), lost.get(source, []))
                end[source] = min(last, max(reached, skipped.get(source, 0)))
            found.append(Range(part.reader, SourceCut(begin, bounds[0]), SourceCut(end, bounds[1])))
            low = max(low, upto)
        return found


def _agreed(last: int, lost: list[tuple[int, int]]) -> int:
    """The last seq of a log's sender, without what that had said before it returned and nobody agreed on."""
    return next((low for low, high in lost if low < last <= high), last)


def _behind(views: list[ViewId], view: ViewId | None) -> int:
    """How many views of a stretch a cut in this one is behind."""
    return views.index(view) + 1 if view in views else 0


def _known(own: list[ViewId], views: list[ViewId], behind: int) -> ViewId | None:
    """The view by which a log knows a cut that is behind so many; None where that is before its first one."""
    return views[behind - 1] if behind and views[behind - 1] in own else None
