"""The manifest of a log."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from intergroup_core.errors import DiskFull, LogDamaged, LogError, LogFormat
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.cut import SourceCut
from intergroup_core.log.digest import checksum
from intergroup_core.log.manifest import (
    MANIFEST,
    DurableEnd,
    Manifest,
    SealedSegment,
    first_of,
    index_name,
    packed_manifest,
    read_manifest,
    segment_name,
    write_manifest,
)
from intergroup_core.sim.disk import SimDisk

SEALED = tuple(SealedSegment(first=at, stop=at + 10, size=500, last_timestamp=7, chain=1 << 63) for at in (5, 15, 25))
PRICES = Manifest(log=9, group="prices", service=Service.RSO, first=5, sealed=SEALED)


def test_a_manifest_is_read_as_it_was_written_and_is_durable() -> None:
    disk = SimDisk()
    write_manifest(disk, PRICES)
    assert read_manifest(disk) == PRICES
    assert read_manifest(disk.after_crash(Random(1))) == PRICES
    assert PRICES.tail == 35


def test_the_cuts_between_which_a_log_lies_are_kept() -> None:
    after, upto = SourceCut({MemberId(7): 3}), SourceCut({MemberId(7): 90, MemberId(8): 1})
    manifest = replace(PRICES, after=after, upto=upto)
    disk = SimDisk()
    write_manifest(disk, manifest)
    assert read_manifest(disk) == manifest
    # Once its beginning is gone the log begins somewhere else.
    assert (manifest.without(()).after, manifest.without(SEALED[:1]).after) == (after, None)
    assert manifest.without(SEALED[:1]).upto == upto


def test_what_was_removed_is_kept() -> None:
    manifest = replace(PRICES, missing=SourceCut({MemberId(7): 3}))
    disk = SimDisk()
    write_manifest(disk, manifest)
    assert read_manifest(disk) == manifest
    assert (manifest.without(()).missing, manifest.without(SEALED[:1]).missing) == (manifest.missing, None)


def test_how_much_of_the_next_segment_is_durable_is_kept_and_never_less() -> None:
    end = DurableEnd(first=35, stop=40, size=800)
    manifest = PRICES.knowing(end)
    disk = SimDisk()
    write_manifest(disk, manifest)
    assert read_manifest(disk) == manifest
    assert (manifest.durable_in(35), manifest.durable_in(25)) == (end, None)
    assert manifest.knowing(DurableEnd(first=35, stop=37, size=300)) == manifest
    assert manifest.knowing(None) == manifest
    assert manifest.without(SEALED[:2]).durable_in(35) == end
    # Of a segment that is listed, or that another follows, it says nothing.
    listed = SealedSegment(first=35, stop=45, size=900, last_timestamp=7, chain=1)
    more = replace(manifest, sealed=(*SEALED, listed))
    assert (more.durable_in(35), more.knowing(None).durable) == (None, None)
    assert more.knowing(DurableEnd(first=50, stop=51, size=8)).durable is None


def test_a_directory_without_one_is_no_log() -> None:
    with pytest.raises(LogError, match="sim holds no stable log"):
        read_manifest(SimDisk())


def test_any_flipped_bit_is_damage() -> None:
    size = len(packed_manifest(PRICES))
    for offset in range(size - 1):
        disk = SimDisk()
        write_manifest(disk, PRICES)
        disk.flip_bit(MANIFEST, offset, offset % 8)
        with pytest.raises(LogDamaged, match="sim/manifest is damaged at offset 0"):
            read_manifest(disk)


def test_another_format_is_named() -> None:
    content = json.dumps({"format": 2})
    disk = SimDisk()
    disk.create(MANIFEST).appendv([f"{content}\n{checksum(content.encode()):016x}\n".encode()])
    with pytest.raises(LogFormat, match="is of format 2, this version reads format 1"):
        read_manifest(disk)


def test_a_full_disk_leaves_the_old_one_and_nothing_beside_it() -> None:
    disk = SimDisk()
    write_manifest(disk, PRICES)
    disk.capacity = disk.used() + 10
    with pytest.raises(DiskFull):
        write_manifest(disk, PRICES.without(SEALED[:1]))
    assert (read_manifest(disk), disk.names()) == (PRICES, [MANIFEST])


def test_what_is_left_after_removing_the_oldest() -> None:
    assert PRICES.without(SEALED[:2]).first == 25
    emptied = PRICES.without(SEALED)
    assert (emptied.first, emptied.tail, emptied.sealed) == (35, 35, ())


def test_files_are_named_for_their_first_entry() -> None:
    assert (first_of(segment_name(31)), first_of(index_name(31))) == (31, 31)
    assert [first_of(name) for name in (MANIFEST, "lock", "zz.segment", f"{'g' * 16}.segment", "manifest.tmp")] == [
        None
    ] * 5
