"""Where a log of `rto` jumps, because its member skipped something or because it is damaged, and what fills that.

What a jump left out lies between the last thing before it and the first message behind it: a view that a member comes
into in its midst has messages before that. A part that was fetched and has all of it is read in the log's place there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from intergroup_core.errors import LogDamaged
from intergroup_core.ids import MemberId
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.entry import Kind, header_at
from intergroup_core.log.manifest import told_name
from intergroup_core.log.part import OrderPart
from intergroup_core.log.reader import LogReader, Place
from intergroup_core.log.segment import OpenedSegment


class Jump(NamedTuple):
    """Entries [first, stop) of a log, among them the first message behind what is missing."""

    log: LogReader
    first: int
    stop: int
    begin: OrderCut
    """Behind the last thing before it."""
    end: OrderCut | None
    """Behind that message; None where none has come."""
    why: str
    incarnations: tuple[MemberId, ...] = ()
    """Of a gap, by which it is known; none where the log is damaged."""

    @property
    def told(self) -> bool:
        """Whether somebody was given the gap instead of what it skipped, so that it stays one."""
        return any(told_name(each) in self.log.names for each in self.incarnations)

    def is_crossed(self, start: Place, stop: Place) -> bool:
        """Whether something is missing between two places of the log."""
        return start.entry <= self.first < stop.entry + bool(stop.message)


class Filling(NamedTuple):
    """A part that has everything between two places of another log, where that jumps."""

    part: OrderPart
    start: Place
    stop: Place


def jumps_of(log: LogReader) -> list[Jump]:
    """In the order of the log."""
    found: list[Jump] = []
    for segment in log.segments:
        for first, behind, why in sorted([*_gaps(log, segment), *_damages(log, segment)]):
            if found and first < found[-1].stop:
                continue  # one gap behind another, with no message in between
            found.append(_jump(log, first, behind, why))
    return found


def _gaps(log: LogReader, segment: OpenedSegment) -> Iterator[tuple[int, int, str]]:
    for number in segment.index.gaps["entry"].tolist():
        (entry,) = log.entries(number, number + 1)
        yield number, number, f"this site's member was out of the group: {entry.gap().reason}"


def _damages(log: LogReader, segment: OpenedSegment) -> Iterator[tuple[int, int, str]]:
    """The first entry that is damaged, and the next that is not; what is damaged at the end is no jump."""
    for damage in segment.damages:
        data = log.data_of(segment.first)
        header = header_at(data, damage.stop) if data is not None else None
        if header is None:
            continue
        first = max(segment.first, segment.index.entry_before(damage.offset))
        try:
            for entry in log.entries(first, header.entry, check=False):
                first = entry.header.entry + 1
        except LogDamaged as error:
            yield first, header.entry, str(error)


def _jump(log: LogReader, first: int, behind: int, why: str) -> Jump:
    gone: list[MemberId] = []
    view = log.install_before(first)
    before = next(log.entries(first - 1, first, check=False)).header if first > log.first else None
    begin = OrderCut(
        before.last_timestamp if before is not None else 0,
        MemberId(before.source if before is not None else 0),
        view.view.id if view is not None else None,
    )
    for entry in log.entries(behind, log.readable, check=False):
        if entry.kind is Kind.GAP:
            gone.append(entry.gap().incarnation)
        elif entry.kind is Kind.DATA:
            stop = entry.header.entry + 1
            # What is damaged may have been a view.
            view = log.install_before(stop) if gone else None
            end = OrderCut(
                entry.header.last_timestamp, MemberId(entry.header.source), view.view.id if view is not None else None
            )
            return Jump(log, first, stop, begin, end, why, tuple(gone))
    return Jump(log, first, log.readable, begin, None, why, tuple(gone))


def fillings_of(parts: Sequence[OrderPart]) -> dict[int, list[Filling]]:
    """By the id of the log that jumps, what is read in its place, in order."""
    found: dict[int, list[Filling]] = {}
    whole = [part for part in parts if _is_whole(part)]
    for part in parts:
        for jump in jumps_of(part.reader) if whole and may_jump(part.reader) else ():
            fillings = [filling for each in whole if (filling := _filling(part, each, jump)) is not None]
            if fillings and not jump.told:
                best = max(fillings, key=lambda filling: filling.stop)
                found.setdefault(part.reader.manifest.log, []).append(best)
    return found


def _is_whole(part: OrderPart) -> bool:
    """Whether a part was fetched, and lacks nothing."""
    manifest = part.reader.manifest
    complete = isinstance(manifest.after, OrderCut) and part.end == manifest.upto
    return complete and not may_jump(part.reader)


def may_jump(log: LogReader) -> bool:
    """Whether it is worth while to look for jumps."""
    return any(segment.damages or len(segment.index.gaps) for segment in log.segments)


def _filling(part: OrderPart, other: OrderPart, jump: Jump) -> Filling | None:
    if other is part or not part.holds(other.begin) or not part.holds(other.end):
        return None
    try:
        start, stop = part.place_of(other.begin), part.place_of(other.end)
    except LogDamaged:
        return None  # nobody can say where it lies
    return Filling(other, start, stop) if start.entry <= jump.first < stop.entry else None
