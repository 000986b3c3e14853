"""The entries of a log as they stand in its files: opened, followed as it grows, and handed out checked."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from intergroup_core.effects import Gap, Install
from intergroup_core.errors import LogDamaged, LogError, RangeUnavailable
from intergroup_core.log.body import chunk_of, gap_of, install_of
from intergroup_core.log.context import Context
from intergroup_core.log.cut import SourceCut
from intergroup_core.log.entry import EntryHeader, Kind, check_kind, header_at
from intergroup_core.log.index import IndexBuilder
from intergroup_core.log.manifest import Manifest, read_manifest, segment_name
from intergroup_core.log.recovery import tail_segments
from intergroup_core.log.segment import (
    Damage,
    OpenedSegment,
    Scan,
    ended_segment,
    look_through,
    missing_segment,
    noted_scan,
    open_sealed,
    payload_at,
    payload_is_sound,
)
from intergroup_core.ports import Disk
from intergroup_core.wire.chunk import Chunk

MAPPED_SEGMENTS = 4
"""That a reader keeps mapped, those it read last: while it does, the writer cannot use their files again."""
LOOKS = 3
"""At a log whose oldest segments are being removed; what is still missing then is damage."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry, its payload in place."""

    header: EntryHeader
    data: memoryview
    file: str
    offset: int

    @property
    def kind(self) -> Kind:
        return check_kind(self.header, self.file, self.offset)

    def payload(self) -> memoryview:
        return payload_at(self.data, self.offset, self.header)

    def chunk(self) -> Chunk:
        return chunk_of(self.header, self.payload())

    def install(self) -> Install:
        """The view of an entry that is one; LogDamaged where it is not what was written."""
        self.check()
        return install_of(self.payload())

    def gap(self) -> Gap:
        """The same of a gap."""
        self.check()
        return gap_of(self.payload())

    def check(self) -> None:
        """Refuse a payload that is not what was written."""
        if not payload_is_sound(self.data, self.offset, self.header):
            raise LogDamaged(self.file, self.offset, "an entry's payload is not what was written")


