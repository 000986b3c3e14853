"""What a crash left of a log: a torn tail is cut, damage is named and kept, nothing is skipped in silence.

A crash may leave any part of what was not synced, in any order. Damage that neither a later entry nor the manifest
knows to have been durable is taken for that, and the log is cut back to the last whole entry before it. Damage before
a place that was durable happened later: it is isolated, and what lies behind it stays. Where nothing does, the log goes
on with the number behind what was durable.

What a file has behind its end from when it was another segment is cut off as well, and is no loss. It must go: after a
crash there may be entries among it that were written behind this end, with numbers that are given again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from intergroup_core.effects import Install
from intergroup_core.log.body import install_of
from intergroup_core.log.context import Context
from intergroup_core.log.entry import EntryHeader, ends_at, header_at
from intergroup_core.log.index import IndexBuilder
from intergroup_core.log.manifest import (
    SEGMENT_SUFFIX,
    TEMPORARY_SUFFIX,
    Manifest,
    SealedSegment,
    first_of,
    index_name,
    segment_name,
)
from intergroup_core.log.segment import (
    Damage,
    OpenedSegment,
    Scan,
    ended_segment,
    missing_segment,
    open_sealed,
    payload_at,
    payload_is_sound,
)
from intergroup_core.ports import Disk


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a file, or all of it, that was removed because a crash had left it incomplete."""

    file: str
    offset: int
    removed_bytes: int
    whole_entries: int
    """Entries that were whole but stood behind something that was not."""


@dataclass(slots=True)
class Report:
    """What recovery found and did."""

    cuts: list[Cut] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    removed_files: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recovered:
    """A log that can be continued."""

    manifest: Manifest
    report: Report
    context: Context
    unsettled: tuple[SealedSegment, ...]
    """Segments that are complete but not in the manifest."""
    active: IndexBuilder | None
    """The segment to go on with; None where a new one is to be begun."""


def recover(disk: Disk, manifest: Manifest) -> Recovered:
    """Bring a log into a state that can be continued."""
    report = Report()
    _remove_leftovers(disk, manifest, report)
    segments: list[OpenedSegment] = []
    for seal in manifest.sealed:
        before = segments[-1].index.totals.highest if segments else 0
        segments.append(open_sealed(disk, manifest.log, seal, before))
        report.damages += segments[-1].damages
    tail = _tail(disk, manifest, segments, report)
    segments += [each.opened for each in tail]
    active = tail.pop() if tail and not tail[-1].opened.damages else None
    return Recovered(
        manifest,
        report,
        _context(disk, manifest, segments),
        tuple(each.sealed for each in tail),
        active.scan.builder if active is not None else None,
    )


@dataclass(frozen=True, slots=True)
class _TailSegment:
    """A segment that no manifest lists, after what a crash left of it was cut."""

    scan: Scan
    opened: OpenedSegment

    @property
    def sealed(self) -> SealedSegment:
        """What will be said of it where nothing more comes into it, its damages included."""
        size = max([self.scan.end, *(damage.stop for damage in self.opened.damages)])
        return replace(self.scan.builder.sealed(), stop=self.opened.stop, size=size)


def tail_segments(names: list[str], manifest: Manifest) -> list[int]:
    """First entries of the segments that no manifest lists, in order."""
    firsts = [first_of(name) for name in names if name.endswith(SEGMENT_SUFFIX)]
    return sorted(first for first in firsts if first is not None and first >= manifest.tail)


def _remove_leftovers(disk: Disk, manifest: Manifest, report: Report) -> None:
    listed = {segment.first for segment in manifest.sealed}
    names = disk.names()
    segments = {first_of(name) for name in names if name.endswith(SEGMENT_SUFFIX)}
    for name in sorted(names):
        first = first_of(name)
        forgotten = first is not None and first < manifest.tail and first not in listed
        orphan = first is not None and first not in segments
        if name.endswith(TEMPORARY_SUFFIX) or forgotten or orphan:
            disk.remove(name)
            report.removed_files.append(f"{disk.where}/{name}")


