"""What was delivered and the application has not taken yet; the room it reports keeps it bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from intergroup_core.ids import View
from intergroup_core.wire.chunk import Chunk

Event = Chunk | View

ROOM_STEP = 8
"""The endpoint is told of room again once an eighth of the queue was taken since it was last told."""


class Inbox:
    """A queue of events for one reading task.

    It never refuses: the room it reports makes the senders stop before it grows past its limit by more than
    what was already on its way.
    """

    def __init__(self, limit_bytes: int, tell_room: Callable[[int], None]) -> None:
        self._limit = limit_bytes
        self._tell_room = tell_room
        self._told = limit_bytes
        self._events: deque[Event] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._closed = False
        self.bytes = 0
        self.most_bytes = 0

    def __len__(self) -> int:
        return len(self._events)

    @property
    def free(self) -> int:
        return max(0, self._limit - self.bytes)

    def put(self, event: Event) -> None:
        self._events.append(event)
        if isinstance(event, Chunk):
            self.bytes += event.nbytes
            self.most_bytes = max(self.most_bytes, self.bytes)
        self._wake()

    def settle(self) -> None:
        """Tell the endpoint the room that is left after a stimulus."""
        free = self.free
        if free != self._told:
            self._told = free
            self._tell_room(free)

    async def take(self) -> Event | None:
        """The next event; None once closed and empty."""
        while not self._events:
            if self._closed:
                return None
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        event = self._events.popleft()
        if isinstance(event, Chunk):
            self.bytes -= event.nbytes
            if self.free - self._told >= self._limit // ROOM_STEP or not self._events:
                self.settle()
        return event

    def close(self) -> None:
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
