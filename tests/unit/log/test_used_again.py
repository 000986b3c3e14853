"""A log whose segments are in files that were others before: where they end, for whoever looks."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from intergroup_core.errors import LogError
from intergroup_core.log import entries
from intergroup_core.log.entry import END_TAG, ENTRY_BYTES, MAGIC_BYTES, end_mark, ends_at, header_at, is_followed
from intergroup_core.log.index import IndexBuilder
from intergroup_core.log.manifest import index_name, segment_name
from intergroup_core.log.reader import LogReader
from intergroup_core.log.segment import Scan
from intergroup_core.log.verification import Verified, bytes_to_verify, verify
from intergroup_core.log.writer import LogWriter, open_log
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.sim.disk import SimDisk
from intergroup_core.wire.chunk import Chunk
from tests.builders import START
from tests.log_builders import LOG, a_chunk, a_log, contents, what_was_delivered

SEGMENT = 4_000
EACH = 400
"""Bytes of a message, so that a segment holds seven entries."""
OLD = 24
END_BYTES = len(end_mark(0))


def chunk(number: int) -> Chunk:
    return a_chunk(Random(number).randbytes(EACH), seq=1 + number, timestamp=START + 1 + number)


def a_log_over_an_old_one(disk: SimDisk, more: int = 3) -> tuple[LogWriter, str]:
    """So many entries in the segment that grows, over those of one that was removed."""
    log = a_log(disk, segment_bytes=SEGMENT)
    number = 0
    while not disk.reused:
        log.append(chunk(number))
        number += 1
        if number == OLD:
            log.remove(log.sealed[:2])
    for _ in range(more - 1):
        log.append(chunk(number))
        number += 1
    name = segment_name(log.active.totals.first)
    assert disk.size(name) > log.active.totals.size
    return log, name


def delivered(log: LogWriter) -> list[object]:
    return [what_was_delivered(chunk(number)) for number in range(log.manifest.first, log.appended)]


def end_of(disk: SimDisk, name: str) -> int:
    return bytes(disk.map(name)).index(END_TAG)


def verified(disk: SimDisk) -> Verified:
    return verify(disk, LogReader(disk).manifest)


def overwrite(disk: SimDisk, name: str, offset: int, content: bytes) -> None:
    disk._file(name).now[offset : offset + len(content)] = content


def test_a_mark_is_no_header() -> None:
    mark = end_mark(7)
    assert (len(END_TAG), len(mark) % 8) == (8, 0)
    assert header_at(memoryview(mark.ljust(ENTRY_BYTES, b"\0")), 0) is None
    assert ends_at(memoryview(b"12345678" + mark), 8, 7)
    assert not ends_at(memoryview(mark[:-1]), 0, 7)


def test_neither_the_mark_of_another_segment_nor_the_end_of_the_file_shows_that_an_entry_is_whole() -> None:
    before = bytes(64)
    for behind, shown in ((end_mark(7), True), (end_mark(6), False), (b"", False), (bytes(200), False)):
        assert is_followed(memoryview(before + behind), len(before), 12, 7) is shown


def test_readers_see_what_was_appended_and_nothing_that_was_there_before() -> None:
    disk = SimDisk()
    log, name = a_log_over_an_old_one(disk)
    reader = LogReader(disk)
    assert contents(reader) == delivered(log)
    assert reader.damages == ()
    for number in range(log.appended, log.appended + 12):
        log.append(chunk(number))
        reader.refresh()
        assert contents(reader) == contents(LogReader(disk)) == delivered(log)
    assert name != segment_name(log.active.totals.first)
    assert not verified(disk).damages


def test_an_empty_segment_is_empty() -> None:
    disk = SimDisk()
    log = a_log(disk, segment_bytes=SEGMENT)
    for number in range(OLD):
        log.append(chunk(number))
    log.remove(log.sealed[:1])
    log._roll()
    assert disk.reused == 1
    assert contents(LogReader(disk)) == delivered(log)
    assert disk.size(segment_name(log.appended)) >= SEGMENT


def test_the_end_is_found_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    log, _ = a_log_over_an_old_one(disk)
    monkeypatch.setattr(Scan, "_next_sound", lambda *_, **__: pytest.fail("searched for later entries"))
    assert LogReader(disk).stop == log.appended


def test_an_entry_is_taken_only_when_its_payload_is_there() -> None:
    """As seen while it is written, from front to back."""
    disk = SimDisk()
    log, name = a_log_over_an_old_one(disk)
    before, end, stop = bytes(disk.map(name)), end_of(disk, name), log.appended
    log.append(chunk(stop))
    after = bytes(disk.map(name))
    written = end_of(disk, name) + END_BYTES - end
    scan = Scan(name, LOG, IndexBuilder(log.active.totals.first))
    for count in range(written):
        data = memoryview(after[: end + count] + before[end + count :])
        scan.walk(data, check_payloads=False)
        whole = count >= written - END_BYTES
        assert (scan.builder.stop, scan.damages) == (stop + whole, []), count
    assert scan.builder.stop == log.appended


def test_who_follows_a_log_searches_no_farther_than_to_an_old_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    log, name = a_log_over_an_old_one(disk)
    overwrite(disk, name, end_of(disk, name), bytes(END_BYTES))
    looked: list[int] = []
    headers = Scan._headers

    def counted(scan: Scan, data: memoryview, start: int) -> object:
        for found in headers(scan, data, start):
            looked.append(found[0])
            yield found

    monkeypatch.setattr(Scan, "_headers", counted)
    assert LogReader(disk).stop == log.appended
    assert len(looked) == 1


def test_an_entry_that_is_written_meanwhile_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    log, name = a_log_over_an_old_one(disk)
    before, end = bytes(disk.map(name)), end_of(disk, name)
    for number in range(log.appended, log.appended + 2):
        log.append(chunk(number))
    after = bytes(disk.map(name))
    live = bytearray(after[: end + 300] + before[end + 300 :])
    search = Scan._next_sound

    def late(*args: Any, **options: Any) -> int | None:
        live[:] = after
        return search(*args, **options)

    monkeypatch.setattr(Scan, "_next_sound", late)
    scan = Scan(name, LOG, IndexBuilder(log.active.totals.first))
    scan.walk(memoryview(live), check_payloads=False)
    assert (scan.damages, scan.builder.stop) == ([], log.appended)


def test_old_entries_are_cut_off_and_no_loss() -> None:
    disk = SimDisk()
    log, name = a_log_over_an_old_one(disk)
    expected, size = delivered(log), log.active.totals.size
    left = disk.after_kill()
    log = open_log(left, segment_bytes=SEGMENT)
    assert (log.report.cuts, log.report.damages) == ([], [])
    assert left.size(name) == size
    assert contents(LogReader(left)) == expected
    log.append(chunk(log.appended))
    assert contents(LogReader(left)) == delivered(log)


def test_a_torn_entry_over_old_ones_is_noted_and_cut() -> None:
    disk = SimDisk()
    log, name = a_log_over_an_old_one(disk)
    before, end = bytes(disk.map(name)), end_of(disk, name)
    log.append(chunk(log.appended))
    for written in (8, 100, ENTRY_BYTES, ENTRY_BYTES + 200):
        torn = disk.after_kill()
        overwrite(torn, name, end + written, before[end + written :])
        found = verified(torn)
        assert found.damages == [], written
        assert any("part of an entry, which its writer will cut" in note for note in found.notes), written
        report = open_log(torn, segment_bytes=SEGMENT).report
        assert [(cut.offset, cut.whole_entries) for cut in report.cuts] == [(end, 0)], written
        assert (report.damages, torn.size(name)) == ([], end), written


@pytest.mark.parametrize("offset", [4, 60, ENTRY_BYTES + 9])
def test_a_last_entry_that_decays_in_front_of_old_ones_is_damage(offset: int) -> None:
    disk = SimDisk()
    log, name = a_log_over_an_old_one(disk)
    begin = log.active.totals.size - len(bytes(disk.map(name)).split(b"IGLE")[1]) - 4
    disk.flip_bit(name, begin + offset, 1)
    (damage,) = verified(disk).damages
    assert damage.offset == begin


def test_what_is_verified_is_what_the_log_holds() -> None:
    disk = SimDisk()
    log, name = a_log_over_an_old_one(disk)
    found = verified(disk)
    assert (found.size, found.damages, found.notes) == (log.size, [], [])
    assert bytes_to_verify(disk, log.manifest) == log.size - log.active.totals.size + disk.size(name)


@pytest.mark.parametrize("torn", [False, True])
def test_what_is_appended_while_somebody_verifies_is_no_damage(torn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    log, name = a_log_over_an_old_one(disk)
    manifest, before, end = LogReader(disk).manifest, bytes(disk.map(name)), end_of(disk, name)
    log.append(chunk(log.appended))
    after = bytes(disk.map(name))
    live = bytearray(after[: end + 300] + before[end + 300 :] if torn else before)
    walk = Scan.walk

    def overtaken(scan: Scan, data: memoryview, **options: Any) -> None:
        walk(scan, data, **options)
        if scan.name.endswith(name):
            live[:] = after

    mapped = SimDisk.map
    monkeypatch.setattr(SimDisk, "map", lambda *args: memoryview(live) if args[1] == name else mapped(*args))
    monkeypatch.setattr(Scan, "walk", overtaken)
    found = verify(disk, manifest)
    assert (found.damages, found.notes) == ([], [])


def test_a_sealed_segment_that_could_not_be_cut_is_read_by_its_index(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    log, name = a_log_over_an_old_one(disk, more=2)
    disk.mapped = True
    log._roll()
    log.settle()
    assert disk.size(name) > log.sealed[-1].size
    assert index_name(log.sealed[-1].first) in disk.names()
    monkeypatch.setattr("intergroup_core.log.segment.look_through", lambda *_: pytest.fail("did not trust the index"))
    assert contents(LogReader(disk)) == delivered(log)
    assert verified(disk).damages == []


@pytest.mark.parametrize("at", [0, 8])
def test_whole_entries_behind_old_ones_are_counted_when_they_are_cut(at: int) -> None:
    """A crash lost the sectors of an entry, and a longer one is there, which is older."""
    disk = SimDisk()
    log, name = a_log_over_an_old_one(disk)
    before, end = bytes(disk.map(name)), end_of(disk, name)
    for number in range(log.appended, log.appended + 2):
        log.append(a_chunk(b"short", seq=1 + number, timestamp=START + 1 + number))
    written = end_of(disk, name) - end
    old = before[before.index(MAGIC_BYTES, end) :]
    header = header_at(memoryview(old), 0)
    assert header is not None
    assert header.size >= written
    overwrite(disk, name, end, bytes(at) + old[: written // 2 - at])
    (cut,) = open_log(disk, segment_bytes=SEGMENT).report.cuts
    assert (cut.offset, cut.whole_entries) == (end, 1)


def test_a_segment_that_another_follows_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    log, name = a_log_over_an_old_one(disk)
    log._roll()
    assert disk.size(name) > log.sealed[-1].size
    reader = LogReader(disk)
    mapped, names = SimDisk.map, []
    monkeypatch.setattr(SimDisk, "map", lambda *args: (names.append(args[1]), mapped(*args))[1])
    reader.refresh()
    assert name not in names


def test_a_reader_keeps_few_segments_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    log = a_log(disk, segment_bytes=SEGMENT)
    for number in range(4 * OLD):
        log.append(chunk(number))
    reader = LogReader(disk)
    assert len(reader.segments) > 2 * entries.MAPPED_SEGMENTS
    assert contents(reader) == delivered(log)
    assert list(reader._maps) == [segment.first for segment in reader.segments[-entries.MAPPED_SEGMENTS :]]
    oldest = next(iter(reader._maps))
    list(reader.entries(oldest, oldest + 1))
    assert list(reader._maps)[-1] == oldest


def test_a_log_on_files_goes_round_in_a_few_of_them_while_it_is_followed(tmp_path: Path) -> None:
    disk = FileDisk.locked(tmp_path)
    log = a_log(disk, segment_bytes=SEGMENT)
    reader = LogReader(FileDisk(tmp_path))
    read: list[object] = []
    waited = removed = 0
    for number in range(300):
        log.append(chunk(number))
        if number % 5 == 0:
            reader.refresh()
            read += contents(reader, len(read), log.appended)
        if len(log.sealed) > 2 * entries.MAPPED_SEGMENTS:
            assert disk.spares == 0
            log.remove(log.sealed[:1])
            waited, removed = waited + disk.spares, removed + 1
    assert read == [what_was_delivered(chunk(number)) for number in range(len(read))]
    assert waited == removed > 20
    log.close()
    assert disk.spares == 0
    assert disk.bytes_used() < (2 * entries.MAPPED_SEGMENTS + 2) * (SEGMENT + 2 * EACH)
    disk.close()


def test_a_reader_that_was_overtaken_says_so(tmp_path: Path) -> None:
    disk = FileDisk.locked(tmp_path)
    log = a_log(disk, segment_bytes=SEGMENT)
    for number in range(OLD):
        log.append(chunk(number))
    log.settle()  # so that it need not look into it
    reader = LogReader(FileDisk(tmp_path))
    log.remove(log.sealed[:2])
    for number in range(OLD, 2 * OLD):
        log.append(chunk(number))
    with pytest.raises(LogError, match="No such file"):
        list(reader.entries(0))
    reader.refresh()
    assert contents(reader) == delivered(log)
