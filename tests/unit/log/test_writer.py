"""Appending: numbers, marks of durability, rolling, full disks, removal."""

from __future__ import annotations

from random import Random

import pytest

from intergroup_core.errors import ConfigError, DiskFull, LocalProtocolError, LogError
from intergroup_core.ids import Service
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.growing import PENDING_BYTES
from intergroup_core.log.manifest import read_manifest, segment_name
from intergroup_core.log.reader import LogReader
from intergroup_core.log.writer import Durability, create_log, open_log
from intergroup_core.sim.disk import SimDisk, SimFile
from intergroup_core.wire.chunk import Chunk
from tests.builders import START, A, B, a_run
from tests.log_builders import LOG, a_chunk, a_gap, a_history, a_log, an_install, contents, what_was_delivered


def chunks(count: int, size: int = 100) -> list[Chunk]:
    return [a_chunk(bytes(size), seq=1 + at, timestamp=START + 1 + at) for at in range(count)]


def test_entries_are_numbered_from_nought_and_come_back_in_order() -> None:
    disk = SimDisk()
    log = a_log(disk)
    history = [an_install(A), a_chunk(b"x"), a_gap(), an_install(A, start=START + 9)]
    assert [log.append(delivered) for delivered in history] == [0, 1, 2, 3]
    assert contents(LogReader(disk)) == [what_was_delivered(delivered) for delivered in history]


def test_frames_stand_in_the_file_as_they_were_received() -> None:
    disk = SimDisk()
    chunk = a_chunk(bytes(range(200)), body=64)
    a_log(disk).append(chunk)
    assert chunk.head
    received = b"".join(run.frames.tobytes() for run in (*chunk.head, chunk.run))
    assert received in bytes(disk.map(segment_name(0), 0, disk.size(segment_name(0))))


def test_repaired_frames_are_kept_without_what_brought_them() -> None:
    disk = SimDisk()
    run = a_run(ends="..|", repaired=True)
    assert not run.frames.flags["C_CONTIGUOUS"]
    a_log(disk).append(Chunk((), run))
    assert contents(LogReader(disk)) == [what_was_delivered(Chunk((), a_run(ends="..|")))]


def test_one_append_is_one_vectored_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    append = SimFile.appendv
    log = a_log()
    monkeypatch.setattr(SimFile, "appendv", lambda file, parts: (written.append(len(parts)), append(file, parts))[1])
    log.append(a_chunk(b"x" * 500, body=64))
    assert len(written) == 1


def test_marks_say_how_far_each_level_is() -> None:
    log = a_log(durability=Durability.MEMORY)
    for chunk in chunks(3):
        log.append(chunk)
    assert (log.appended, log.written, log.durable) == (3, 0, 0)
    assert log.flush(Durability.MEMORY) == 3
    assert log.flush(Durability.OS) == 3
    assert (log.written, log.durable) == (3, 0)
    assert log.unsynced_bytes == log.active.totals.size
    assert log.flush(Durability.DISK) == 3
    assert (log.durable, log.unsynced_bytes) == (3, 0)


def test_what_is_unsynced_is_counted_over_segments() -> None:
    disk = SimDisk()
    log = a_log(disk, segment_bytes=600)
    for chunk in chunks(9):
        log.append(chunk)
    assert log.unsynced_bytes == sum(disk.size(name) for name in disk.names() if name.endswith(".segment"))
    log.flush(Durability.DISK)
    assert (log.unsynced_bytes, log.unsettled) == (0, 0)


def test_at_memory_entries_wait_up_to_a_bound() -> None:
    log = a_log(durability=Durability.MEMORY, segment_bytes=1 << 30)
    for chunk in chunks(40, 50_000):
        log.append(chunk)
    assert 0 < log.appended - log.written <= PENDING_BYTES // 50_000


def test_what_is_synced_survives_a_crash_and_what_is_not_need_not() -> None:
    disk = SimDisk()
    log = a_log(disk)
    first, second = chunks(2)
    log.append(first)
    log.flush(Durability.DISK)
    log.append(second)
    left = {len(contents(LogReader(_opened(disk.after_crash(Random(seed)))))) for seed in range(30)}
    assert left == {1, 2}


def _opened(disk: SimDisk) -> SimDisk:
    open_log(disk)
    return disk


def test_segments_are_sealed_by_size_and_each_can_be_read_by_itself() -> None:
    disk = SimDisk()
    log = a_log(disk, segment_bytes=600)
    log.append(an_install(A, B))
    for chunk in chunks(9):
        log.append(chunk)
    assert log.unsettled > 1
    log.settle()
    assert (log.unsettled, len(log.manifest.sealed) > 1) == (0, True)
    reader = LogReader(disk)
    for segment in reader.segments[1:]:
        (entry, *_) = reader.entries(segment.first)
        assert (entry.header.carried, entry.install()) == (True, an_install(A, B))
    assert read_manifest(disk) == log.manifest


def test_a_full_disk_refuses_an_entry_whole_and_appending_goes_on() -> None:
    disk = SimDisk()
    log = a_log(disk)
    one, two, three = chunks(3)
    log.append(one)
    size = disk.size(segment_name(0))
    disk.capacity = disk.used() + 150
    for _ in range(2):
        with pytest.raises(DiskFull, match="no room to append to sim; make room, and appending goes on"):
            log.append(two)
        assert (disk.size(segment_name(0)), log.appended) == (size, 1)
    disk.capacity = None
    assert [log.append(two), log.append(three)] == [1, 2]
    assert contents(LogReader(disk)) == [what_was_delivered(chunk) for chunk in (one, two, three)]


