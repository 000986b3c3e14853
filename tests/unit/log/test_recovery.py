"""What recovery cuts, what it isolates, and what it says."""

from __future__ import annotations

import pickle
from random import Random

import pytest

from intergroup_core.errors import LogDamaged, LogFormat
from intergroup_core.log.digest import checksum
from intergroup_core.log.entry import Kind, header_at
from intergroup_core.log.manifest import index_name, segment_name
from intergroup_core.log.reader import LogReader
from intergroup_core.log.writer import Durability, LogWriter, open_log
from intergroup_core.sim.disk import SimDisk
from tests.builders import START, A, B
from tests.log_builders import a_chunk, a_log, an_install, contents

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
    report = open_log(disk, segment_bytes=600).report
    assert report.removed_files == [f"sim/{name}" for name in sorted([index_name(0), FIRST, "manifest.tmp"])]
    assert not {*kept, "manifest.tmp"} & set(disk.names())


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
