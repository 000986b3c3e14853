"""When the log of a member is brought to the disk, and what is never brought there."""

from __future__ import annotations

import asyncio

import pytest

from intergroup_core.log.writer import Durability
from intergroup_core.runtime import member_log
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


def a_member_log(durability: Durability) -> MemberLog:
    writer = a_log(SimDisk(), durability=durability, segment_bytes=SEGMENT)
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
    assert not log.writer.syncing

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
    assert (log.writer.unsettled, log.writer.syncing) == (0, False)
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
    while not log.writer.syncing:
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
    assert (log.kept, log.writer.syncing) == (0, True)
    await asyncio.wait_for(settled.wait(), 10)
    assert log.kept == 1
    log.close()
