"""What holds for every log of a service: that messages stand in its order, between the two cuts of a range."""

from __future__ import annotations

from intergroup_core.effects import Install
from intergroup_core.errors import RangeMalformed
from intergroup_core.ids import MemberId
from intergroup_core.log.cut import OrderCut, SourceCut
from intergroup_core.log.lineage import Lineage
from intergroup_core.wire.chunk import Chunk

RangeCut = OrderCut | SourceCut
"""A cut that means the same at every site; those of `uu` do not."""


class RangeOrder:
    """Follows what came of a range."""

    def __init__(self, start: RangeCut) -> None:
        self._before = start.seqs if isinstance(start, SourceCut) else {}
        self._lineage = Lineage()
        self._seqs: dict[MemberId, int] = {}
        self._last = (start.timestamp, start.sender) if isinstance(start, OrderCut) else None

    def carry(self, install: Install) -> None:
        """The view in which the range begins."""
        self._lineage.enter(install)

    def data(self, chunk: Chunk) -> None:
        if self._last is not None:
            self._advance((chunk.first_timestamp, chunk.source), (chunk.last_timestamp, chunk.source))
        elif chunk.first_seq <= self._seqs.get(chunk.source, self._before.get(chunk.source, 0)):
            raise _out_of_order()
        self._seqs[chunk.source] = chunk.last_seq

    def view(self, install: Install) -> None:
        view = install.view.id
        self._lineage.enter(install)
        if self._last is not None:
            self._advance((view.start, view.leader), (view.start, view.leader))

    def gap(self, behind: OrderCut) -> None:
        """What follows may be ordered before what came."""
        if self._last is not None:
            if (behind.timestamp, behind.sender) > self._last:
                raise _out_of_order()
            self._last = (0, MemberId(0))

    def end(self, stop: RangeCut) -> None:
        if isinstance(stop, OrderCut):
            if self._last is not None and self._last > (stop.timestamp, stop.sender):
                raise _out_of_order()
            return
        # Of a sender that had sent something in the range, and is not named at its end, a view in it says where it is.
        ends = self._lineage.all_named(stop).seqs
        if any(last > ends.get(source, 0) for source, last in self._seqs.items()):
            raise _out_of_order()

    def _advance(self, first: tuple[int, MemberId], last: tuple[int, MemberId]) -> None:
        if self._last is not None and first <= self._last:
            raise _out_of_order()
        self._last = last


def _out_of_order() -> RangeMalformed:
    return RangeMalformed("a range has something out of its order; fetch it again, or from another site")
