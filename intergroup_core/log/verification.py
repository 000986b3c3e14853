"""Looks through every byte of a log, as it stands, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from intergroup_core.log.entry import ENTRY_BYTES, header_at
from intergroup_core.log.index import IndexBuilder, unpacked_index
from intergroup_core.log.manifest import DurableEnd, Manifest, SealedSegment, index_name, segment_name
from intergroup_core.log.recovery import tail_segments
from intergroup_core.log.segment import Damage, Scan
from intergroup_core.ports import Disk


@dataclass(slots=True)
class Verified:
    """What was found."""

    segments: int = 0
    entries: int = 0
    """Without views that are only carried from segment to segment."""
    size: int = 0
    damages: list[Damage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What will be put right by itself."""


def bytes_to_verify(disk: Disk, manifest: Manifest) -> int:
    """At most: how much of the tail is what was there before, nobody knows without a look at it."""
    there = set(disk.names())
    sizes = {seal.first: seal.size for seal in manifest.sealed if segment_name(seal.first) in there}
    sizes |= {first: disk.size(segment_name(first)) for first in tail_segments(list(there), manifest)}
    return sum(sizes.values())


def verify(disk: Disk, manifest: Manifest, progress: Callable[[int], None] | None = None) -> Verified:
    """Check each entry against its checksums, and the segments against the manifest and each other."""
    found = Verified()
    there = set(disk.names())
    expected, highest = manifest.first, 0
    seals: dict[int, SealedSegment | DurableEnd] = {seal.first: seal for seal in manifest.sealed}
    firsts = [*seals, *tail_segments(list(there), manifest)]
    durable = manifest.durable_in(manifest.tail)
    if durable is not None:
        seals[durable.first] = durable
        firsts = sorted({*firsts, durable.first})
    for first in firsts:
        name = segment_name(first)
        where = f"{disk.where}/{name}"
        if name not in there:
            found.damages.append(Damage(where, 0, seals[first].size, "the file is missing"))
            expected = seals[first].stop
            continue
        if first != expected:
            found.damages.append(Damage(where, 0, disk.size(name), f"entry {expected} should be the first"))
        scan = Scan(where, manifest.log, IndexBuilder(first, highest))
        data = disk.map(name)
        scan.walk(data, check_payloads=True, progress=progress)
        found.damages += scan.damages
        _look_at_end(scan, data, seals.get(first), found)
        if index_name(first) in there:
            _look_at_index(disk, scan, first, found, whole=isinstance(seals.get(first), SealedSegment))
        found.segments += 1
        found.entries += scan.builder.entries - int((scan.builder.index().views["own"] == 0).sum())
        found.size += scan.end if scan.ended else len(data)
        expected = max(scan.builder.stop, seals[first].stop if first in seals else 0)
        highest = scan.builder.highest
    return found


def _look_at_end(scan: Scan, data: memoryview, seal: SealedSegment | DurableEnd | None, found: Verified) -> None:
    left = len(data) - scan.end
    lacking = scan.lacks(seal) if isinstance(seal, DurableEnd) else None
    if lacking is not None:
        found.damages.append(lacking)
    elif isinstance(seal, SealedSegment) and scan.end != seal.size:
        found.damages.append(
            Damage(scan.name, min(scan.end, seal.size), seal.size, "what was sealed here is not whole")
        )
    elif left and not scan.ended:
        header = header_at(data, scan.end)
        torn = left < ENTRY_BYTES or (header is not None and left < header.size)
        if torn or scan.torn_over_old(data):
            found.notes.append(
                f"{scan.name} ends at offset {scan.end} with part of an entry, which its writer will cut"
            )
        elif not scan.goes_on(data):
            found.damages.append(Damage(scan.name, scan.end, len(data), "an entry is not what was written"))


def _look_at_index(disk: Disk, scan: Scan, first: int, found: Verified, *, whole: bool) -> None:
    """Of a segment that grows it tells what was in it at another time."""
    name = index_name(first)
    index = unpacked_index(bytes(disk.map(name)))
    there = (scan.builder.stop, scan.builder.size)
    if index is None or (whole and (index.totals.stop, index.totals.size) != there):
        found.notes.append(f"{disk.where}/{name} is of no use; readers look through the segment instead")
