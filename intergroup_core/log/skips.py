"""What the gaps of a log of `rso` skipped: of each sender the seqs between its last message before and its first after.

Where a view behind the gap says up to where a sender's messages lie before it, from there on everything is here. A jump
alone skips nothing, for membership messages have seqs too; it takes a gap in between. Of a sender that said nothing
since a gap nobody knows whether something was skipped, and no cut of such a log says that it has more of it.

What was fetched from within a view has that first, and behind it perhaps gaps from before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from intergroup_core.effects import Install
from intergroup_core.ids import MemberId, ViewId
from intergroup_core.log.entries import LogEntries
from intergroup_core.log.entry import EntryHeader, Kind
from intergroup_core.log.segment import OpenedSegment


class Skip(NamedTuple):
    """The seqs (low, high] of a sender, and the first and the last gap that may have skipped them."""

    source: MemberId
    low: int
    high: int
    first_gap: int
    last_gap: int

    def is_within(self, seqs: Mapping[MemberId, int]) -> bool:
        """Whether a cut with these seqs has skipped messages on both of its sides, or may have."""
        return self.low < seqs.get(self.source, 0) < self.high

    def is_crossed(self, low: int, high: int) -> bool:
        """Whether some of them lie between two seqs of the sender."""
        return low < self.high and high > self.low


def skips_of(log: LogEntries) -> list[Skip]:
    """What the gaps of a log skipped, in its order; quick where it has none."""
    if not any(len(segment.index.gaps) for segment in log.segments):
        return []
    before_it, stated = log.senders_before, log.senders_begin is not None
    last: dict[MemberId, int] = dict(before_it.seqs) if before_it is not None else {}
    gaps: list[int] = []
    heard: dict[MemberId, int] = {}
    """How many gaps there were before a sender's last message."""
    found: list[Skip] = []
    for source, first_seq, last_seq, gap in _spoken(log):
        if source is None:
            gaps.append(gap)
            continue
        before, since = last.get(source, 0 if stated else first_seq - 1), heard.get(source, 0)
        if since < len(gaps) and before < first_seq - 1:
            found.append(Skip(source, before, first_seq - 1, gaps[since], gaps[-1]))
        last[source], heard[source] = max(last_seq, before), len(gaps)
    return found


def is_from_before(gap: EntryHeader, view: ViewId) -> bool:
    """Whether a gap that stands in a log behind the view which that begins in came before the view."""
    return gap.last_timestamp < view.start


def _spoken(log: LogEntries) -> Iterator[tuple[MemberId | None, int, int, int]]:
    """Senders with first and last seq, and gaps with their entry: one by one where there is a gap in a segment.

    A sender of which a view speaks has nothing there, behind the seq that the view says. The one that the log begins in
    says it behind the gaps from before it.
    """
    carried = _carried(log)
    said = dict(carried.before) if carried is not None else {}
    for segment in log.segments:
        if not len(segment.index.gaps):
            yield from _summed_up(log, segment)
            continue
        for entry in log.entries(max(log.first, segment.first), segment.readable, check=False):
            header = entry.header
            if header.kind == Kind.GAP:
                if carried is not None and not is_from_before(header, carried.view.id):
                    for source, seq in said.items():
                        yield source, seq + 1, seq, 0
                    said = {}
                yield None, 0, 0, header.entry
            elif header.kind == Kind.DATA:
                source = MemberId(header.source)
                if header.first_seq > said.get(source, header.first_seq):
                    seq = said.pop(source)
                    yield source, seq + 1, seq, 0
                yield source, header.first_seq, header.last_seq, 0
            elif not header.carried:
                for source, seq in entry.install().before:
                    yield source, seq + 1, seq, 0


def _carried(log: LogEntries) -> Install | None:
    """The view that a log begins in, where it is known where senders stood."""
    if log.senders_before is None or log.readable == log.first:
        return None
    (first,) = log.entries(log.first, log.first + 1, check=False)
    return first.install() if first.header.carried else None


def _summed_up(log: LogEntries, segment: OpenedSegment) -> Iterator[tuple[MemberId | None, int, int, int]]:
    spans = {MemberId(source): (first_seq, last_seq) for source, first_seq, last_seq in segment.index.sources.tolist()}
    for place in segment.index.view_places():
        (entry,) = log.entries(place.entry, place.entry + 1, check=False)
        for source, seq in entry.install().before if place.own else ():
            first_seq, last_seq = spans.get(source, (seq + 1, seq))
            spans[source] = min(first_seq, seq + 1), max(last_seq, seq)
    for source, (first_seq, last_seq) in spans.items():
        yield source, first_seq, last_seq, 0
