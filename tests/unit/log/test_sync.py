"""A sync that somebody else runs while the writer goes on."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from random import Random

import pytest

from intergroup_core.errors import DiskFull, LocalProtocolError, LogError
from intergroup_core.log import sync
from intergroup_core.log.manifest import Manifest, read_manifest
from intergroup_core.log.reader import LogReader
from intergroup_core.log.sync import SyncJob
from intergroup_core.log.writer import MAX_UNSETTLED, Durability, LogWriter, open_log
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.sim.disk import SimDisk, SimFile
from intergroup_core.wire.chunk import Chunk
from tests.builders import START, A
from tests.log_builders import a_chunk, a_log, an_install, contents, what_was_delivered


def chunks(count: int, size: int = 100) -> list[Chunk]:
    return [a_chunk(bytes(size), seq=1 + at, timestamp=START + 1 + at) for at in range(count)]


def begun(log: LogWriter) -> SyncJob:
    job = log.begin_sync()
    assert job is not None
    return job


def test_what_was_appended_before_the_job_is_durable_after_it_and_no_more() -> None:
    disk = SimDisk()
    log = a_log(disk)
    one, two, three = chunks(3)
    log.append(one)
    job = begun(log)
    log.append(two)
    job.run()
    assert (log.busy, log.durable) == (True, 0)
    log.append(three)
    assert (log.end_sync(job), log.durable, log.busy) == (1, 1, False)
    left = disk.after_crash(Random(3))
    open_log(left)
    assert contents(LogReader(left))[0] == what_was_delivered(one)


def test_entries_say_how_much_was_durable_before_them() -> None:
    disk = SimDisk()
    log = a_log(disk)
    one, two, three = chunks(3)
    log.append(one)
    size = log.active.totals.size
    job = begun(log)
    log.append(two)
    job.run()
    log.end_sync(job)
    log.append(three)
    assert [entry.header.synced_words * 8 for entry in LogReader(disk).entries(0)] == [0, 0, size]


def test_there_is_nothing_to_begin_where_all_is_durable_or_a_job_is_under_way() -> None:
    log = a_log()
    assert log.begin_sync() is None
    log.append(a_chunk(b"x"))
    job = begun(log)
    assert log.begin_sync() is None
    job.run()
    log.end_sync(job)
    assert log.begin_sync() is None
    with pytest.raises(LocalProtocolError, match="end each job once"):
        log.end_sync(job)


def test_what_waits_in_memory_is_written_out_first() -> None:
    log = a_log(durability=Durability.MEMORY)
    log.append(a_chunk(b"x"))
    assert log.written == 0
    job = begun(log)
    assert log.written == 1
    job.run()
    assert log.end_sync(job) == 1


def test_segments_are_sealed_while_a_job_is_under_way() -> None:
    disk = SimDisk()
    log = a_log(disk, segment_bytes=600)
    log.append(an_install(A))
    whole = chunks(30)
    for chunk in whole[:10]:
        log.append(chunk)
    before, mark = log.unsettled, log.appended
    assert before > 1
    job = begun(log)
    steps, rest = job.steps(), iter(whole[10:])
    for step in steps:
        step()
        log.append(next(rest))
        log.append(next(rest))
    assert log.unsettled > before
    log.end_sync(job)
    assert (len(log.manifest.sealed), log.durable) == (before, mark)
    assert read_manifest(disk) == log.manifest
    for chunk in rest:
        log.append(chunk)
    log.close()
    assert contents(LogReader(disk.after_crash(Random(1))))[1:] == [what_was_delivered(chunk) for chunk in whole]


def test_nothing_else_syncs_removes_or_closes_meanwhile() -> None:
    log = a_log(segment_bytes=600)
    for chunk in chunks(12):
        log.append(chunk)
    log.settle()
    log.append(a_chunk(b"more", seq=13, timestamp=START + 13))
    job = begun(log)
    for refused in (
        log.settle,
        log.close,
        lambda: log.remove(log.manifest.sealed[:1]),
        lambda: log.flush(Durability.DISK),
    ):
        with pytest.raises(LocalProtocolError, match="while a sync is under way; end that first"):
            refused()
    assert log.flush(Durability.OS) == log.appended
    job.run()
    log.end_sync(job)
    log.remove(log.manifest.sealed[:1])
    log.close()


def test_during_a_job_there_are_no_more_unsettled_segments_than_may_be() -> None:
    log = a_log(segment_bytes=200)
    sent = iter(chunks(4 * MAX_UNSETTLED))
    log.append(next(sent))
    job = begun(log)
    for chunk in sent:
        log.append(chunk)
    assert log.unsettled == MAX_UNSETTLED
    job.run()
    log.end_sync(job)
    assert log.flush(Durability.DISK) == 4 * MAX_UNSETTLED


def test_a_failed_job_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_log()
    log.append(a_chunk(b"x"))
    job = begun(log)

    def fail(file: SimFile) -> None:
        raise DiskFull("cannot sync f: No space left on device")

    monkeypatch.setattr(SimFile, "sync", fail)
    with pytest.raises(DiskFull) as raised:
        job.run()
    assert log.end_sync(job, raised.value) == 0
    for refused in (log.begin_sync, lambda: log.append(a_chunk(b"y"))):
        with pytest.raises(LogError, match="what was appended last may be lost: open the log again"):
            refused()


def test_a_manifest_for_which_there_is_no_room_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    log = a_log(disk, segment_bytes=600)
    for chunk in chunks(12):
        log.append(chunk)
    job = begun(log)

    def fail(disk: SimDisk, manifest: Manifest) -> None:
        raise DiskFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr(sync, "write_manifest", fail)
        with pytest.raises(DiskFull) as raised:
            job.run()
    waiting = log.unsettled
    assert log.end_sync(job, raised.value) == 0
    assert log.unsettled == waiting
    job = begun(log)
    job.run()
    assert log.end_sync(job) == 12


def test_a_thread_syncs_real_files_while_others_are_appended(tmp_path: Path) -> None:
    log = a_log(FileDisk.locked(tmp_path / "log"), segment_bytes=20_000)
    history = chunks(400, 300)
    sent = iter(history)
    for chunk in sent:
        log.append(chunk)
        job = log.begin_sync()
        if job is None:
            continue
        thread = threading.Thread(target=job.run)
        thread.start()
        for more in itertools.islice(sent, 40):
            log.append(more)
        thread.join()
        assert log.end_sync(job) == job.mark
    log.close()
    reader = LogReader(FileDisk(tmp_path / "log"))
    assert contents(reader) == [what_was_delivered(chunk) for chunk in history]
    assert len(reader.manifest.sealed) > 3
