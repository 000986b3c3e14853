"""Which of two cuts of one stream lies behind the other, and what lies before a cut that has no one place."""

from __future__ import annotations

from intergroup_core.ids import MemberId
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.entries import Entry
from intergroup_core.log.entry import Kind


def is_behind(cut: Cut, other: Cut) -> bool:
    """Whether a cut lies behind another one of the same stream."""
    match cut, other:
        case OrderCut(), OrderCut():
            return (cut.timestamp, cut.sender) > (other.timestamp, other.sender)
        case SourceCut(), SourceCut():
            newer = cut.view is not None and (other.view is None or cut.view > other.view)
            return newer or any(seq > other.seqs.get(source, 0) for source, seq in cut.seqs.items())
        case EntryCut(), EntryCut():
            return cut.log != other.log or cut.entry > other.entry
        case _:
            return False


def is_passed(entry: Entry, cut: SourceCut) -> bool:
    """Whether all of an entry lies before a cut; a gap has no place of its own."""
    match entry.kind:
        case Kind.DATA:
            return entry.header.last_seq <= cut.seqs.get(MemberId(entry.header.source), 0)
        case Kind.VIEW:
            return cut.view is not None and entry.install().view.id <= cut.view
        case _:
            return True
