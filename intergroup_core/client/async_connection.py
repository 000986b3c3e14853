"""A conversation with an agent on an event loop: requests wait for their answers side by side."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from os import PathLike, getpid
from typing import Any

from intergroup_core.client.channel import VERSION, Decoder, Kind, encode, failure
from intergroup_core.client.connection import GONE, GREETING_SECONDS, MOST_GREETINGS, READ_BYTES
from intergroup_core.client.starting import IDLE_S, reach_agent
from intergroup_core.errors import AgentGone, ChannelBroken, IntergroupError, LocalProtocolError


class AsyncConnection:
    """For the tasks of one loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._next = 0
        self._gone: IntergroupError | None = None
        self._hearing = asyncio.create_task(self._hear())

    @classmethod
    async def to_agent(
        cls,
        home: str | PathLike[str] | None = None,
        *,
        start: bool = True,
        idle_s: float = IDLE_S,
        advertise: str = "",
    ) -> AsyncConnection:
        """With the site's agent, started where none is there; one that goes before it has answered is none."""
        for _ in range(MOST_GREETINGS - 1):
            with suppress(AgentGone):
                return await cls._greeted(home, start=start, idle_s=idle_s, advertise=advertise)
        return await cls._greeted(home, start=start, idle_s=idle_s, advertise=advertise)

    @classmethod
    async def _greeted(
        cls, home: str | PathLike[str] | None, *, start: bool, idle_s: float, advertise: str
    ) -> AsyncConnection:
        connected = await asyncio.to_thread(reach_agent, home, start=start, idle_s=idle_s, advertise=advertise)
        connected.setblocking(False)
        connection = cls(*await asyncio.open_unix_connection(sock=connected))
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                await connection.request(Kind.HELLO, [VERSION, getpid()])
        except BaseException:
            await connection.close()
            raise
        return connection

    async def request(self, kind: Kind, body: Any = None) -> Any:
        """Ask, and wait for the answer."""
        if self._gone is not None:
            raise self._gone
        self._next += 1
        waiter = asyncio.get_running_loop().create_future()
        self._waiting[self._next] = waiter
        number = self._next
        try:
            self._writer.write(encode(kind, number, body))
            with suppress(OSError):  # who hears nothing any more notices, and says so to all that wait
                await self._writer.drain()
            return await waiter
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """The agent forgets this client."""
        self._end(LocalProtocolError("this member is closed; open another one"))
        self._hearing.cancel()
        self._writer.close()
        with suppress(OSError, asyncio.CancelledError):
            await self._hearing
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _hear(self) -> None:
        decoder = Decoder()
        gone: IntergroupError = AgentGone(GONE)
        try:
            while data := await self._reader.read(READ_BYTES):
                for said in decoder.feed(data):
                    self._heard(said.kind, said.number, said.body)
        except ChannelBroken as error:
            gone = error
        except OSError as error:
            gone.__cause__ = error
        self._end(gone)

    def _heard(self, kind: Kind, number: int, body: Any) -> None:
        waiter = self._waiting.get(number)
        if waiter is None or waiter.done():
            return  # nobody waits for it any more
        if kind is Kind.FAILURE:
            waiter.set_exception(failure(body))
        else:
            waiter.set_result(body)

    def _end(self, gone: IntergroupError) -> None:
        self._gone = self._gone or gone
        for waiter in self._waiting.values():
            if not waiter.done():
                waiter.set_exception(self._gone)
