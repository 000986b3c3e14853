"""Fetches ranges of a group's log from another site, over TCP, checked as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from intergroup_core.client.channel import VERSION, Decoder, Kind, Said, encode, failure
from intergroup_core.errors import ChannelBroken, RangeUnavailable
from intergroup_core.ids import Service
from intergroup_core.log.cut import Cut
from intergroup_core.log.cut_codec import cut_of_list, listed_cut
from intergroup_core.log.range_order import RangeCut
from intergroup_core.log.transfer import RangeSink

CONNECT_SECONDS = 5.0
QUIET_SECONDS = 15.0
"""A site that sends nothing for so long is given up."""
READ_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Keeper:
    """A site that has something of a group's log."""

    name: str
    host: str
    port: int
    token: bytes

    def __str__(self) -> str:
        return f"{self.name} ({self.host}:{self.port})"


@dataclass(frozen=True, slots=True)
class Held:
    """What a site has of a stream."""

    service: Service
    first: Cut
    head: Cut


class KeeperConnection:
    """A conversation with one keeper of one group."""

    def __init__(self, keeper: Keeper, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._keeper = keeper
        self._reader = reader
        self._writer = writer
        self._decoder = Decoder()
        self._heard: list[Said] = []
        self._number = 0

    async def streams(self) -> list[Held]:
        """What it has of the group."""
        await self._ask(Kind.STREAMS, None)
        said = await self._next()
        if said.kind is not Kind.ANSWER or not isinstance(said.body, list):
            raise ChannelBroken(f"{self._keeper} does not say what it holds")
        return [_held(entry) for entry in said.body]

    async def fetch(self, service: Service, start: RangeCut, stop: RangeCut, sink: RangeSink) -> None:
        """Everything between two cuts into a sink, which checks it; RangeUnavailable where some of it is lacking."""
        await self._ask(Kind.FETCH, [service.value, listed_cut(start), listed_cut(stop)])
        while (said := await self._next()).kind is Kind.BLOCK:
            if not isinstance(said.body, bytes):
                raise ChannelBroken(f"{self._keeper} sent a block that is none")
            await asyncio.to_thread(sink.take, said.body)
        if not sink.finished:
            raise RangeUnavailable(f"{self._keeper} sent less than it was asked for; fetch it from another site")

    async def _ask(self, kind: Kind, body: Any) -> None:
        self._number += 1
        self._writer.write(encode(kind, self._number, body))
        await self._writer.drain()

    async def _next(self) -> Said:
        while not self._heard:
            async with asyncio.timeout(QUIET_SECONDS):
                data = await self._reader.read(READ_BYTES)
            if not data:
                raise RangeUnavailable(f"{self._keeper} ended the conversation; fetch it from another site")
            self._heard += self._decoder.feed(data)
        said = self._heard.pop(0)
        if said.kind is Kind.FAILURE:
            raise failure(said.body)
        return said

    async def greet(self, group: str) -> None:
        await self._ask(Kind.HELLO, [VERSION, group, self._keeper.token])
        await self._next()


@asynccontextmanager
async def keeper_connection(keeper: Keeper, group: str) -> AsyncIterator[KeeperConnection]:
    """A conversation for the length of a block; RangeUnavailable where the site cannot be reached."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(keeper.host, keeper.port)
    except (OSError, TimeoutError) as error:
        raise RangeUnavailable(f"{keeper} cannot be reached ({error}); is it up, and is its port open?") from error
    connection = KeeperConnection(keeper, reader, writer)
    try:
        await connection.greet(group)
        yield connection
    except (OSError, TimeoutError) as error:
        raise RangeUnavailable(f"{keeper} does not answer ({error}); fetch it from another site") from error
    finally:
        writer.close()


def _held(entry: Any) -> Held:
    match entry:
        case [str(service), first, head] if service in ("rto", "rso"):
            return Held(Service(service), cut_of_list(first), cut_of_list(head))
    raise ChannelBroken("what a site says that it holds is not understood")
