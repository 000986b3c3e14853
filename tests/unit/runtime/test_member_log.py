"""When the log of a member is brought to the disk, what is never brought there, and how it lets go of what is old."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from intergroup_core.errors import DiskFull
from intergroup_core.log import removal
from intergroup_core.log.manifest import Manifest, read_manifest, segment_name
from intergroup_core.log.writer import Durability
from intergroup_core.ports import Disk
from intergroup_core.runtime import member_log
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.inbox import Event
from intergroup_core.runtime.member_log import MemberLog
from intergroup_core.sim.disk import SimDisk
from tests.builders import START
from tests.log_builders import a_chunk, a_log

SEGMENT = 600


class Watcher:
    """Notes up to where entries are kept."""

    def __init__(self) -> None:
        self.stop = 0

    def appended(self, entry: int, event: Event) -> None:
        pass

    def kept(self, stop: int) -> None:
        self.stop = stop

    def refused(self, reason: str) -> None:
        raise AssertionError(reason)


def a_member_log(durability: Durability, disk: Disk | None = None) -> MemberLog:
    writer = a_log(SimDisk() if disk is None else disk, durability=durability, segment_bytes=SEGMENT)
    return MemberLog(writer, durability, Watcher(), free=0, release=lambda: None, begins_behind=lambda install: None)


def fill(log: MemberLog, first: int, count: int) -> None:
    for seq in range(first, first + count):
        log.append(a_chunk(bytes(100), seq=seq, timestamp=START + seq))
        log.settle()


def test_sealed_segments_wait_before_they_are_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(sealed_segments_wait_before_they_are_synced(monkeypatch))


async def sealed_segments_wait_before_they_are_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_log, "SETTLE_SECONDS", 0.05)
    log = a_member_log(Durability.OS)
    settled = asyncio.Event()
    log.changed = settled.set

    fill(log, 1, 12)
    assert log.kept == 12
    assert log.writer.unsettled == len(log.writer.sealed) > 2
    assert not log.writer.busy

    await asyncio.wait_for(settled.wait(), 10)
    assert log.writer.unsettled == 0
    assert len(log.writer.manifest.sealed) > 2
    log.close()


def test_what_is_removed_before_is_never_synced() -> None:
    asyncio.run(what_is_removed_before_is_never_synced())


async def what_is_removed_before_is_never_synced() -> None:
    log = a_member_log(Durability.OS)
    fill(log, 1, 12)
    log.writer.remove(log.writer.sealed)
    assert (log.writer.unsettled, log.writer.busy) == (0, False)
    fill(log, 13, 1)
    assert log.kept == 13
    log.close()
    await log.finished()


def test_more_than_so_many_do_not_wait() -> None:
    asyncio.run(more_than_so_many_do_not_wait())


async def more_than_so_many_do_not_wait() -> None:
    log = a_member_log(Durability.OS)
    settled = asyncio.Event()
    log.changed = settled.set
    count = 0
    while not log.writer.busy:
        count += 1
        fill(log, count, 1)
        assert count < 1_000
    assert log.writer.unsettled == member_log.MOST_UNSETTLED
    await asyncio.wait_for(settled.wait(), 10)
    assert log.writer.unsettled == 0
    log.close()


def test_at_disk_nothing_waits() -> None:
    asyncio.run(at_disk_nothing_waits())


async def at_disk_nothing_waits() -> None:
    log = a_member_log(Durability.DISK)
    settled = asyncio.Event()
    log.changed = settled.set
    fill(log, 1, 1)
    assert (log.kept, log.writer.busy) == (0, True)
    await asyncio.wait_for(settled.wait(), 10)
    assert log.kept == 1
    log.close()


def test_old_segments_go_while_appending_goes_on(tmp_path: Path) -> None:
    asyncio.run(old_segments_go_while_appending_goes_on(FileDisk.locked(tmp_path / "log")))


async def old_segments_go_while_appending_goes_on(disk: FileDisk) -> None:
    log = a_member_log(Durability.OS, disk)
    ended = asyncio.Event()
    log.changed = ended.set
    fill(log, 1, 12)
    sealed = log.writer.sealed
    log.remove(sealed[:2])
    assert (log.writer.busy, log.writer.manifest.first) == (True, sealed[2].first)
    fill(log, 13, 12)
    assert log.kept == 24
    await asyncio.wait_for(ended.wait(), 10)
    assert not log.writer.busy
    assert segment_name(sealed[0].first) not in disk.names()
    assert segment_name(sealed[2].first) in disk.names()
    log.close()


def test_a_sync_waits_for_a_removal_and_begins_after_it() -> None:
    asyncio.run(a_sync_waits_for_a_removal_and_begins_after_it())


async def a_sync_waits_for_a_removal_and_begins_after_it() -> None:
    log = a_member_log(Durability.DISK)
    kept = asyncio.Event()

    def changed() -> None:
        log.settle()
        if log.kept == 7:
            kept.set()

    log.changed = changed
    for seq in range(1, 7):
        log.append(a_chunk(bytes(100), seq=seq, timestamp=START + seq))
    log.remove(log.writer.sealed[:1])
    fill(log, 7, 1)
    assert log.kept == 0
    await asyncio.wait_for(kept.wait(), 10)
    log.close()
    await log.finished()


def test_a_removal_that_fails_is_undone_and_appending_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(a_removal_that_fails_is_undone_and_appending_goes_on(monkeypatch, caplog))


async def a_removal_that_fails_is_undone_and_appending_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(disk: SimDisk, manifest: Manifest) -> None:
        raise DiskFull("no room for a manifest")

    log = a_member_log(Durability.OS)
    ended = asyncio.Event()
    log.changed = ended.set
    fill(log, 1, 12)
    sealed = log.writer.sealed
    with monkeypatch.context() as patch:
        patch.setattr(removal, "write_manifest", refuse)
        log.remove(sealed[:2])
        await asyncio.wait_for(ended.wait(), 10)
    assert log.writer.sealed == sealed
    assert "no room for a manifest" in caplog.text
    fill(log, 13, 1)
    assert log.kept == 13
    log.close()


def test_a_log_that_is_closed_lets_a_removal_end_first() -> None:
    asyncio.run(a_log_that_is_closed_lets_a_removal_end_first())


async def a_log_that_is_closed_lets_a_removal_end_first() -> None:
    disk = SimDisk()
    log = a_member_log(Durability.OS, disk)
    fill(log, 1, 12)
    sealed = log.writer.sealed
    log.remove(sealed[:2])
    log.close()
    await asyncio.wait_for(log.finished(), 10)
    assert segment_name(sealed[0].first) not in disk.names()
    assert read_manifest(disk).first == sealed[2].first


def test_a_file_that_nobody_uses_again_goes_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(a_file_that_nobody_uses_again_goes_after_a_while(monkeypatch))


async def a_file_that_nobody_uses_again_goes_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_log, "SETTLE_SECONDS", 0.05)
    disk, dropped, loop = SimDisk(), asyncio.Event(), asyncio.get_running_loop()
    drop = SimDisk.drop_spares

    def noted(disk: SimDisk) -> None:
        drop(disk)
        loop.call_soon_threadsafe(dropped.set)

    monkeypatch.setattr(SimDisk, "drop_spares", noted)
    log = a_member_log(Durability.OS, disk)
    removed = asyncio.Event()
    log.changed = removed.set
    fill(log, 1, 12)
    log.writer.settle()
    await asyncio.sleep(0.1)  # the timer that was set for them has gone off
    dropped.clear()
    log.remove(log.writer.sealed[:1])
    await asyncio.wait_for(removed.wait(), 10)
    assert disk.spares == 1
    await asyncio.wait_for(dropped.wait(), 10)
    assert disk.spares == 0
    log.close()


def test_a_full_disk_has_no_room_for_files_that_wait() -> None:
    asyncio.run(a_full_disk_has_no_room_for_files_that_wait())


async def a_full_disk_has_no_room_for_files_that_wait() -> None:
    disk = SimDisk()
    log = a_member_log(Durability.OS, disk)
    log._watcher.refused = lambda reason: None  # type: ignore[method-assign]
    removed = asyncio.Event()
    log.changed = removed.set
    fill(log, 1, 13)
    log.remove(log.writer.sealed[:1])
    await asyncio.wait_for(removed.wait(), 10)
    disk.capacity = disk.used()
    removed.clear()
    fill(log, 14, 1)
    assert log.kept == 13
    await asyncio.wait_for(removed.wait(), 10)  # tried again: there is the room of the spare
    log.settle()
    assert (disk.spares, log.kept) == (0, 14)
    log.close()


def test_a_log_that_is_closed_leaves_no_file_that_waits(tmp_path: Path) -> None:
    asyncio.run(a_log_that_is_closed_leaves_no_file_that_waits(FileDisk.locked(tmp_path / "log")))


async def a_log_that_is_closed_leaves_no_file_that_waits(disk: FileDisk) -> None:
    log = a_member_log(Durability.OS, disk)
    fill(log, 1, 12)
    log.remove(log.writer.sealed[:1])
    log.close()
    await asyncio.wait_for(log.finished(), 10)
    assert (disk.spares, [name for name in disk.names() if name.endswith(".tmp")]) == (0, [])
