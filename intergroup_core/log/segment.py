"""Walking the entries of a segment: what is whole, where it ends, and what is damaged in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from intergroup_core.errors import LogDamaged, LogError
from intergroup_core.ids import ViewId
from intergroup_core.log.body import frames_of, install_of
from intergroup_core.log.digest import MASK64, checksum, frames_checksum
from intergroup_core.log.entry import (
    END_TAG,
    ENTRY_BYTES,
    MAGIC,
    EntryHeader,
    Kind,
    check_kind,
    ends_at,
    header_at,
    is_followed,
)
from intergroup_core.log.index import IndexBuilder, SegmentIndex, unpacked_index
from intergroup_core.log.manifest import DurableEnd, SealedSegment, index_name, segment_name
from intergroup_core.ports import Disk
from intergroup_core.wire.checksum import check_frame, check_frames

SEARCH_BYTES = 1 << 20
"""Looked through at a time for a header: in a file that was used before an old one is seldom farther."""
_END_WORD = int.from_bytes(END_TAG, "little")


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes [offset, stop) of a file that are not what was written."""

    file: str
    offset: int
    stop: int
    what: str

    def error(self) -> LogDamaged:
        return LogDamaged(self.file, self.offset, self.what)


@dataclass(slots=True)
class Scan:
    """A segment as far as it was walked."""

    name: str
    """With its directory, for people."""
    log: int
    builder: IndexBuilder
    damages: list[Damage] = field(default_factory=list)
    last: EntryHeader | None = None
    synced: int = 0
    """The most bytes of the segment that an entry in it says were durable."""
    noted: bool = False
    """Whether it was walked only from where an index ended."""
    ended: bool = False
    """Whether the last walk came to the mark behind all entries."""

    @property
    def end(self) -> int:
        """Where the last whole entry ends."""
        return self.builder.size

    def lacks(self, durable: DurableEnd | None) -> Damage | None:
        """What is missing at the end, as far as it is known to have been durable; a crash does not take that."""
        if durable is None or self.end >= durable.size:
            return None
        return Damage(self.name, self.end, durable.size, "what was durable here is not whole")

    def walk(self, data: memoryview, *, check_payloads: bool, progress: Callable[[int], None] | None = None) -> None:
        """Go on from where the last walk ended; a last entry that is not whole is left alone.

        Who follows a log that grows checks no payloads, and does not search for later entries behind old ones: the
        writer goes from front to back.
        """
        offset, after_damage, self.ended = self.end, False, False
        while offset < len(data):
            header = self._sound(data, offset, check_payloads=check_payloads)
            if header is None:
                if ends_at(data, offset, self.builder.first):
                    self.ended = True
                    return
                found = self._next_sound(data, offset, past_old=check_payloads)
                if found is None:
                    return
                # A file that was used before fills up under a walk: with something behind it, an entry is there by now.
                if self._sound(data, offset, check_payloads=check_payloads) is None:
                    self._damaged(data, offset, found)
                    offset, after_damage = found, True
                continue
            kind = check_kind(header, self.name, offset)
            view = _view_of(data, offset, header) if kind is Kind.VIEW else None
            self.builder.add(header, offset, view, after_damage=after_damage)
            self.last = header
            self.synced = max(self.synced, header.synced_words * 8)
            offset, after_damage = offset + header.size, False
            if progress is not None:
                progress(header.size)

    def _damaged(self, data: memoryview, offset: int, stop: int) -> None:
        what = "an entry's payload is not what was written" if header_at(data, offset) else "no entry begins here"
        self.damages.append(Damage(self.name, offset, stop, what))

    def _sound(self, data: memoryview, offset: int, *, check_payloads: bool) -> EntryHeader | None:
        header = header_at(data, offset)
        if header is None or header.log != self.log or offset + header.size > len(data):
            return None
        # Numbers go on without a hole, but for what a damage took. Those of old entries, which the file had when it was
        # another segment, are all below its first.
        if header.entry < self.builder.stop or (header.entry > self.builder.stop and not self.damages):
            return None
        trusted = not check_payloads and header.kind == Kind.DATA
        # Over old entries a header can be seen before its payload: the file is as long as before.
        if trusted and is_followed(data, offset + header.size, header.entry + 1, self.builder.first):
            return header
        return header if payload_is_sound(data, offset, header) else None

    def _next_sound(self, data: memoryview, offset: int, *, past_old: bool) -> int | None:
        """Where whole entries begin again; behind old ones only a crash leaves any."""
        header = header_at(data, offset)
        own = header is not None and header.log == self.log and header.entry >= self.builder.stop
        for found, later in self._headers(data, offset + header.size if header is not None and own else offset + 8):
            if later.entry < self.builder.first and not past_old:
                return None
            if later.entry < self.builder.stop:
                continue
            if found + later.size <= len(data) and payload_is_sound(data, found, later):
                return found
        return None

    def _headers(self, data: memoryview, start: int) -> Iterator[tuple[int, EntryHeader]]:
        """All from an offset on that are of this log."""
        for low in range(start, len(data), SEARCH_BYTES):
            some = data[low : low + SEARCH_BYTES]
            words = np.frombuffer(some[: len(some) // 8 * 8], dtype="<u4")[::2]
            for found in (np.flatnonzero(words == MAGIC) * 8 + low).tolist():
                header = header_at(data, found)
                if header is not None and header.log == self.log:
                    yield found, header

    def goes_on(self, data: memoryview) -> bool:
        """Whether an entry that was being written when it was walked is whole by now."""
        return (
            ends_at(data, self.end, self.builder.first) or self._sound(data, self.end, check_payloads=True) is not None
        )

    def torn_over_old(self, data: memoryview) -> bool:
        """Whether part of an entry follows the last whole one, over old ones; the mark is behind what is whole."""
        words = np.frombuffer(data[self.end : self.end + (len(data) - self.end) // 8 * 8], dtype="<u8")
        marks = (self.end + 8 * at for at in np.flatnonzero(words == _END_WORD).tolist())
        if any(ends_at(data, mark, self.builder.first) for mark in marks):
            return False
        return any(header.entry < self.builder.first for _, header in self._headers(data, self.end))


def payload_at(data: memoryview, offset: int, header: EntryHeader) -> memoryview:
    start = offset + ENTRY_BYTES
    return data[start : start + header.payload_bytes]


def payload_is_sound(data: memoryview, offset: int, header: EntryHeader) -> bool:
    """Whether a payload, its padding included, has the checksum that its header, itself sound, states."""
    padded = data[offset + ENTRY_BYTES : offset + header.size]
    if header.kind != Kind.DATA:
        return checksum(padded) == header.payload_checksum
    if header.frames == 1:
        frame = np.frombuffer(padded, dtype=np.uint64)
        word = int(frame[0])
        return checksum(padded[:8]) == header.payload_checksum and check_frame(frame, word & 0xFFFFFFFF)
    try:
        table, runs = frames_of(header, padded)
    except ValueError:  # a table of runs that does not fit the payload
        return False
    first_words = [run[:, 0] for run in runs]
    stated = header.payload_checksum
    return frames_checksum(first_words, table) == stated and all(check_frames(run).all() for run in runs)


def _view_of(data: memoryview, offset: int, header: EntryHeader) -> ViewId:
    return install_of(payload_at(data, offset, header)).view.id


@dataclass(frozen=True, slots=True)
class OpenedSegment:
    """A segment that can be read: its index, and what of it is damaged."""

    first: int
    index: SegmentIndex
    damages: tuple[Damage, ...] = ()
    lost: int = 0
    """Entries at its end that are damaged."""

    @property
    def stop(self) -> int:
        return self.index.totals.stop + self.lost

    @property
    def readable(self) -> int:
        """The number of the entry after the last that is not damaged."""
        return self.index.totals.stop

    @property
    def is_missing(self) -> bool:
        return any(damage.what == _MISSING for damage in self.damages)


_MISSING = "the file is missing"


def missing_segment(disk: Disk, segment: SealedSegment | DurableEnd, before: int) -> OpenedSegment:
    """One whose file is not there any more."""
    damage = Damage(f"{disk.where}/{segment_name(segment.first)}", 0, segment.size, _MISSING)
    index = IndexBuilder(segment.first, before).index()
    return OpenedSegment(segment.first, index, (damage,), segment.stop - segment.first)


def ended_segment(scan: Scan, durable: DurableEnd | None) -> OpenedSegment:
    """One that may still grow, as far as it was walked; what is known to have been durable counts, whole or not."""
    opened = OpenedSegment(scan.builder.first, scan.builder.index(), tuple(scan.damages))
    lacking = scan.lacks(durable)
    if durable is None or lacking is None:
        return opened
    return replace(opened, damages=(*opened.damages, lacking), lost=max(0, durable.stop - opened.readable))


def noted_scan(disk: Disk, log: int, first: int, data: memoryview) -> Scan | None:
    """A segment that grows, as far as its writer has noted what is in it; None where that is of no use."""
    name = index_name(first)
    if name not in disk.names():
        return None
    try:
        index = unpacked_index(bytes(disk.map(name)))
    except LogError:  # it is just being replaced
        return None
    if index is None or index.totals.first != first or not _is_of(index, log, data):
        return None
    return Scan(f"{disk.where}/{segment_name(first)}", log, IndexBuilder.after(index), noted=True)


def _is_of(index: SegmentIndex, log: int, data: memoryview) -> bool:
    """Whether an index ends where an entry of this very content does, and the views and gaps it tells of are whole."""
    if not len(index.points) or index.totals.size > len(data):
        return False
    offset, last = int(index.points["offset"][-1]), None
    while offset < index.totals.size:
        last = header_at(data, offset)
        if last is None or last.log != log:
            return False
        offset += last.size
    if last is None or offset != index.totals.size or last.entry + 1 != index.totals.stop:
        return False
    if (last.chain + last.digest) & MASK64 != index.totals.chain:
        return False
    told = [*index.views[["offset", "entry"]].tolist(), *index.gaps.tolist()]
    return all(_is_whole(data, offset, log, entry) for offset, entry in told)


def _is_whole(data: memoryview, offset: int, log: int, entry: int) -> bool:
    header = header_at(data, offset)
    return header is not None and (header.log, header.entry) == (log, entry) and payload_is_sound(data, offset, header)


def open_sealed(disk: Disk, log: int, seal: SealedSegment, before: int) -> OpenedSegment:
    """A sealed segment by its index, or looked through where that is of no use; `before` is the timestamp so far."""
    name = segment_name(seal.first)
    there = set(disk.names())
    if name not in there:
        return missing_segment(disk, seal, before)
    # A file that was used before may have old bytes behind its end.
    index = _stored_index(disk, seal) if index_name(seal.first) in there and disk.size(name) >= seal.size else None
    if index is not None:
        return OpenedSegment(seal.first, index)
    return look_through(disk, log, seal, before)


def look_through(disk: Disk, log: int, seal: SealedSegment, before: int) -> OpenedSegment:
    """A sealed segment by all of its entries, with what is damaged."""
    name = segment_name(seal.first)
    where, size = f"{disk.where}/{name}", disk.size(name)
    scan = Scan(where, log, IndexBuilder(seal.first, before))
    scan.walk(disk.map(name, 0, min(size, seal.size)), check_payloads=True)
    damages = list(scan.damages)
    if scan.end < seal.size:
        damages.append(Damage(where, scan.end, seal.size, "what was sealed here is not whole"))
    return OpenedSegment(seal.first, scan.builder.index(), tuple(damages), seal.stop - scan.builder.stop)


def _stored_index(disk: Disk, seal: SealedSegment) -> SegmentIndex | None:
    name = index_name(seal.first)
    index = unpacked_index(bytes(disk.map(name)))
    if index is None:
        return None
    totals = index.totals
    told = (totals.first, totals.stop, totals.size, totals.chain)
    return index if told == (seal.first, seal.stop, seal.size, seal.chain) else None
