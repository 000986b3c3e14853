"""Logs of `rto` read by their senders: whoever has the one order of a group has the order of each sender in it.

What an `rso` member had beyond the cut of a repair is not there, and neither is what the order has not come to yet: a
cut that names it is not held. All else between two cuts of `rso` is the same as in a log of that service.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.cut import Cut, SourceCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.log_span import LogSpan
from intergroup_core.log.manifest import MANIFEST, read_manifest
from intergroup_core.log.part import SourcePart
from intergroup_core.log.reader import LogReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.log.stretch import SourceStretch, Stretch
from intergroup_core.ports import Disk


class OrderedSources(StreamReader):
    """The parts of a stream of `rto` as if they were of `rso`; its cuts are those of `rso`.

    Parts of which each goes on where the one before it ends have all of every sender from where the first one begins,
    if that says where its senders stood. What was fetched in the place of a gap is read there.
    """

    def refresh(self, disks: Sequence[Disk] | None = None) -> None:
        super().refresh(disks)
        found = (_by_sender(logs) for logs in map(self._logs_of, self._stretches))
        self._stretches = [stretch for stretch in found if stretch is not None]
        self._fillings, self._fillers = {}, []

    def _logs_of(self, ordered: Stretch[Any]) -> Iterator[LogReader]:
        """The logs of a stretch, one after another, and in the midst of one what fills its gaps."""
        for part in ordered.parts:
            log: LogReader = part.reader
            at = log.first
            for filler, start, stop in self._fillings.get(log.manifest.log, ()) if not log.damages else ():
                if start.message or stop.message or start.entry < at:
                    continue  # it ends in the midst of an entry, and the gap stays one
                yield LogSpan(log, at, start.entry)
                yield filler.reader
                at = stop.entry
            yield log if at == log.first else LogSpan(log, at, log.readable)

    def __str__(self) -> str:
        return f"{super().__str__()}, by senders"


class OrderedStretch(SourceStretch):
    """Of parts of `rto`, whose first one knows nothing of senders that were gone when it began."""

    def lacks(self, start: SourceCut, stop: SourceCut) -> bool:
        if super().lacks(start, stop) or self._is_in_a_branch(start, 0) or self._is_in_a_branch(stop, 1):
            return True
        return any(self._may_lack(source, seq, stop) for source, seq in start.seqs.items())

    def _is_in_a_branch(self, cut: SourceCut, within: int) -> bool:
        """Whether a cut names something of a sender that had been gone on this side only, before it returned."""
        lost = self.lineage.lost_before(cut.view)
        return any(low + within <= seq < high for source, seq in cut.seqs.items() for low, high in lost.get(source, ()))

    def _may_lack(self, source: MemberId, seq: int, stop: SourceCut) -> bool:
        """Whether a sender that a cut names may have sent more before this began: nobody here would know of it."""
        if not seq or source in self._begin:
            return False
        first = self._first_known(source)
        return seq < first if first is not None else stop.seqs.get(source) != seq

    def _first_known(self, source: MemberId) -> int | None:
        """Behind which seq everything of a sender is here that was not there from the beginning; None for strangers."""
        firsts = [self.lineage.first_said(source)]
        for part in self.parts:
            assert isinstance(part, SourcePart)
            firsts.append(part.first_seqs[source] - 1 if source in part.first_seqs else None)
        return min((first for first in firsts if first is not None), default=None)


def _by_sender(logs: Iterable[LogReader]) -> OrderedStretch | None:
    stretch: OrderedStretch | None = None
    for log in logs:
        if stretch is not None:
            log.continues(stretch.reached)
            stretch.add(SourcePart(log))
        elif (begin := _beginning(log)) is not None:
            log.continues(begin)
            stretch = OrderedStretch(SourcePart(log))
    return stretch


def _beginning(log: LogReader) -> SourceCut | None:
    """Where senders stood when a log begins: as its manifest says, or a view that it begins with says of all."""
    if log.manifest.sources is not None or log.readable == log.first:
        return log.manifest.sources
    (first,) = log.entries(log.first, log.first + 1)
    if first.kind is not Kind.VIEW or first.header.carried:
        return None
    install = first.install()
    before = dict(install.before)
    members = install.view.members
    return (
        SourceCut({each: before[each] for each in members}, install.view.id) if before.keys() >= set(members) else None
    )


def source_readers(disks: Sequence[Disk]) -> list[StreamReader]:
    """What may hold ranges of `rso`, of logs of one group by whatever service; those of `rso` first."""
    services = [(read_manifest(disk).service, disk) for disk in disks if MANIFEST in disk.names()]
    by_source, ordered = ([disk for found, disk in services if found is each] for each in (Service.RSO, Service.RTO))
    return [StreamReader(by_source), OrderedSources(ordered)]


def holder_of(readers: Sequence[StreamReader], start: Cut, stop: Cut) -> StreamReader:
    """The one that holds a range, before others one that skipped nothing of it; RangeUnavailable where none does."""
    holders: list[StreamReader] = []
    refusals: list[str] = []
    for reader in readers:
        try:
            reader.ranges(start, stop)
            holders.append(reader)
        except RangeUnavailable as error:
            refusals.append(str(error))
    if not holders:
        raise RangeUnavailable("; and ".join(refusals))
    return min(holders, key=lambda each: bool(each.skipped(start, stop)))
