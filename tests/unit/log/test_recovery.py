"""What recovery cuts, what it isolates, and what it says."""

from __future__ import annotations

import pickle
from dataclasses import replace
from random import Random

import pytest

from intergroup_core.errors import LogDamaged, LogFormat
from intergroup_core.log.digest import checksum
from intergroup_core.log.entry import ENTRY_BYTES, Kind, header_at
from intergroup_core.log.manifest import index_name, read_manifest, segment_name, write_manifest
from intergroup_core.log.reader import LogReader
from intergroup_core.log.verification import verify
from intergroup_core.log.writer import Durability, LogWriter, open_log
from intergroup_core.sim.disk import SimDisk
from tests.builders import START, A, B
from tests.log_builders import a_chunk, a_log, an_install, contents, what_was_delivered

FIRST = segment_name(0)


def a_written_log(
    count: int = 6, *, synced: int | None = None, segment_bytes: int = 1 << 20
) -> tuple[SimDisk, LogWriter]:
    """A log of so many chunks, of which the first few were durable when the others were written."""
    disk = SimDisk()
    log = a_log(disk, segment_bytes=segment_bytes)
    log.append(an_install(A))
    for at in range(count):
        if at == synced:
            log.flush(Durability.DISK)
        log.append(a_chunk(b"%03d" % at, seq=1 + at, timestamp=START + 1 + at))
    return disk, log


def offsets_of(disk: SimDisk, name: str = FIRST) -> list[int]:
    data, offsets = disk.map(name, 0, disk.size(name)), [0]
    while (header := header_at(data, offsets[-1])) is not None:
        offsets.append(offsets[-1] + header.size)
    return offsets[:-1]


def cut_file(disk: SimDisk, size: int, name: str = FIRST) -> None:
    disk.reopen(name).truncate(size)


@pytest.mark.parametrize("lost", [1, 8, 40, 128, 150])
def test_a_torn_tail_is_cut_back_to_the_last_whole_entry(lost: int) -> None:
    disk, _ = a_written_log()
    offsets, size = offsets_of(disk), disk.size(FIRST)
    cut_file(disk, size - lost)
    log = open_log(disk)
    assert [(cut.file, cut.offset, cut.whole_entries) for cut in log.report.cuts] == [(f"sim/{FIRST}", offsets[-1], 0)]
    assert (disk.size(FIRST), log.appended) == (offsets[-1], 6)
    assert not log.report.damages


def test_damage_before_what_was_durable_is_isolated() -> None:
    disk, _ = a_written_log(synced=4)
    whole, offsets = contents(LogReader(disk)), offsets_of(disk)
    disk.flip_bit(FIRST, offsets[2] + 130, 3)
    log = open_log(disk)
    (damage,) = log.report.damages
    assert (damage.file, damage.offset, damage.stop) == (f"sim/{FIRST}", offsets[2], offsets[3])
    assert log.report.cuts == []
    reader = LogReader(disk)
    assert contents(reader, 3) == whole[3:]
    with pytest.raises(LogDamaged, match=rf"sim/{FIRST} is damaged at offset {offsets[2]}: .*; fetch the range"):
        contents(reader)


def test_appending_goes_on_in_a_new_segment_behind_damage() -> None:
    disk, _ = a_written_log(synced=4)
    disk.flip_bit(FIRST, offsets_of(disk)[2] + 5, 3)
    log = open_log(disk)
    number = log.append(a_chunk(b"more", seq=50, timestamp=START + 50))
    assert segment_name(7) in disk.names()
    log.close()
    again = open_log(disk)
    assert [damage.file for damage in again.report.damages] == [f"sim/{FIRST}"]
    assert len(contents(LogReader(disk), number)) == 1


