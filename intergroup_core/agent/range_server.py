"""Serves what this site's logs hold to other sites: a TCP listener for those who know a group's token."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
from collections.abc import Callable
from typing import Any

from intergroup_core.client.channel import VERSION, Decoder, Kind, Said, encode, encode_failure
from intergroup_core.errors import ChannelBroken, ConfigError, IntergroupError, RangeUnavailable
from intergroup_core.ids import Service
from intergroup_core.log.cut import EntryCut, OrderCut
from intergroup_core.log.cut_codec import cut_of_list, listed_cut
from intergroup_core.log.ordered_sources import OrderedSources, holder_of
from intergroup_core.log.range_order import RangeCut
from intergroup_core.log.stream import StreamReader
from intergroup_core.log.transfer import RangeSource
from intergroup_core.runtime.stream_store import StreamStore
from intergroup_core.transaction.replay import ledger_at

_log = logging.getLogger(__name__)

READ_BYTES = 1 << 16
MAX_VISITORS = 64
"""Connections at a time; further ones are closed at once."""
QUIET_SECONDS = 60.0
"""A visitor that says nothing for so long is let go."""


def may_listen(address: str) -> bool:
    """Whether an address is one that only a private network reaches; on others nothing is served unprotected."""
    found = ipaddress.ip_address(address)
    return found.is_private or found.is_loopback or found.is_link_local


class RangeServer:
    """Answers which streams there are and sends ranges of them, one visitor beside another."""

    def __init__(self, store: StreamStore, token_of: Callable[[str], bytes]) -> None:
        self._store = store
        self._token_of = token_of
        self._server: asyncio.Server | None = None
        self._visits: set[asyncio.Task[None]] = set()
        self.served_bytes = 0

    async def listen(self, address: str, port: int = 0) -> int:
        """The port: the one asked for, or any that is free where somebody else has that."""
        try:
            self._server = await asyncio.start_server(self._meet, host=address, port=port)
        except OSError:
            if not port:
                raise
            self._server = await asyncio.start_server(self._meet, host=address, port=0)
        got: int = self._server.sockets[0].getsockname()[1]
        return got

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for visit in self._visits:
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._visits) >= MAX_VISITORS:
            writer.close()
            return
        visit = asyncio.create_task(self._converse(reader, writer))
        self._visits.add(visit)
        visit.add_done_callback(self._visits.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        decoder = Decoder()
        group: str | None = None
        try:
            while True:
                async with asyncio.timeout(QUIET_SECONDS):
                    data = await reader.read(READ_BYTES)
                if not data:
                    return
                for said in decoder.feed(data):
                    if group is None:
                        group = self._admitted(said)
                        writer.write(encode(Kind.ANSWER, said.number, VERSION))
                    else:
                        await self._answer(group, said, writer)
        except (ChannelBroken, ConfigError, OSError, TimeoutError) as error:
            _log.info("a visitor from %s is let go: %s", writer.get_extra_info("peername"), error)
        finally:
            writer.close()

    def _admitted(self, said: Said) -> str:
        """The group whose token a visitor shows; nothing else is said to one who has none."""
        match said:
            case Said(Kind.HELLO, _, [int(version), str(group), bytes(token)]) if version == VERSION:
                if hmac.compare_digest(token, self._token_of(group)):
                    return group
        raise ChannelBroken("it has no token")

    async def _answer(self, group: str, said: Said, writer: asyncio.StreamWriter) -> None:
        try:
            match said:
                case Said(Kind.STREAMS, number, _):
                    writer.write(encode(Kind.ANSWER, number, await asyncio.to_thread(self._streams, group)))
                case Said(Kind.FETCH, number, [str(service), start, stop]):
                    await self._send_range(group, Service(service), start, stop, number, writer)
                    writer.write(encode(Kind.ANSWER, number, None))
                case _:
                    raise ChannelBroken("a request that is not known")
        except ValueError:
            raise ChannelBroken("a request for no service") from None
        except ChannelBroken:
            raise
        except IntergroupError as error:
            writer.write(encode_failure(said.number, error))
        await writer.drain()

    def _streams(self, group: str) -> list[Any]:
        """Service, first and last cut of what there is of a group; by `rso` also what lies in logs of `rto`."""
        ordered = self._store.parts(group, Service.RTO)
        order = StreamReader(ordered)
        by_source = StreamReader(self._store.parts(group, Service.RSO))
        held = ((Service.RTO, order), (Service.RSO, by_source), (Service.RSO, OrderedSources(ordered, order)))
        found = []
        for service, reader in held:
            first, head = reader.first(), reader.head()
            if first is not None and head is not None:
                found.append([service.value, listed_cut(first), listed_cut(head)])
        return found

    def _holder(self, group: str, service: Service, start: RangeCut, stop: RangeCut) -> StreamReader:
        own = StreamReader(self._store.parts(group, service))
        if service is not Service.RSO:
            return own
        return holder_of([own, OrderedSources(self._store.parts(group, Service.RTO))], start, stop)

    async def _send_range(
        self, group: str, service: Service, start: Any, stop: Any, number: int, writer: asyncio.StreamWriter
    ) -> None:
        begin, end = cut_of_list(start), cut_of_list(stop)
        if isinstance(begin, EntryCut) or isinstance(end, EntryCut):
            raise RangeUnavailable("a log of uu is read where it was made")
        reader = await asyncio.to_thread(self._holder, group, service, begin, end)
        stated = b""
        if isinstance(reader, StreamReader) and isinstance(begin, OrderCut):
            stated = await asyncio.to_thread(_stated, reader, begin)
        blocks = iter(RangeSource(reader, begin, end, stated))
        # In a thread: what is old has to come from the disk, and the members here must not wait for that.
        while (block := await asyncio.to_thread(next, blocks, None)) is not None:
            writer.write(encode(Kind.BLOCK, number, block))
            self.served_bytes += len(block)
            await writer.drain()


def _stated(reader: StreamReader, cut: OrderCut) -> bytes:
    """What was stated up to a cut; whoever takes a range from there has nothing before it."""
    return ledger_at(reader, cut).checkpoint()
