"""Which of the oldest segments of a log may be removed, and where it begins then: decisions without doing anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intergroup_core.errors import LogDamaged
from intergroup_core.ids import Instant, MemberId, Service, timestamp_at
from intergroup_core.log.cut import SourceCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.manifest import Manifest, SealedSegment, read_manifest
from intergroup_core.log.segment import open_sealed
from intergroup_core.log.sources import LogSources
from intergroup_core.ports import Disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a log keeps; what is within both limits is kept even where nobody asks for it."""

    bytes: int = 1 << 30
    age_ns: int = 24 * 3600 * 10**9
    """By the group's time of a segment's last entry."""


def removable(
    segments: Sequence[SealedSegment], *, limits: Limits, now: Instant, active_bytes: int = 0, floor: int | None = None
) -> tuple[SealedSegment, ...]:
    """The oldest sealed segments that are beyond a limit, as far as nobody holds them.

    `floor` is the lowest entry that somebody with a lease may still ask for: it beats both limits, and the log then
    grows beyond them until senders are held up. Without one the limits alone decide.
    """
    oldest = timestamp_at(max(0, now.wall - limits.age_ns))
    total = active_bytes + sum(segment.size for segment in segments)
    removed: list[SealedSegment] = []
    for segment in segments:
        beyond = total > limits.bytes or segment.last_timestamp < oldest
        if not beyond or (floor is not None and segment.stop > floor):
            break
        removed.append(segment)
        total -= segment.size
    return tuple(removed)


def begins_behind(disk: Disk, manifest: Manifest, removed: Sequence[SealedSegment]) -> SourceCut | None:
    """Where senders stand when a log begins without its oldest segments, where it is known where they stood before.

    Where a log of `rto` begins in its order the view tells that is carried into the next segment. One of `rso` of which
    nobody said anything had nothing before it began: what comes out is how far that goes which it had.
    """
    begin = manifest.after if isinstance(manifest.after, SourceCut) else manifest.sources
    if begin is None and manifest.service is Service.RSO:
        begin = manifest.missing
        if begin is None and not manifest.first:
            begin = SourceCut()
    if begin is None:
        return None
    try:
        return _stand_behind(_Oldest(disk, removed), begin)
    except LogDamaged:
        return None  # what is damaged goes as well


def _stand_behind(log: _Oldest, begin: SourceCut) -> SourceCut | None:
    """Where senders stand behind all of a log."""
    if log.damages:
        return None  # nobody can say what was there
    lineage = log.lineage()
    last = {**lineage.all_named(begin).seqs, **log.last_seqs()}
    views = [place.view for segment in log.segments for place in segment.index.view_places()]
    view = views[-1] if views else begin.view
    standings = lineage.at(view)
    heard = _heard_since_gaps(log)
    if heard is not None and not heard.issuperset(standings.members):
        return None  # what a gap skipped of one that is silent since would seem to be here
    return SourceCut(standings.named(standings.reached(last)), view)


class _Oldest(LogSources):
    """The segments that are to be removed, by their indexes; what comes behind them may be much, and is not read."""

    def __init__(self, disk: Disk, removed: Sequence[SealedSegment]) -> None:
        self._removed = removed
        super().__init__(disk)

    def _look(self) -> bool:
        self.manifest = read_manifest(self._disk)
        highest = 0
        self._segments = []
        for seal in self._removed:
            self._segments.append(open_sealed(self._disk, self.manifest.log, seal, highest))
            highest = seal.last_timestamp
        return True


def _heard_since_gaps(log: LogSources) -> set[MemberId] | None:
    """Of whom something is said, by itself or by a view, behind the last gap; None where there is none."""
    gaps = [entry for segment in log.segments for entry in segment.index.gaps["entry"].tolist()]
    if not gaps:
        return None
    heard: set[MemberId] = set()
    for entry in log.entries(gaps[-1], check=False):
        if entry.kind is Kind.DATA:
            heard.add(MemberId(entry.header.source))
        elif entry.kind is Kind.VIEW and not entry.header.carried:
            heard |= {source for source, _ in entry.install().before}
    return heard
