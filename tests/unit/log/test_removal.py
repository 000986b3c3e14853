"""A removal that somebody else runs while the writer goes on."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from random import Random

import pytest

from intergroup_core.errors import DiskFull, LocalProtocolError, LogError
from intergroup_core.log import removal
from intergroup_core.log.manifest import Manifest, read_manifest, segment_name
from intergroup_core.log.reader import LogReader
from intergroup_core.log.removal import RemovalJob
from intergroup_core.log.writer import Durability, LogWriter, open_log
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.sim.disk import SimDisk
from intergroup_core.wire.chunk import Chunk
from tests.builders import START
from tests.log_builders import a_chunk, a_log, contents, what_was_delivered


def chunks(count: int, size: int = 100) -> list[Chunk]:
    return [a_chunk(bytes(size), seq=1 + at, timestamp=START + 1 + at) for at in range(count)]


def a_filled_log(disk: SimDisk, settled: int = 6, count: int = 18) -> LogWriter:
    """Some of its sealed segments are in the manifest, others are not."""
    log = a_log(disk, segment_bytes=600)
    for chunk in chunks(settled):
        log.append(chunk)
    log.settle()
    for chunk in chunks(count)[settled:]:
        log.append(chunk)
    assert log.unsettled > 1
    assert log.manifest.sealed
    return log


def begun(log: LogWriter, count: int) -> RemovalJob:
    job = log.begin_removal(log.sealed[:count])
    assert job is not None
    return job


def test_for_who_asks_the_writer_segments_are_gone_before_their_files_are() -> None:
    disk = SimDisk()
    log = a_filled_log(disk)
    sealed, size = log.sealed, log.size
    gone = len(log.manifest.sealed) + 1
    job = begun(log, gone)
    assert (log.sealed, log.manifest.first) == (sealed[gone:], sealed[gone].first)
    assert log.size == size - sum(segment.size for segment in sealed[:gone])
    assert LogReader(disk).first == 0

    job.run()
    log.end_removal(job)
    assert LogReader(disk).first == sealed[gone].first
    assert read_manifest(disk) == log.manifest
    names = disk.names()
    assert [segment_name(segment.first) in names for segment in sealed] == [False] * gone + [True] * len(sealed[gone:])


def test_appending_and_sealing_go_on_meanwhile() -> None:
    disk = SimDisk()
    log = a_filled_log(disk)
    waiting = log.unsettled
    job = begun(log, len(log.manifest.sealed) + 1)
    rest = chunks(30)[18:]
    for chunk in rest[:6]:
        log.append(chunk)
    job.run()
    for chunk in rest[6:]:
        log.append(chunk)
    log.end_removal(job)
    assert log.unsettled > waiting - 1
    log.close()
    left = contents(LogReader(disk.after_crash(Random(1))))
    assert left == [what_was_delivered(chunk) for chunk in chunks(30)][-len(left) :]
    assert open_log(disk, segment_bytes=600).report.damages == []


def test_nothing_is_removed_where_the_manifest_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    log = a_filled_log(disk)
    sealed, manifest, names, waiting = log.sealed, log.manifest, disk.names(), log.unsettled
    job = begun(log, len(manifest.sealed) + 1)
    log.append(a_chunk(b"seals one more meanwhile", seq=19, timestamp=START + 19))

    def fail(disk: SimDisk, manifest: Manifest) -> None:
        raise DiskFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr(removal, "write_manifest", fail)
        with pytest.raises(DiskFull):
            job.run()
    log.end_removal(job)
    assert (log.sealed[:-1], log.manifest, log.unsettled) == (sealed, manifest, waiting + 1)
    assert set(disk.names()) > set(names)
    assert len(contents(LogReader(disk))) == 19

    log.remove(sealed[: len(manifest.sealed) + 1])
    assert log.manifest.first == log.sealed[0].first
    assert log.flush(Durability.DISK) == 19


def test_a_file_that_stays_is_not_in_the_log_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    log = a_filled_log(disk)
    sealed = log.sealed

    def refuse(disk: SimDisk, name: str) -> None:
        raise LogError(f"cannot remove {name}")

    with monkeypatch.context() as patch:
        patch.setattr(SimDisk, "retire", refuse)
        with pytest.raises(LogError):
            log.remove(sealed[:2])
    assert (log.busy, log.sealed, read_manifest(disk).first) == (False, sealed[2:], sealed[2].first)
    assert segment_name(sealed[0].first) in disk.names()
    log.close()
    open_log(disk, segment_bytes=600)
    assert segment_name(sealed[0].first) not in disk.names()


def test_nothing_else_syncs_removes_or_closes_meanwhile() -> None:
    log = a_filled_log(SimDisk())
    job = begun(log, 1)
    assert log.busy
    assert log.begin_sync() is None
    for refused in (
        log.settle,
        log.close,
        lambda: log.remove(log.sealed[:1]),
        lambda: log.flush(Durability.DISK),
    ):
        with pytest.raises(LocalProtocolError, match="while a removal is under way; end that first"):
            refused()
    assert log.flush(Durability.OS) == log.appended
    job.run()
    log.end_removal(job)
    with pytest.raises(LocalProtocolError, match="end each job once"):
        log.end_removal(job)
    assert log.begin_removal(()) is None
    assert not log.busy
    log.close()


def test_a_thread_removes_real_files_while_others_are_appended(tmp_path: Path) -> None:
    log = a_log(FileDisk.locked(tmp_path / "log"), segment_bytes=20_000)
    history = chunks(600, 300)
    sent = iter(history)
    removed = 0
    for chunk in sent:
        log.append(chunk)
        job = log.begin_removal(log.sealed[:1])
        if job is None:
            continue
        thread = threading.Thread(target=job.run)
        thread.start()
        for more in itertools.islice(sent, 100):
            log.append(more)
        thread.join()
        log.end_removal(job)
        removed += 1
    assert removed > 3
    log.close()
    reader = LogReader(FileDisk(tmp_path / "log"))
    assert reader.first == log.manifest.first > 0
    assert contents(reader) == [what_was_delivered(chunk) for chunk in history[reader.first :]]
