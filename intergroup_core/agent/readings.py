"""What one client reads: how far it is in each stream, and how to go on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from intergroup_core.agent.history import Live
from intergroup_core.agent.levels import read_level_of
from intergroup_core.agent.reading import Reading
from intergroup_core.agent.requests import slow_reader_of
from intergroup_core.agent.stream import Stream
from intergroup_core.agent.streams import Streams
from intergroup_core.client.following import EARLIEST, listed_bound
from intergroup_core.client.names import service_of
from intergroup_core.errors import ChannelBroken, ConfigError, LocalProtocolError
from intergroup_core.ids import Service, format_member
from intergroup_core.log.cut import EntryCut
from intergroup_core.log.cut_codec import cut_of_list, listed_cut

T = TypeVar("T")

MAX_READINGS = 1_000
MAX_WAIT_SECONDS = 60.0
"""How long a question for news may stay open."""


class Readings:
    """The readers of one session, by the number of the request that began each."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._readings: dict[int, tuple[Stream, Reading]] = {}
        self._asking: dict[int, set[asyncio.Task[Any]]] = {}
        """What is being looked for at other sites, for whom."""

    def close(self, number: int) -> int | None:
        """End a reader; up to where the log is kept, None where there is no such reader."""
        if number not in self._readings:
            return None
        stream, reading = self._readings.pop(number)
        stream.end_reading(reading)
        for task in self._asking.pop(number, ()):
            task.cancel()
        return stream.log.kept

    def end(self) -> None:
        for number in list(self._readings):
            self.close(number)

    def subscribe(self, pid: int, number: int, body: Any) -> Any:
        match body:
            case [str(group), str(delivery), str(policy), bool(latest)]:
                if len(self._readings) >= MAX_READINGS:
                    raise LocalProtocolError(f"this client reads {MAX_READINGS} streams; close one first")
                stream = self._streams.there(group, service_of(delivery))
                if not latest and stream.service is Service.UU:
                    raise ConfigError(
                        "what uu delivered is in no order to start in; start at the latest, or use rto or rso"
                    )
                reading = stream.read(pid, slow_reader_of(policy), latest=latest)
                self._readings[number] = stream, reading
                return {"handle": number, "path": str(stream.directory), "entry": reading.entry}
        raise ChannelBroken(f"a request to read is not understood: {body!r:.100}")

    async def next(self, body: Any) -> Any:
        match body:
            case [int(number), int(entry)] if number in self._readings:
                stream, reading = self._readings[number]
                skips = reading.skips
                await stream.next(reading, entry)
                failure = stream.member.failure
                return {
                    "entry": reading.entry,
                    "stop": stream.log.kept,
                    "skipped": reading.skips > skips,
                    "ended": stream.ended or number not in self._readings,
                    "failure": str(failure) if failure is not None else None,
                    "id": format_member(stream.member.endpoint.me),
                }
        raise ChannelBroken(f"a reader did not say how far it is: {body!r:.100}")

    async def plan(self, body: Any) -> Any:
        match body:
            case [int(number), level, known, int() | float() as seconds] if number in self._readings:
                stream, _ = self._readings[number]
                wanted = read_level_of(level)
                other_than = cut_of_list(known) if known is not None else None
                head = await stream.next_head(wanted, other_than, min(float(seconds), MAX_WAIT_SECONDS))
                return {
                    "head": listed_cut(head) if head is not None else None,
                    "upto": stream.heads.upto(wanted),
                    "waits_for": stream.waits_for(wanted),
                    "ended": stream.ended,
                }
        raise ChannelBroken(f"a request to plan is not understood: {body!r:.100}")

    def hold(self, body: Any) -> None:
        match body:
            case [int(number), int(entry)] if number in self._readings:
                stream, reading = self._readings[number]
                stream.hold(reading, entry)
                return
        raise ChannelBroken(f"a reader did not say what it holds: {body!r:.100}")

    async def earliest(self, body: Any) -> Any:
        match body:
            case [int(number)] if number in self._readings:
                cut = await self._streams.history(self._readings[number][0]).earliest()
                return listed_cut(cut) if cut is not None else None
        raise ChannelBroken(f"a request for the earliest cut is not understood: {body!r:.100}")

    async def keepers(self, body: Any) -> Any:
        match body:
            case [str(group), str(delivery)]:
                stream = self._streams.there(group, service_of(delivery))
                keepers = self._streams.keepers
                own = keepers.own(stream.group)
                found = await keepers.find(stream.group, stream.config)
                return [[keeper.name, keeper.host, keeper.port, keeper.token] for keeper in (*own, *found)]
        raise ChannelBroken(f"a request for keepers is not understood: {body!r:.100}")

    async def fill(self, body: Any) -> Any:
        match body:
            case [int(number), start, stop] if number in self._readings:
                begin, end = cut_of_list(start), cut_of_list(stop)
                if isinstance(begin, EntryCut) or isinstance(end, EntryCut):
                    raise ConfigError("a log of uu is nowhere else; there is nothing to fill it with")
                history = self._streams.history(self._readings[number][0])
                filled, refused = await self._while_read(number, history.fill(begin, end))
                return {"filled": filled, "refused": refused}
        raise ChannelBroken(f"a request to fill a log is not understood: {body!r:.100}")

    async def _while_read(self, number: int, question: Coroutine[Any, Any, T]) -> T:
        """An answer that may take for ever, as long as there is somebody to hear it."""
        task = asyncio.create_task(question)
        asking = self._asking.setdefault(number, set())
        asking.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            asker = asyncio.current_task()
            if number in self._readings or (asker is not None and asker.cancelling()):
                raise
            raise LocalProtocolError("the reader that asked this was closed; open another one") from None
        finally:
            asking.discard(task)

    async def history(self, body: Any) -> Any:
        match body:
            case [int(number), where] if number in self._readings:
                stream, reading = self._readings[number]
                history = self._streams.history(stream)
                earliest = where == EARLIEST
                cut = await self._while_read(number, history.earliest()) if earliest else cut_of_list(where)
                if cut is None or isinstance(cut, EntryCut):
                    return {"live": reading.entry}
                step = await self._while_read(number, history.behind(cut))
                if isinstance(step, Live):
                    return {"live": step.entry}
                return {
                    "path": str(step.path),
                    "start": listed_bound(step.start),
                    "stop": listed_bound(step.stop),
                    "reached": listed_cut(step.reached),
                }
        raise ChannelBroken(f"a reader did not say from where: {body!r:.100}")