@pytest.mark.parametrize("bit", range(0, 8 * 32, 41))
def test_a_damaged_view_is_not_in_force_behind_it_and_neither_is_the_one_before(bit: int) -> None:
    disk, log = a_written_log(2)
    log.append(an_install(A, B, start=START + 10, seq=2))
    log.append(a_chunk(b"in it", seq=20, timestamp=START + 11))
    log.close()
    disk.flip_bit(FIRST, offsets_of(disk)[3] + ENTRY_BYTES + bit // 8, bit % 8)
    again = open_log(disk)
    assert [damage.offset for damage in again.report.damages] == [offsets_of(disk)[3]]
    number = again.append(a_chunk(b"more", seq=50, timestamp=START + 50))
    again.close()
    assert number == 5  # the segment that it begins does not repeat a view
    assert len(contents(LogReader(disk), number)) == 1


def test_a_hole_in_what_was_not_durable_ends_the_log_and_is_told() -> None:
    disk, _ = a_written_log(synced=2)
    whole, offsets = contents(LogReader(disk)), offsets_of(disk)
    disk.flip_bit(FIRST, offsets[4] + 140, 0)
    log = open_log(disk)
    (cut,) = log.report.cuts
    assert (cut.offset, cut.whole_entries) == (offsets[4], 2)
    assert contents(LogReader(disk)) == whole[:4]


def test_segments_that_continue_nothing_are_cut() -> None:
    disk, log = a_written_log(12, segment_bytes=600)
    whole = contents(LogReader(disk))
    firsts = [segment.first for segment in LogReader(disk).segments]
    assert (log.manifest.sealed, len(firsts) > 3) == ((), True)
    cut_file(disk, disk.size(segment_name(firsts[1])) - 20, segment_name(firsts[1]))
    log = open_log(disk, segment_bytes=600)
    assert {cut.file for cut in log.report.cuts} == {f"sim/{segment_name(first)}" for first in firsts[1:]}
    found = contents(LogReader(disk))
    assert found == whole[: len(found)]
    assert not {segment_name(first) for first in firsts[2:]} & set(disk.names())


def test_what_a_sealed_segment_lacks_is_damage() -> None:
    disk, log = a_written_log(12, segment_bytes=600)
    log.close()
    cut_file(disk, disk.size(FIRST) - 20)
    report = open_log(disk, segment_bytes=600).report
    assert [damage.file for damage in report.damages] == [f"sim/{FIRST}"]
    disk.remove(FIRST)
    report = open_log(disk, segment_bytes=600).report
    assert [damage.what for damage in report.damages] == ["the file is missing"]
    with pytest.raises(LogDamaged, match="the file is missing"):
        contents(LogReader(disk))


HARMS = ("flipped", "garbage", "zeros", "short", "missing")


def harm_end(disk: SimDisk, name: str, offset: int, harm: str) -> None:
    """Let a file be something else from an offset on."""
    size = disk.size(name)
    match harm:
        case "flipped":
            disk.flip_bit(name, offset + 3, 2)
        case "missing":
            disk.remove(name)
        case _:
            cut_file(disk, offset, name)
            disk.reopen(name).appendv([{"garbage": b"\x5a", "zeros": b"\0", "short": b""}[harm] * (size - offset)])


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("segment_bytes", [1 << 20, 600])
def test_what_a_closed_log_lacks_at_its_end_is_damage_and_not_cut(harm: str, segment_bytes: int) -> None:
    disk, log = a_written_log(12, segment_bytes=segment_bytes)
    log.close()
    whole, last = contents(LogReader(disk)), LogReader(disk).segments[-1]
    name = segment_name(last.first)
    offsets = offsets_of(disk, name)
    at = 0 if harm == "missing" else len(offsets) - 1
    harm_end(disk, name, offsets[at], harm)
    lost = len(offsets) - at
    for _ in range(2):  # the same before and after recovery
        reader = LogReader(disk)
        assert (reader.stop, reader.readable) == (log.appended, log.appended - lost)
        with pytest.raises(LogDamaged, match=rf"sim/{name} is damaged at offset {offsets[at]}: "):
            contents(reader)
        (found,) = verify(disk, reader.manifest).damages
        assert (found.file, found.offset) == (f"sim/{name}", offsets[at])
        report = open_log(disk, segment_bytes=segment_bytes).report
        assert [(damage.file, damage.offset) for damage in report.damages] == [(f"sim/{name}", offsets[at])]
        assert report.cuts == []
    again = open_log(disk, segment_bytes=segment_bytes)
    more = a_chunk(b"more", seq=50, timestamp=START + 50)
    number = again.append(more)
    assert number >= log.appended
    again.close()
    reader = LogReader(disk)
    carried = int(at == 0 and last.first > 0)  # a view that is no delivery of its own
    assert contents(reader, reader.first, log.appended - lost) == whole[: len(whole) - lost + carried]
    assert contents(reader, log.appended) == [what_was_delivered(more)]
    with pytest.raises(LogDamaged):
        contents(reader)


def test_a_torn_tail_behind_what_was_durable_is_cut_and_the_rest_is_damage() -> None:
    disk, log = a_written_log()
    log.close()
    log = open_log(disk)
    durable, appended = disk.size(FIRST), log.appended
    for at in range(3):
        log.append(a_chunk(b"later", seq=50 + at, timestamp=START + 50 + at))
    offsets = offsets_of(disk)
    torn = disk.after_kill()
    cut_file(torn, disk.size(FIRST) - 5)
    report = open_log(torn).report
    assert ([cut.offset for cut in report.cuts], report.damages) == ([offsets[-1]], [])
    spoiled = disk.after_kill()
    harm_end(spoiled, FIRST, offsets[appended - 2], "garbage")
    again = open_log(spoiled)
    assert [(damage.offset, damage.stop) for damage in again.report.damages] == [(offsets[appended - 2], durable)]
    assert [cut.offset for cut in again.report.cuts] == [durable]
    assert (again.appended, spoiled.size(FIRST)) == (appended, durable)


def test_a_manifest_that_says_nothing_of_it_leaves_a_torn_tail_a_torn_tail() -> None:
    """As of logs of before, and of one whose writer was killed."""
    disk, log = a_written_log()
    log.close()
    write_manifest(disk, replace(read_manifest(disk), durable=None))
    harm_end(disk, FIRST, offsets_of(disk)[-1], "garbage")
    report = open_log(disk).report
    assert (len(report.cuts), report.damages) == (1, [])


def test_a_full_disk_does_not_keep_a_log_from_being_closed() -> None:
    disk, log = a_written_log()
    log.flush(Durability.DISK)
    disk.capacity = disk.used() + 10
    log.close()
    assert read_manifest(disk).durable is None
    disk.capacity = None
    open_log(disk).close()
    durable = read_manifest(disk).durable
    assert durable is not None
    assert (durable.first, durable.stop, durable.size) == (0, log.appended, disk.size(FIRST))


def test_settling_tells_what_of_the_next_segment_is_durable_without_another_sync() -> None:
    disk, log = a_written_log(12, segment_bytes=1_500)
    assert log.unsettled
    before = disk.operations
    log.flush(Durability.DISK)
    # A sync for each segment, and what it takes to put a manifest in the place of another.
    assert disk.operations - before == len(log.sealed) + 1 + 5
    durable = read_manifest(disk).durable
    assert durable is not None
    assert (durable.first, durable.stop) == (log.manifest.tail, log.appended)
    log.append(a_chunk(b"more", seq=50, timestamp=START + 50))
    before = disk.operations
    log.flush(Durability.DISK)
    assert disk.operations - before == 1


@pytest.mark.parametrize("harm", ["missing", "flipped", "short"])
def test_an_index_that_is_of_no_use_is_made_again(harm: str) -> None:
    disk, log = a_written_log(12, segment_bytes=600)
    log.close()
    whole = contents(LogReader(disk))
    match harm:
        case "missing":
            disk.remove(index_name(0))
        case "flipped":
            disk.flip_bit(index_name(0), 60, 1)
        case _:
            cut_file(disk, 40, index_name(0))
    assert contents(LogReader(disk)) == whole
    assert not open_log(disk, segment_bytes=600).report.damages


def test_temporary_files_and_removed_segments_are_cleared_away() -> None:
    disk, log = a_written_log(12, segment_bytes=600)
    log.close()
    sealed = log.manifest.sealed
    kept = {name: bytes(disk.map(name, 0, disk.size(name))) for name in (FIRST, index_name(0))}
    log.remove(sealed[:1])
    for name, content in kept.items():
        disk.create(name).appendv([content])
    disk.create("manifest.tmp").appendv([b"half a manif"])
    left = {*kept, "manifest.tmp", f"{FIRST}.tmp"}  # the last one might have been used again
    report = open_log(disk, segment_bytes=600).report
    assert report.removed_files == [f"sim/{name}" for name in sorted(left)]
    assert not left & set(disk.names())


def test_a_kind_from_the_future_is_an_error_and_not_cut() -> None:
    disk, _ = a_written_log(2)
    data, offset = disk.map(FIRST, 0, disk.size(FIRST)), offsets_of(disk)[-1]
    header = header_at(data, offset)
    assert header is not None
    assert header.kind == Kind.DATA
    file = disk.reopen(FIRST)
    file.truncate(offset)
    file.appendv([header._replace(kind=77, payload_bytes=0, payload_checksum=checksum(b"")).packed()])
    with pytest.raises(LogFormat, match=f"entry of kind 77 at offset {offset}, which format 1 does not know"):
        open_log(disk)
    assert disk.size(FIRST) == offset + 128


def test_an_empty_log_is_opened_and_reopened() -> None:
    disk = SimDisk()
    a_log(disk)
    for seed in range(10):
        left = disk.after_crash(Random(seed))
        assert (open_log(left).append(an_install(A)), LogReader(left).stop) == (0, 1)


def test_an_index_of_other_entries_in_as_many_bytes_is_not_taken() -> None:
    """A crash may keep the index of a segment that was cut and filled again."""
    disk, log = a_written_log(12, segment_bytes=600)
    log.close()
    other = SimDisk()
    stale = a_log(other, segment_bytes=600)
    stale.append(an_install(A))
    for at in range(12):
        stale.append(a_chunk(b"%03d" % at, source=B, seq=1 + at, timestamp=START + 1 + at))
    stale.close()
    first, second = (each.manifest.sealed[0] for each in (log, stale))
    assert (first.stop, first.size) == (second.stop, second.size)
    content = bytes(other.map(index_name(0), 0, other.size(index_name(0))))
    disk.create(index_name(0)).appendv([content])
    assert LogReader(disk).segments[0].index.sources["source"].tolist() == [A]


def test_an_error_of_damage_can_reach_another_process() -> None:
    error = LogDamaged("f", 8, "it is torn")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.file, again.offset) == (str(error), "f", 8)