def _tail(disk: Disk, manifest: Manifest, sealed: list[OpenedSegment], report: Report) -> list[_TailSegment]:
    """The segments after those listed, as far as they are a continuation."""
    found: list[_TailSegment] = []
    expected = manifest.tail
    highest = sealed[-1].index.totals.highest if sealed else 0
    durable = manifest.durable_in(expected)
    firsts = tail_segments(disk.names(), manifest)
    named: set[str] = set()
    if durable is not None and expected not in firsts:
        missing = missing_segment(disk, durable, highest)
        report.damages += missing.damages
        named = {damage.file for damage in missing.damages}
        disk.create(segment_name(expected)).close()  # with nothing in it, so that the log can go on behind it
        firsts.insert(0, expected)
    for at, first in enumerate(firsts):
        if first != expected:
            _cut_files(disk, manifest.log, firsts[at:], report)
            break
        each = _scan_tail(disk, manifest, first, highest, report)
        report.damages += [damage for damage in each.opened.damages if damage.file not in named]
        found.append(each)
        expected, highest = each.opened.stop, each.scan.builder.highest
    return found


def _scan_tail(disk: Disk, manifest: Manifest, first: int, highest: int, report: Report) -> _TailSegment:
    name, log, durable = segment_name(first), manifest.log, manifest.durable_in(first)
    data = disk.map(name)
    scan = Scan(f"{disk.where}/{name}", log, IndexBuilder(first, highest))
    scan.walk(data, check_payloads=True)
    entries = scan.builder.entries
    known = max(scan.synced, durable.size if durable is not None else 0)
    uncertain = next((damage for damage in scan.damages if damage.offset >= known), None)
    if uncertain is not None:
        scan = Scan(scan.name, log, IndexBuilder(first, highest))
        scan.walk(data[: uncertain.offset], check_payloads=True)
    lacking = scan.lacks(durable)
    end = scan.end if lacking is None else lacking.stop
    if end < len(data):
        whole = entries - scan.builder.entries
        if whole or not ends_at(data, end, first):  # the mark may be behind what is damaged, too
            report.cuts.append(Cut(scan.name, end, len(data) - end, whole))
        del data
        disk.cut(name, end)
    found = _TailSegment(scan, ended_segment(scan, durable))
    if found.opened.damages and index_name(first) in disk.names():
        # It was noted while all was whole: once the segment is sealed, nobody would look for what is damaged.
        disk.remove(index_name(first))
        disk.sync_names()
    return found


def _cut_files(disk: Disk, log: int, firsts: list[int], report: Report) -> None:
    """Remove segments that continue nothing; the last first, so that a crash leaves no hole."""
    for first in reversed(firsts):
        name = segment_name(first)
        size = disk.size(name)
        scan = Scan(f"{disk.where}/{name}", log, IndexBuilder(first))
        scan.walk(disk.map(name), check_payloads=False)
        report.cuts.append(Cut(scan.name, 0, size, scan.builder.entries))
        disk.remove(name)
        if index_name(first) in disk.names():
            disk.remove(index_name(first))
    disk.sync_names()


def _context(disk: Disk, manifest: Manifest, segments: list[OpenedSegment]) -> Context:
    """What the next entry continues, from the last entry that can be read."""
    context = Context(entry=manifest.tail)
    for segment in reversed(segments):
        header = _last_header(disk, segment)
        if header is not None:
            highest = segments[-1].index.totals.highest
            context = Context(0, highest=highest).after(header)._replace(install=_last_install(disk, segments))
            break
    return context._replace(entry=segments[-1].stop if segments else manifest.tail)


def _last_header(disk: Disk, segment: OpenedSegment) -> EntryHeader | None:
    points = segment.index.points
    if not len(points):
        return None
    name = segment_name(segment.first)
    data = disk.map(name, 0, min(disk.size(name), segment.index.totals.size))
    offset, last = int(points["offset"][-1]), None
    while (header := header_at(data, offset)) is not None:
        last, offset = header, offset + header.size
    return last


def _last_install(disk: Disk, segments: list[OpenedSegment]) -> Install | None:
    """The view in force at the end; None where damage may have been a later one, for which an older would be taken."""
    for segment in reversed(segments):
        places = segment.index.view_places()
        offset = places[-1].offset if places else 0
        if any(damage.stop > offset for damage in segment.damages):
            return None
        if places:
            name = segment_name(segment.first)
            data = disk.map(name)
            header = header_at(data, offset)
            # A sealed segment is taken by its index, without a look at what the index is of.
            sound = header is not None and payload_is_sound(data, offset, header)
            return install_of(payload_at(data, offset, header)) if header is not None and sound else None
    return None
