"""What was delivered and the application has not taken yet; the room it reports keeps it bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from intergroup_core.effects import Gap, Install
from intergroup_core.errors import LocalProtocolError
from intergroup_core.wire.chunk import Chunk

Event = Chunk | Install | Gap

ROOM_STEP = 8
"""The endpoint is told of room again once an eighth of the queue was taken since it was last told."""


class Inbox:
    """A queue of events for one reading task.

    It never refuses: the room it reports makes the senders stop before it grows past its limit by more than
    what was already on its way. A member that leaves must not wait for its application, so from then on the room
    is always told as free, and the stream ends where the limit is reached.
    """

    def __init__(self, limit_bytes: int, tell_room: Callable[[int], None]) -> None:
        self._limit = limit_bytes
        self._tell_room = tell_room
        self._told = limit_bytes
        self._events: deque[Event] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._closed = False
        self._leaving = False
        self._ended = False
        self.bytes = 0
        self.most_bytes = 0

    def __len__(self) -> int:
        return len(self._events)

    @property
    def free(self) -> int:
        return self._limit if self._leaving else max(0, self._limit - self.bytes)

    def put(self, event: Event) -> None:
        if self._ended:
            return
        self._events.append(event)
        if isinstance(event, Chunk):
            self.bytes += event.nbytes
            self.most_bytes = max(self.most_bytes, self.bytes)
            self._ended = self._leaving and self.bytes >= self._limit
        self._wake()

    def settle(self) -> None:
        """Tell the endpoint the room that is left after a stimulus."""
        free = self.free
        if free != self._told:
            self._told = free
            self._tell_room(free)

    async def take(self) -> Event | None:
        """The next event; None once closed and empty."""
        await self.wait()
        return self._pop() if self._events else None

    async def wait(self) -> None:
        """Until there is an event, or there will be none any more."""
        if self._reader is not None:
            raise LocalProtocolError("somebody is reading from this member already; one task at a time can")
        while not self._events and not self._closed:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None

    def take_ready(self, most_bytes: int) -> list[Event]:
        """Events that are there, at least one of them, else about as many bytes as wanted."""
        taken: list[Event] = []
        stop = self.bytes - most_bytes
        while self._events and (not taken or self.bytes > stop):
            taken.append(self._pop())
        return taken

    def leave(self) -> None:
        """Nobody is to wait for this application any more."""
        self._leaving = True
        self._ended = self.bytes >= self._limit
        self.settle()

    def discard(self) -> None:
        """The application reads no more: drop what is here and what comes."""
        self._events.clear()
        self.bytes = 0
        self._leaving = self._ended = True
        self.settle()

    def close(self) -> None:
        self._closed = True
        self._wake()

    def _pop(self) -> Event:
        event = self._events.popleft()
        if isinstance(event, Chunk):
            self.bytes -= event.nbytes
            if self.free - self._told >= self._limit // ROOM_STEP or not self._events:
                self.settle()
        return event

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
