"""Reads a log: what lies between two places or cuts, and where it ends.

It needs nobody's help: what a writer appended since is seen after `refresh`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from intergroup_core.effects import Install
from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.places import Piece, Place
from intergroup_core.log.source_range import SourceRange
from intergroup_core.log.sources import LogSources

__all__ = ["LogReader", "Piece", "Place", "RangeReader", "each_gap_once"]


class RangeReader(Protocol):
    """What gives the content of ranges: one log, or a stream of several."""

    def pieces(self, start: Cut, stop: Cut, *, check: bool = True) -> Iterator[Piece]: ...

    def install_at(self, cut: Cut) -> Install | None:
        """The view in force at a cut, where that is known."""


class LogReader(LogSources):
    """The log in one directory, with what is in it."""

    def pieces(self, start: Cut | Place, stop: Cut | Place, *, check: bool = True) -> Iterator[Piece]:
        """Everything between two points, in the order of this log; views that are only carried are left out."""
        if isinstance(start, SourceCut) or isinstance(stop, SourceCut):
            if not isinstance(start, SourceCut) or not isinstance(stop, SourceCut):
                raise RangeUnavailable("a range has both its ends in the order of one service; give two cuts of rso")
            yield from SourceRange(self, start, stop).pieces(check=check)
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
                return self.lineage().shortened(self.own_reach())


def each_gap_once(pieces: Iterable[Piece], told: set[MemberId]) -> Iterator[Piece]:
    """Pieces of one log of several, without the gaps that another one has told of; those that are told are added."""
    for piece in pieces:
        if piece.entry.kind is Kind.GAP:
            # A gap made a new incarnation, so that it is known again in another log.
            incarnation = piece.entry.gap().incarnation
            if incarnation in told:
                continue
            told.add(incarnation)
        yield piece