class LogEntries:
    """The log in one directory, as it was at the last look."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._maps: dict[int, memoryview] = {}
        """By first entry, the one that was used last at the end."""
        self._segments: list[OpenedSegment] = []
        self._scans: dict[int, Scan] = {}
        self._read_on = (-1, -1, 0)
        """Segment, entry and offset behind the entry that was read last."""
        self.manifest: Manifest
        self.refresh()

    @property
    def disk(self) -> Disk:
        return self._disk

    @property
    def where(self) -> str:
        """The directory it is in."""
        return self._disk.where

    @property
    def names(self) -> frozenset[str]:
        """Of the files in its directory."""
        return frozenset(self._disk.names())

    @property
    def segments(self) -> tuple[OpenedSegment, ...]:
        return tuple(self._segments)

    @property
    def senders_begin(self) -> SourceCut | None:
        """Where senders stood when the log begins: all that they sent behind it is here. None where nobody said."""
        after = self.manifest.after
        return after if isinstance(after, SourceCut) else self.manifest.sources

    @property
    def senders_before(self) -> SourceCut | None:
        """The same; where nobody said it, up to where something of them may be missing."""
        return self.senders_begin or self.manifest.missing

    @property
    def damages(self) -> tuple[Damage, ...]:
        """What is known to be damaged; reading may find more."""
        return tuple(damage for segment in self._segments for damage in segment.damages)

    @property
    def first(self) -> int:
        """The number of the first entry that is held."""
        return self._segments[0].first if self._segments else self.manifest.tail

    @property
    def stop(self) -> int:
        """The number of the entry after the last."""
        return self._segments[-1].stop if self._segments else self.manifest.tail

    @property
    def readable(self) -> int:
        """The number of the entry after the last that is not damaged: less than `stop` where the end of the log is."""
        held = (segment for segment in reversed(self._segments) if segment.readable > segment.first)
        return next((segment.readable for segment in held), self.first)

    @property
    def damaged_end(self) -> Damage | None:
        """What is damaged at the end of the log, with nothing behind it that can be read."""
        if self.readable == self.stop:
            return None
        at = bisect_right(self._segments, self.readable, key=lambda segment: segment.stop)
        return self._segments[at].damages[-1]

    def refresh(self) -> None:
        """See what was appended, sealed and removed."""
        for last in range(LOOKS, 0, -1):
            try:
                if self._look() and not self.damages:
                    break
            except LogError:
                if last == 1 or read_manifest(self._disk) == self.manifest:
                    raise
            # A segment may be removed between a look at the manifest and a look at the file.
            if read_manifest(self._disk) == self.manifest:
                break

    def _look(self) -> bool:
        """Whether every file continues the one before it."""
        whole = True
        self.manifest = manifest = read_manifest(self._disk)
        known = {segment.first: segment for segment in self._segments if segment.first not in self._scans}
        segments: list[OpenedSegment] = []
        for seal in manifest.sealed:
            highest = segments[-1].index.totals.highest if segments else 0
            segments.append(known.get(seal.first) or open_sealed(self._disk, manifest.log, seal, highest))
        firsts, durable = tail_segments(self._disk.names(), manifest), manifest.durable_in(manifest.tail)
        if durable is not None and durable.first not in firsts:
            segments.append(missing_segment(self._disk, durable, segments[-1].index.totals.highest if segments else 0))
        for first, following in zip_longest(firsts, firsts[1:]):
            if first != (segments[-1].stop if segments else manifest.tail):
                whole = False
                break
            highest = segments[-1].index.totals.highest if segments else 0
            segments.append(self._look_through(first, highest, following))
        self._segments = segments
        kept = {segment.first for segment in segments}
        self._scans = {first: scan for first, scan in self._scans.items() if first in kept and first >= manifest.tail}
        self._maps = {first: data for first, data in self._maps.items() if first in kept}
        return whole

    def _look_through(self, first: int, highest: int, following: int | None) -> OpenedSegment:
        """A segment that is not listed yet, from where the last look ended; with the next one's first entry."""
        name = segment_name(first)
        scan = self._scans.get(first)
        if scan is None or (scan.builder.stop != following and self._disk.size(name) > scan.end):
            data = self._disk.map(name)
            if scan is None:
                noted = noted_scan(self._disk, self.manifest.log, first, data)
                scan = self._scans[first] = noted or self._new_scan(first, highest)
            scan.walk(data, check_payloads=False)
            self._keep(first, data)
        return ended_segment(scan, self.manifest.durable_in(first))

    def _new_scan(self, first: int, highest: int) -> Scan:
        return Scan(f"{self._disk.where}/{segment_name(first)}", self.manifest.log, IndexBuilder(first, highest))

    def entries(self, first: int, stop: int | None = None, *, check: bool = True) -> Iterator[Entry]:
        """Entries [first, stop) by number; LogDamaged where one of them cannot be read."""
        stop = self.stop if stop is None else stop
        if first < self.first or stop > self.stop:
            raise RangeUnavailable(
                f"{self._disk.where} holds entries {self.first} to {self.stop}, not {first} to {stop}; "
                "fetch what is missing from another site"
            )
        at = bisect_right(self._segments, first, key=lambda segment: segment.first) - 1
        while first < stop:
            segment = self._segments[at]
            for entry in self._entries_of(segment, first, min(stop, segment.stop)):
                if check:
                    entry.check()
                yield entry
            first, at = segment.stop, at + 1

    def _entries_of(self, segment: OpenedSegment, first: int, stop: int) -> Iterator[Entry]:
        file = f"{self._disk.where}/{segment_name(segment.first)}"
        data = self._mapped(segment)
        begun, next_entry, next_offset = self._read_on
        # Who follows a log as it grows goes on where he was; an index leads only near to a place.
        offset = next_offset if (begun, next_entry) == (segment.first, first) else segment.index.point_of_entry(first)
        wanted = first
        while wanted < stop:
            header = header_at(data, offset)
            if header is None or header.log != self.manifest.log or offset + header.size > len(data):
                fresh = self._looked_through(segment)
                if fresh is None:
                    damage = next((each for each in segment.damages if each.offset <= offset < each.stop), None)
                    raise damage.error() if damage is not None else LogDamaged(file, offset, "no entry begins here")
                # An index shows the way around what is damaged only once it knows of it.
                segment, offset = fresh, fresh.index.point_of_entry(wanted)
                continue
            if header.entry > wanted:
                raise LogDamaged(file, offset, f"entry {header.entry} stands where {wanted} should")
            if header.entry == wanted:
                wanted += 1
                self._read_on = (segment.first, wanted, offset + header.size)
                yield Entry(header, data, file, offset)
            offset += header.size

    def _looked_through(self, segment: OpenedSegment) -> OpenedSegment | None:
        """A segment without trust in its index, None where that was done already."""
        at = bisect_left(self._segments, segment.first, key=lambda each: each.first)
        before = self._segments[at - 1].index.totals.highest if at else 0
        seal = next((seal for seal in self.manifest.sealed if seal.first == segment.first), None)
        scan = self._scans.get(segment.first)
        if seal is not None and not segment.damages:
            fresh = look_through(self._disk, self.manifest.log, seal, before)
        elif scan is not None and scan.noted:
            scan = self._scans[segment.first] = self._new_scan(segment.first, before)
            scan.walk(self._mapped(segment), check_payloads=False)
            fresh = ended_segment(scan, self.manifest.durable_in(segment.first))
        else:
            return None
        self._segments[at] = fresh
        return fresh if fresh.damages else None

    def _mapped(self, segment: OpenedSegment) -> memoryview:
        data = self._maps.get(segment.first)
        if data is None or len(data) < segment.index.totals.size:
            if segment.is_missing:
                raise segment.damages[0].error()
            data = self._disk.map(segment_name(segment.first))
        self._keep(segment.first, data)
        return data

    def _keep(self, first: int, data: memoryview) -> None:
        self._maps.pop(first, None)
        self._maps[first] = data
        while len(self._maps) > MAPPED_SEGMENTS:
            del self._maps[next(iter(self._maps))]

    def data_of(self, first: int) -> memoryview | None:
        """The bytes of the segment with this first entry; None where its file is gone."""
        segment = next(segment for segment in self._segments if segment.first == first)
        return None if segment.is_missing else self._mapped(segment)

    def view_entries(self) -> list[int]:
        """The numbers of all views, carried ones included."""
        return [number for segment in self._segments for number in segment.index.views["entry"].tolist()]

    def install_before(self, entry: int) -> Install | None:
        """The view in force where an entry stands."""
        views = self.view_entries()
        at = bisect_left(views, entry)
        if not at:
            return None
        (view,) = self.entries(views[at - 1], views[at - 1] + 1)
        return view.install()

    def context(self) -> Context:
        """Where the log stands at its end, or before what is damaged there."""
        stop = self.readable
        if stop == self.first:
            return Context(self.stop)
        (last,) = self.entries(stop - 1, stop, check=False)
        highest = self._segments[-1].index.totals.highest
        return Context(0, highest=highest).after(last.header)._replace(install=self.install_before(stop))
