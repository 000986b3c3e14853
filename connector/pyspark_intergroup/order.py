"""Which of two cuts of one stream lies behind the other, and what lies before a cut that has no one place."""

from __future__ import annotations

from intergroup_core.ids import MemberId
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.entries import Entry
from intergroup_core.log.entry import Kind
from intergroup_core.log.log_lineage import LogLineage


def is_behind(cut: Cut, other: Cut) -> bool:
    """Whether a cut lies behind another one of the same stream."""
    match cut, other:
        case OrderCut(), OrderCut():
            return (cut.timestamp, cut.sender) > (other.timestamp, other.sender)
        case SourceCut(), SourceCut():
            newer = cut.view is not None and (other.view is None or cut.view > other.view)
            older = other.view is not None and (cut.view is None or other.view > cut.view)
            # Of whom a later cut says nothing, it says by its view that all of it lies before.
            passed = {source: seq for source, seq in cut.seqs.items() if source in other.seqs or not older}
            return newer or any(seq > other.seqs.get(source, 0) for source, seq in passed.items())
        case EntryCut(), EntryCut():
            return cut.log != other.log or cut.entry > other.entry
        case _:
            return False


class PassedEntries:
    """Which entries of a log of `rso` lie wholly before a cut; a gap has no place of its own."""

    def __init__(self, lineage: LogLineage, cut: SourceCut) -> None:
        self._view = cut.view
        self._seqs = lineage.all_named(cut).seqs
        # What a repair cut off is not reached by any cut, and nobody waits for it.
        self._left_at = {source: lineage.left_at.get(source, 0) for source in lineage.at(cut.view).cut_off}

    def has(self, entry: Entry) -> bool:
        header = entry.header
        match entry.kind:
            case Kind.DATA:
                source = MemberId(header.source)
                return header.last_seq <= self._seqs.get(source, 0) or header.entry < self._left_at.get(source, 0)
            case Kind.VIEW:
                return self._view is not None and entry.install().view.id <= self._view
            case _:
                return True
