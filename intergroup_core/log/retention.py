"""Which of the oldest segments of a log may be removed, and where it begins then: decisions without doing anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intergroup_core.ids import Instant, MemberId, timestamp_at
from intergroup_core.log.cut import SourceCut
from intergroup_core.log.manifest import Manifest, SealedSegment
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
    """The cut at which a log of `rso` begins without its oldest segments, where it is known at which it began.

    In `rto` the view that is carried into the next segment tells it.
    """
    after = manifest.after
    if not isinstance(after, SourceCut):
        return None
    log = LogSources(disk)
    lineage = log.lineage()
    seqs, view = dict(lineage.all_named(after).seqs), after.view
    stop = removed[-1].stop
    for segment in log.segments:
        if segment.stop > stop:
            break
        if segment.damages:
            return None  # nobody can say what was there
        for source, _, last in segment.index.sources.tolist():
            seqs[MemberId(source)] = last
        for place in segment.index.view_places():
            view = place.view
    standings = lineage.at(view)
    return SourceCut(standings.named(standings.reached(seqs)), view)
