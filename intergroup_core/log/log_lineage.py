"""The lineage of one log, followed as that grows; only views are read, and what lies before a gap."""

from __future__ import annotations

from intergroup_core.errors import LogDamaged
from intergroup_core.ids import MemberId
from intergroup_core.log.entries import LogEntries
from intergroup_core.log.entry import Kind
from intergroup_core.log.lineage import Lineage


class LogLineage(Lineage):
    """Of a log of `rso`, or one of `rto` that is read by its senders, as it was at the last look."""

    def __init__(self, log: LogEntries) -> None:
        super().__init__()
        self._first = log.first
        self._stop = log.first
        self.left_at: dict[MemberId, int] = {}
        """The entry of the last view that said of a sender where it ended."""
        self.joined_at: dict[MemberId, int] = {}
        """Behind which seq all of a sender stands behind a view in this log itself: the first that it joined with."""

    def follows(self, log: LogEntries) -> bool:
        """Look on; False where the beginning of the log was removed since, and it is to be looked through anew."""
        if log.first != self._first:
            return False
        for segment in log.segments:
            if segment.stop <= self._stop:
                continue
            marks = [(entry, True) for entry in segment.index.views["entry"].tolist()]
            marks += [(entry, False) for entry in segment.index.gaps["entry"].tolist()]
            for entry, is_view in sorted(marks):
                if entry < self._stop:
                    continue
                if is_view:
                    self._view(log, entry)
                else:
                    self.skip(_last_before(log, entry))
        self._stop = log.stop
        return True

    def _view(self, log: LogEntries, number: int) -> None:
        try:
            (entry,) = log.entries(number, number + 1)
        except LogDamaged:
            self.skip(_last_before(log, number))  # who reads over it is told; the rest stays readable
            return
        install = entry.install()
        begin = log.senders_begin
        if number == self._first and begin is not None and begin.view == install.view.id:
            self.begin(begin, install.view.members)
        self.enter(install)
        if not entry.header.carried:
            members = set(install.view.members)
            self.left_at |= {source: number for source, _ in install.before if source not in members}
            joined = {source: seq for source, seq in install.before if source in install.joined}
            self.joined_at = joined | self.joined_at


def _last_before(log: LogEntries, stop: int) -> dict[MemberId, int]:
    """The last message of each sender before an entry, or what was said before the log began."""
    begin = log.senders_before
    last = dict(begin.seqs) if begin is not None else {}
    for segment in log.segments:
        if segment.stop <= stop:
            last |= {MemberId(source): seq for source, _, seq in segment.index.sources.tolist()}
            continue
        for entry in log.entries(max(log.first, segment.first), stop, check=False):
            if entry.kind is Kind.DATA:
                last[MemberId(entry.header.source)] = entry.header.last_seq
        break
    return last
