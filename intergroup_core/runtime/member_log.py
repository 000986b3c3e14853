"""The log of a member: appends what it delivers, and says when that is kept to the level asked for."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol

from intergroup_core.effects import Install
from intergroup_core.errors import DiskFull, LogError
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.manifest import SealedSegment
from intergroup_core.log.removal import RemovalJob
from intergroup_core.log.sync import SyncJob
from intergroup_core.log.writer import MAX_UNSETTLED, Durability, LogWriter
from intergroup_core.runtime.inbox import Event
from intergroup_core.wire.chunk import Chunk

_log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
"""How often a full disk is tried again."""
SETTLE_SECONDS = 5.0
"""How long sealed segments wait at `os` to be brought to the disk: what goes again before that need not go there. And
how long the file of a removed one may wait to be used again; a log that grows fast does that within a moment."""
MOST_UNSETTLED = MAX_UNSETTLED // 2
"""Sealed segments that wait at most."""


class LogWatcher(Protocol):
    """Who wants to know what is in the log."""

    def appended(self, entry: int, event: Event) -> None:
        """An entry was made of an event."""

    def kept(self, stop: int) -> None:
        """All entries below are kept, and can be read."""

    def refused(self, reason: str) -> None:
        """Nothing can be appended for now; empty once it goes on."""


class MemberLog:
    """A writer on an event loop. What the disk has no room for waits here, and the member says that it has none.

    What waits for the disk runs in a thread, one job at a time: at `disk` a sync of all that was appended before it,
    and the removal of old segments, which takes milliseconds too.
    """

    def __init__(
        self,
        writer: LogWriter,
        durability: Durability,
        watcher: LogWatcher,
        *,
        free: int,
        release: Callable[[], None],
        begins_behind: Callable[[Install], OrderCut | None],
    ) -> None:
        self.writer = writer
        self._release = release
        self._begins_behind = begins_behind
        self._durability = durability
        self._watcher = watcher
        self._loop = asyncio.get_running_loop()
        self._chunks: deque[int] = deque()
        """Entries of chunks that are not kept yet."""
        self._waiting: deque[Event] = deque()
        self._retry: asyncio.TimerHandle | None = None
        self._settling: asyncio.TimerHandle | None = None
        self._job: asyncio.Future[None] | None = None
        self._kept = writer.appended
        self._closed = False
        self._finished = asyncio.Event()
        self.free = free
        """Bytes that may still come before senders must wait."""
        self.changed: Callable[[], None] = lambda: None
        """Called when something happened that no call of the member's brought about."""
        self.fail: Callable[[LogError], None] = lambda error: None
        """Called when the log cannot go on."""

    @property
    def kept(self) -> int:
        """All entries below are kept to the level asked for."""
        return self._kept

    def append(self, event: Event) -> None:
        """Take an event; LogError where the log cannot go on."""
        if self._waiting:
            self._waiting.append(event)
            return
        try:
            self._append(event)
        except DiskFull as error:
            self._waiting.append(event)
            _log.error("%s", error)
            self._watcher.refused(str(error))
            self._drop_spares()
            self._retry = self._loop.call_later(RETRY_SECONDS, self._try_again)

    def settle(self) -> int:
        """After a stimulus: how many more chunks are kept now."""
        if self._durability is Durability.DISK or self.writer.unsettled >= MOST_UNSETTLED:
            self._begin_sync()
        elif self.writer.unsettled:
            self._settle_later()
        kept = self.writer.durable if self._durability is Durability.DISK else self.writer.flush(Durability.OS)
        if kept > self._kept:
            self._kept = kept
            self._watcher.kept(kept)
        return self._count()

    def close(self) -> None:
        """Nothing comes any more; what is here is brought to the disk."""
        if self._closed:
            return
        self._closed = True
        for timer in (self._retry, self._settling):
            if timer is not None:
                timer.cancel()
        if self._job is None:
            self._finish()

    def _finish(self) -> None:
        try:
            self.writer.close()
            self._kept = self.writer.appended
        except LogError as error:
            _log.error("a log could not be closed: %s", error)
        self._release()
        self._watcher.kept(self._kept)
        self._finished.set()

    async def finished(self) -> None:
        """Until a closed log is let go of: a job that was under way ends first."""
        await self._finished.wait()

    def _append(self, event: Event) -> None:
        if isinstance(event, Install) and not self.writer.appended:
            behind = self._begins_behind(event)
            entry = self.writer.append(event) if behind is None else self.writer.begin_with(event, behind)
        else:
            entry = self.writer.append(event)
        if isinstance(event, Chunk):
            self._chunks.append(entry)
        self._watcher.appended(entry, event)

    def remove(self, segments: tuple[SealedSegment, ...]) -> None:
        """Forget the oldest sealed segments; not while a job is under way, and their files go a little later."""
        job = self.writer.begin_removal(segments)
        if job is not None:
            self._job = self._loop.run_in_executor(None, job.run)
            self._job.add_done_callback(lambda done: self._end_removal(job, done))

    def _end_removal(self, job: RemovalJob, done: asyncio.Future[None]) -> None:
        self._job = None
        self.writer.end_removal(job)
        if (error := done.exception()) is not None:
            _log.error("a log could not be cut back: %s", error)
        if self._closed:
            self._finish()
        else:
            if self.writer.spares:
                self._settle_later()
            self.changed()  # a sync may have waited

    def _count(self) -> int:
        count = 0
        while self._chunks and self._chunks[0] < self._kept:
            self._chunks.popleft()
            count += 1
        return count

    def _try_again(self) -> None:
        self._retry = None
        try:
            while self._waiting:
                self._append(self._waiting[0])
                self._waiting.popleft()
        except DiskFull:
            self._drop_spares()  # retention may have left one since, which is all the room that there is
            self._retry = self._loop.call_later(RETRY_SECONDS, self._try_again)
        except LogError as error:
            self.fail(error)
            return
        else:
            _log.warning("there is room again, and appending goes on")
            self._watcher.refused("")
        self.changed()

    def _settle_later(self) -> None:
        if self._settling is None:
            self._settling = self._loop.call_later(SETTLE_SECONDS, self._settle_sealed)

    def _settle_sealed(self) -> None:
        self._settling = None
        self._drop_spares()
        if not self.writer.unsettled:
            return
        try:
            self._begin_sync()
        except LogError as error:
            self.fail(error)

    def _drop_spares(self) -> None:
        if self.writer.spares:
            self._loop.run_in_executor(None, self.writer.drop_spares)

    def _begin_sync(self) -> None:
        if self._job is not None:
            return
        job = self.writer.begin_sync()
        if job is None:
            return
        self._job = self._loop.run_in_executor(None, job.run)
        self._job.add_done_callback(lambda done: self._end_sync(job, done))

    def _end_sync(self, job: SyncJob, done: asyncio.Future[None]) -> None:
        self._job = None
        error = done.exception()
        self.writer.end_sync(job, error)
        if error is not None:
            _log.error("a log could not be brought to the disk: %s", error)
        if self._closed:
            self._finish()
            return
        if error is not None and not isinstance(error, DiskFull):
            self.fail(error if isinstance(error, LogError) else LogError(f"a log could not be synced: {error!r}"))
            return
        if self._durability is Durability.DISK:
            self._kept = self.writer.durable
            self._watcher.kept(self._kept)
        if error is None:
            self.changed()
        else:
            self._retry = self._retry or self._loop.call_later(RETRY_SECONDS, self._try_again)
