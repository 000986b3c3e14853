"""What a writer notes of the segment that grows: readers begin there, and only where it is of this very content."""

from __future__ import annotations

import itertools

import pytest

from intergroup_core.errors import LogDamaged
from intergroup_core.log import segment
from intergroup_core.log.entry import ENTRY_BYTES, EntryHeader
from intergroup_core.log.index import POINT_ENTRIES, IndexBuilder
from intergroup_core.log.manifest import index_name, read_manifest, segment_name
from intergroup_core.log.reader import LogReader
from intergroup_core.log.verification import verify
from intergroup_core.log.writer import LogWriter, open_log
from intergroup_core.sim.disk import SimDisk
from tests.builders import START, A, B
from tests.log_builders import a_chunk, a_gap, a_log, an_install, contents

FIRST = segment_name(0)
EVERY = 10


def a_growing_log(count: int = 25, *, first: int = 0, log: LogWriter | None = None) -> tuple[SimDisk, LogWriter]:
    disk = SimDisk()
    if log is None:
        log = a_log(disk, index_every=EVERY)
        log.append(an_install(A, B))
    for at in range(first, first + count):
        log.append(a_chunk(b"%03d" % at, source=(A, B)[at % 2], seq=1 + at // 2, timestamp=START + 1 + at))
    return disk, log


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[EntryHeader]:
    """Headers of the entries that were walked through."""
    found: list[EntryHeader] = []
    add = IndexBuilder.add

    def noting(builder: IndexBuilder, header: EntryHeader, *args: object, **more: object) -> None:
        found.append(header)
        add(builder, header, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(IndexBuilder, "add", noting)
    return found


def without_index(disk: SimDisk) -> LogReader:
    disk.remove(index_name(0))
    return LogReader(disk)


def test_who_opens_a_log_looks_only_at_what_came_since_the_last_note(walked: list[EntryHeader]) -> None:
    disk, _ = a_growing_log()
    del walked[:]
    reader = LogReader(disk)
    assert [header.entry for header in walked] == list(range(20, 26))
    everything = contents(reader)
    assert len(everything) == 26
    known = reader.segments[0].index
    plain = without_index(disk)
    assert contents(plain) == everything
    assert known.totals == plain.segments[0].index.totals
    assert known.view_places() == plain.segments[0].index.view_places()
    assert known.sources.tolist() == plain.segments[0].index.sources.tolist()
    assert known.points.tolist() == plain.segments[0].index.points.tolist()


def test_a_log_that_ends_with_a_note_is_not_walked(walked: list[EntryHeader]) -> None:
    disk, _ = a_growing_log(2 * EVERY - 1)
    del walked[:]
    assert LogReader(disk).stop == 2 * EVERY
    assert walked == []


def test_points_are_where_they_would_be_without_notes() -> None:
    disk, _ = a_growing_log(5 * POINT_ENTRIES + 7)
    assert index_name(0) in disk.names()
    noted = LogReader(disk).segments[0].index.points.tolist()
    assert noted == without_index(disk).segments[0].index.points.tolist()


def test_a_reader_that_began_at_a_note_finds_what_lies_before_it() -> None:
    disk, _ = a_growing_log()
    reader = LogReader(disk)
    for at in range(25):
        assert reader.place_of_timestamp(START + 1 + at).entry == at + 1
        assert reader.place_of_message((A, B)[at % 2], 1 + at // 2).entry == at + 1


def test_a_reader_that_began_at_a_note_follows_the_log_as_it_grows() -> None:
    disk, log = a_growing_log()
    reader = LogReader(disk)
    a_growing_log(30, first=25, log=log)
    reader.refresh()
    assert contents(reader) == contents(without_index(disk))
    assert len(contents(reader)) == 56


def test_a_note_that_the_segment_does_not_reach_is_passed_over(walked: list[EntryHeader]) -> None:
    """As after a crash that took the end of the segment and not the note."""
    disk, _ = a_growing_log()
    reader = LogReader(disk)
    stop = next(reader.entries(15, 16)).offset
    disk.reopen(FIRST).truncate(stop)
    del walked[:]
    assert len(contents(LogReader(disk))) == 15
    assert len(walked) == 15
    log = open_log(disk, index_every=EVERY)
    a_growing_log(3, first=100, log=log)
    assert len(contents(LogReader(disk))) == 18


def test_a_note_of_what_was_cut_and_written_anew_is_passed_over(walked: list[EntryHeader]) -> None:
    disk, _ = a_growing_log()
    note = bytes(disk.map(index_name(0), 0, disk.size(index_name(0))))
    stop = next(LogReader(disk).entries(15, 16)).offset
    disk.reopen(FIRST).truncate(stop)
    _, log = a_growing_log(20, first=200, log=open_log(disk, index_every=1 << 30))
    disk.remove(index_name(0))
    disk.create(index_name(0)).appendv([note])
    del walked[:]
    assert len(contents(LogReader(disk))) == log.appended
    assert len(walked) == log.appended


@pytest.mark.parametrize("harm", ["torn", "flipped", "missing"])
def test_a_note_that_is_damaged_is_passed_over(harm: str, walked: list[EntryHeader]) -> None:
    disk, _ = a_growing_log()
    match harm:
        case "torn":
            disk.reopen(index_name(0)).truncate(50)
        case "flipped":
            disk.flip_bit(index_name(0), 70, 2)
        case "missing":
            disk.remove(index_name(0))
    del walked[:]
    assert len(contents(LogReader(disk))) == len(walked) == 26


def test_damage_before_a_note_is_told_with_its_place_and_what_lies_around_it_is_read() -> None:
    disk, _ = a_growing_log()
    whole = contents(LogReader(disk))
    place = next(LogReader(disk).entries(7, 8)).offset
    disk.flip_bit(FIRST, place + 20, 1)
    reader = LogReader(disk)
    assert contents(reader, 0, 7) == whole[:7]
    with pytest.raises(LogDamaged, match=rf"sim/{FIRST} is damaged at offset {place}"):
        contents(reader)
    (damage,) = reader.damages
    assert damage.offset == place
    assert contents(reader, 8) == whole[8:]


@pytest.mark.parametrize("harmed", ["view", "gap"])
def test_a_note_that_tells_of_a_view_or_gap_that_is_damaged_is_passed_over(harmed: str) -> None:
    """Who looks through the segment knows of the damage, and reads what lies around it."""
    disk = SimDisk()
    log = a_log(disk, index_every=EVERY)
    log.append(an_install(A, B))
    log.append(a_chunk(b"before", seq=1, timestamp=START + 1))
    number = log.append(an_install(A, start=START + 5) if harmed == "view" else a_gap())
    a_growing_log(20, first=10, log=log)
    place = next(LogReader(disk).entries(number, number + 1)).offset
    disk.flip_bit(FIRST, place + ENTRY_BYTES + 3, 1)
    reader = LogReader(disk)
    assert [damage.offset for damage in reader.damages] == [place]
    assert len(contents(reader, number + 1)) == 20


def test_where_recovery_finds_damage_no_note_hides_it_afterwards() -> None:
    disk, log = a_growing_log(29)
    log.close()
    disk.flip_bit(FIRST, next(LogReader(disk).entries(7, 8)).offset + 20, 1)
    assert open_log(disk, index_every=EVERY).report.damages
    assert open_log(disk, index_every=EVERY).report.damages


def test_a_note_of_a_growing_segment_is_no_news_to_who_verifies_a_log() -> None:
    disk, _ = a_growing_log()
    found = verify(disk, read_manifest(disk))
    assert (found.damages, found.notes) == ([], [])
    disk.flip_bit(index_name(0), 70, 2)
    assert ["is of no use" in note for note in verify(disk, read_manifest(disk)).notes] == [True]


def test_small_entries_are_pointed_at_often_enough() -> None:
    disk, _ = a_growing_log(5 * POINT_ENTRIES)
    points = LogReader(disk).segments[0].index.points["entry"].tolist()
    assert max(later - one for one, later in itertools.pairwise(points)) <= POINT_ENTRIES


def test_where_a_note_cannot_be_written_the_entry_is_in_the_log_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    log = a_log(disk, index_every=1)
    log.append(an_install(A))
    disk.capacity = disk.used() + 400
    assert log.append(a_chunk(b"x" * 10, seq=1, timestamp=START + 1)) == 1
    disk.capacity = None
    assert len(contents(LogReader(disk))) == 2


def test_a_scan_is_begun_at_no_index_of_another_segment() -> None:
    disk, _ = a_growing_log()
    data = disk.map(FIRST, 0, disk.size(FIRST))
    assert segment.noted_scan(disk, 1 << 40, 0, data) is None
    assert segment.noted_scan(disk, LogReader(disk).manifest.log, 5, data) is None
