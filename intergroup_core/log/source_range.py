"""A range of `rso` in one log: of each sender the seqs behind one cut and not behind the other, and the views between.

The log may be of `rso` or of `rto`. A gap belongs to the view that follows it, and to every range of which it skipped
something: by a cut behind it nobody can tell whether somebody heard of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import MemberId
from intergroup_core.log.cut import SourceCut
from intergroup_core.log.entries import Entry
from intergroup_core.log.entry import EntryHeader, Kind
from intergroup_core.log.lineage import within
from intergroup_core.log.places import Piece
from intergroup_core.log.skips import Skip, is_from_before
from intergroup_core.log.sources import LogSources

Spans = list[tuple[int, int]]


def wanted_of(start: SourceCut, stop: SourceCut) -> dict[MemberId, tuple[int, int]]:
    """Of each sender the seqs that lie between two cuts which name everybody: behind the first, not the second."""
    lows = {source: start.seqs.get(source, 0) for source in stop.seqs}
    return {source: (low, stop.seqs[source]) for source, low in lows.items() if stop.seqs[source] > low}


class SourceRange:
    """What one log gives between two cuts."""

    def __init__(self, log: LogSources, start: SourceCut, stop: SourceCut) -> None:
        lineage = log.lineage()
        self._log = log
        self._start, self._stop = start, stop
        self._wanted = wanted_of(lineage.all_named(start), lineage.all_named(stop))
        lost = lineage.lost_before(stop.view)
        self._spans: dict[MemberId, Spans] = {
            source: within(low, high, lost.get(source, [])) for source, (low, high) in self._wanted.items()
        }

    def pieces(self, *, check: bool) -> Iterator[Piece]:
        log, wanted = self._log, self._wanted
        views = self._views()
        ends = [self._last_entry(source, last) for source, (_, last) in wanted.items()]
        begins = [log.place_of_message(source, low + 1).entry for source, (low, _) in wanted.items()]
        self._refuse_missing()
        if views[1] > views[0]:
            begins.append(views[0])
            ends.append(views[1] - 1)
        crossed = [skip for skip in log.skips() if skip.is_crossed(*wanted.get(skip.source, (0, 0)))]
        begins += [skip.first_gap for skip in crossed]
        ends += [skip.last_gap for skip in crossed]
        if not begins:
            return
        for entry in log.entries(min(begins), min(log.stop, max(ends) + 1), check=False):
            header = entry.header
            if header.kind == Kind.DATA:
                found = self._of_data(entry)
            elif header.carried or not (self._is_between(header, views) or _has_skipped(entry, crossed)):
                continue
            else:
                found = [Piece(entry, 0, header.messages)]
            for piece in found:
                if check:
                    entry.check()
                yield piece

    def _views(self) -> tuple[int, int]:
        """Behind the view of each of the cuts."""
        log, start, stop = self._log, self._start, self._stop
        if log.first and log.senders_begin is None and start.view is None and stop.view is not None:
            # Where the beginning is stated, it means behind the logs that were read before this one.
            raise RangeUnavailable(f"{log.where} does not go back to its first view any more; read it at another site")
        return (
            log.place_of_view(start.view).entry + 1 if start.view is not None else log.first,
            log.place_of_view(stop.view).entry + 1 if stop.view is not None else log.first,
        )

    def _is_between(self, header: EntryHeader, views: tuple[int, int]) -> bool:
        """Whether a view lies behind that of the first cut and not behind that of the second, or a gap before such one.

        What was fetched from within a view has that first, and behind it perhaps gaps from before it. These concern
        nobody who stands there but for what they skipped.
        """
        begun = self._start.view if views[0] == self._log.first + 1 else None
        if header.kind == Kind.GAP and begun is not None and is_from_before(header, begun):
            return False
        return views[0] <= header.entry < views[1]

    def _of_data(self, entry: Entry) -> list[Piece]:
        header = entry.header
        found = []
        for low, high in self._spans.get(MemberId(header.source), ()):
            if header.last_seq <= low or header.first_seq > high:
                continue
            piece = Piece(entry, 0, header.messages)
            if header.first_seq <= low or header.last_seq > high:
                run = entry.chunk().run
                piece = Piece(entry, bisect_right(run.ends, low - run.seq), bisect_right(run.ends, high - run.seq))
            if piece.first < piece.stop:
                found.append(piece)
        return found

    def _last_entry(self, source: MemberId, last: int) -> int:
        """Where a sender's messages up to a seq end; a complete log need not have one of that very seq."""
        log = self._log
        place = log.place_of_message(source, last)
        if place.entry < log.stop:
            return place.entry
        if log.reach().seqs.get(source, 0) < last:
            raise RangeUnavailable(f"{log.where} does not reach so far; wait, or fetch it from another site")
        own = log.last_seqs().get(source)
        return log.place_of_message(source, own).entry if own is not None else log.first

    def _refuse_missing(self) -> None:
        log = self._log
        lows = {source: low for source, (low, _) in self._wanted.items()}
        for source in log.may_miss(lows):
            first = log.first_seqs().get(source)
            held = f"it from {first} on" if first is not None else "nothing any more"
            raise RangeUnavailable(
                f"{log.where} holds of {source:016x} {held}, not what follows {lows[source]}; read it at another site"
            )


def _has_skipped(entry: Entry, skips: list[Skip]) -> bool:
    """Whether an entry is a gap that some of these go back to."""
    return entry.kind is Kind.GAP and any(skip.first_gap <= entry.header.entry <= skip.last_gap for skip in skips)