def test_a_failed_sync_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_log()
    log.append(a_chunk(b"x"))

    def fail(file: SimFile) -> None:
        raise LogError("cannot sync f: Input/output error")

    monkeypatch.setattr(SimFile, "sync", fail)
    with pytest.raises(LogError, match="Input/output error"):
        log.flush(Durability.DISK)
    with pytest.raises(LogError, match="what was appended last may be lost: open the log again"):
        log.append(a_chunk(b"y"))
    assert log.durable == 0


def test_after_an_interrupted_append_the_log_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    log = a_log(disk)
    one, two = chunks(2)
    log.append(one)
    append = SimFile.appendv

    def interrupted(file: SimFile, parts: list[bytes]) -> None:
        append(file, parts[:1])
        raise KeyboardInterrupt

    monkeypatch.setattr(SimFile, "appendv", interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.append(two)
    monkeypatch.setattr(SimFile, "appendv", append)
    with pytest.raises(LogError, match="was interrupted; open the log again"):
        log.append(two)
    log = open_log(disk)
    assert len(log.report.cuts) == 1
    assert log.append(two) == 1
    assert contents(LogReader(disk)) == [what_was_delivered(chunk) for chunk in (one, two)]


def test_a_log_goes_on_where_it_was_closed() -> None:
    disk = SimDisk()
    history = a_history(Random(4), 40)
    log = a_log(disk, segment_bytes=900)
    for delivered in history[:20]:
        log.append(delivered)
    log.close()
    log = open_log(disk, segment_bytes=900)
    assert (log.report.cuts, log.report.damages, log.durable) == ([], [], log.manifest.tail)
    for delivered in history[20:]:
        log.append(delivered)
    apart, together = LogReader(disk).context(), _in_one_go(history).context()
    assert contents(LogReader(disk)) == [what_was_delivered(delivered) for delivered in history]
    assert (apart.place, apart.chain, apart.install) == (together.place, together.chain, together.install)


def _in_one_go(history: list[Delivered]) -> LogReader:
    disk = SimDisk()
    log = a_log(disk)
    for delivered in history:
        log.append(delivered)
    return LogReader(disk)


def test_the_oldest_segments_are_removed_manifest_first() -> None:
    disk = SimDisk()
    log = a_log(disk, segment_bytes=600)
    for chunk in chunks(12):
        log.append(chunk)
    log.settle()
    sealed = log.manifest.sealed
    with pytest.raises(LocalProtocolError):
        log.remove(sealed[1:2])
    before = disk.names()
    log.remove(sealed[:2])
    assert log.manifest.first == sealed[2].first
    gone = set(before) - set(disk.names())
    assert gone == {segment_name(each.first) for each in sealed[:2]} | {
        f"{each.first:016x}.index" for each in sealed[:2]
    }
    assert LogReader(disk).first == sealed[2].first
    assert log.append(a_chunk(b"next", seq=13, timestamp=START + 13)) == 12


def test_segments_that_were_never_brought_to_the_disk_can_be_removed_too() -> None:
    disk = SimDisk()
    log = a_log(disk, segment_bytes=600)
    for chunk in chunks(6):
        log.append(chunk)
    log.settle()
    for chunk in chunks(18)[6:]:
        log.append(chunk)
    listed, sealed = log.manifest.sealed, log.sealed
    assert listed == sealed[: len(listed)]
    assert len(sealed) - len(listed) == log.unsettled > 2
    whole = contents(LogReader(disk))

    log.remove(sealed[: len(listed) + 1])
    assert (log.manifest.sealed, log.manifest.first) == ((), sealed[len(listed) + 1].first)
    assert log.unsettled == len(sealed) - len(listed) - 1
    left = contents(LogReader(disk))
    assert left == whole[-len(left) :]
    log.settle()
    assert log.manifest.sealed == sealed[len(listed) + 1 :]

    log.remove(log.sealed)
    assert log.append(a_chunk(b"next", seq=19, timestamp=START + 19)) == 18
    log.close()
    again = open_log(disk, segment_bytes=600)
    assert again.report.damages == []
    assert contents(LogReader(disk)) == [
        *left[-(18 - sealed[-1].stop) :],
        what_was_delivered(a_chunk(b"next", seq=19, timestamp=START + 19)),
    ]


def test_a_log_says_it_is_complete_only_when_it_is_durable() -> None:
    after, upto = OrderCut(START, A), OrderCut(START + 9, A)
    disk = SimDisk()
    create_log(disk, log=LOG, group="prices", service=Service.RTO, after=after)
    log = open_log(disk)
    for chunk in chunks(3):
        log.append(chunk)
    log.bound(upto=upto)
    left = disk.after_crash(Random(3))
    assert len(contents(LogReader(left))) == 3
    assert (read_manifest(left).after, read_manifest(left).upto) == (after, upto)


def test_a_directory_holds_one_log() -> None:
    disk = SimDisk()
    a_log(disk)
    with pytest.raises(ConfigError, match="sim holds a log already"):
        create_log(disk, log=LOG, group="other", service=Service.UU)
