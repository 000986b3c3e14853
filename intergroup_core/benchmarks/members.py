"""Roles of benchmark processes that are members of a group."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import statistics
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np

from intergroup_core.agent.stream import Stream
from intergroup_core.benchmarks.channel import Fields, parse_line, say
from intergroup_core.benchmarks.loss import LossyListener
from intergroup_core.benchmarks.plain_files import PlainFiles
from intergroup_core.benchmarks.tally import Tally
from intergroup_core.config import Config
from intergroup_core.ids import MemberId, Service, Timestamp, View, ViewId, timestamp_at, wall_us
from intergroup_core.log.writer import Durability, open_log
from intergroup_core.runtime.inbox import Event
from intergroup_core.runtime.listener import Listener
from intergroup_core.runtime.member import Member
from intergroup_core.runtime.member_log import MemberLog
from intergroup_core.runtime.opening import open_live_member, open_member
from intergroup_core.runtime.stream_store import StreamStore
from intergroup_core.wire import native
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.records import LENGTH_BYTES, RecordBatch

_FIRST_ID = 0x1000
_STAMP = struct.Struct("<q")
RETAINED_BYTES = 256 << 20
"""Of a log, so that after the first second it is written where older segments were: to pages that the machine has."""
SAMPLES = 4_096
"""Of how far stability lags, the latest: a list of all would grow for as long as the benchmark sends."""


def _member(task: Fields, on_event: Callable[[Event], None] | None) -> Member:
    """The member a task describes: senders first, then receivers, by number."""
    config = Config()
    config = dataclasses.replace(
        config,
        group=dataclasses.replace(config.group, frame_bytes=task["frame_bytes"]),
        network=dataclasses.replace(config.network, interface=task["interface"], offload=task["offload"]),
        log=dataclasses.replace(config.log, retention_bytes=RETAINED_BYTES),
    )
    if not task.get("compiled", True):
        native.compiled = None
    LossyListener.loss = task.get("loss", 0.0)
    if task.get("live"):
        return open_live_member(
            group=task["group"],
            name=f"member-{task['number']}",
            service=Service(task["service"]),
            # A hierarchy of its own, whatever else runs on this network.
            config=dataclasses.replace(config, hierarchy=dataclasses.replace(config.hierarchy, name=task["group"])),
            sender=task["sends"],
            on_event=on_event,
        )
    if task.get("keeps") == "log":
        return _logged_member(task, config, on_event)
    if task.get("keeps") == "files" and on_event is not None:
        files = PlainFiles(Path(task["directory"]), str(task["number"]), config.log.segment_bytes, RETAINED_BYTES)

        def write_first(event: Event) -> None:
            files.add(event)
            on_event(event)

        return _fixed_member(task, config, write_first)
    return _fixed_member(task, config, on_event)


def _fixed_member(
    task: Fields,
    config: Config,
    on_event: Callable[[Event], None] | None,
    log: MemberLog | None = None,
    on_closed: Callable[[], None] | None = None,
) -> Member:
    ids = [MemberId(_FIRST_ID + number) for number in range(task["senders"] + task["receivers"])]
    senders = tuple(ids[: task["senders"]])
    return open_member(
        group=task["group"],
        name=f"member-{task['number']}",
        me=ids[task["number"]],
        view=View(id=ViewId(Timestamp(task["view_start"]), senders[0], 1), members=senders),
        counted=frozenset(ids),
        service=Service(task["service"]),
        config=config,
        on_event=on_event,
        on_closed=on_closed,
        listen=LossyListener if LossyListener.loss else Listener,
        log=log,
    )


def _logged_member(task: Fields, config: Config, on_event: Callable[[Event], None] | None) -> Member:
    """With the log that an agent keeps, its oldest segments removed as an agent does; only the channel is not there."""
    service = Service(task["service"])
    store = StreamStore(Path(task["directory"]) / str(task["number"]))
    disk = store.create_part(task["group"], service, timestamp_at(time.time_ns()))
    writer = open_log(
        disk, durability=Durability[config.log.durability.upper()], segment_bytes=config.log.segment_bytes
    )

    def with_log(log: MemberLog, closed: Callable[[], None]) -> Member:
        return _fixed_member(task, config, on_event, log, closed)

    return Stream(
        group=task["group"], service=service, config=config, disk=disk, writer=writer, open_member=with_log
    ).member


class _Orders:
    """What the benchmark says to this process."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    @classmethod
    async def listen(cls) -> _Orders:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        return cls(reader)

    async def next(self) -> Fields:
        line = await self._reader.readline()
        if not line:
            sys.exit(0)
        return parse_line(line)


def _say_result(member: Member, **fields: object) -> None:
    counters = dataclasses.asdict(member.endpoint.counters)
    say(
        kind="result",
        counters=counters,
        cpu_seconds=time.process_time(),
        buffered=member.endpoint.buffered_bytes,
        **fields,
    )


def flood(task: Fields) -> None:
    """Receive everything and, if the task says so, send as fast as the group takes it."""
    asyncio.run(_flood(task))


async def _flood(task: Fields) -> None:
    orders = await _Orders.listen()
    tally = Tally(digest=task["digest"])
    async with _member(task, tally.add if task["reads"] else _ignore) as member:
        if task.get("live"):
            await member.installed(as_sender=task["sends"])
        say(kind="ready")
        begin = (await orders.next())["at"]
        end = begin + round(task["seconds"] * 1e9)
        tally.watch(begin + round(task["warm_up"] * 1e9), end)
        if task["sends"]:
            say(kind="sent", **await _send_until(member, task, end))
        expected = (await orders.next())["records"]
        while task["reads"] and tally.records < expected:
            await asyncio.sleep(0.01)
        _say_result(
            member,
            order=tally.order,
            most_buffered=member.endpoint.most_buffered_bytes,
            **tally.sums(),
            **tally.growth(),
        )
        await orders.next()


def _ignore(event: Event) -> None:
    """The application of a member that only sends."""


async def _send_until(member: Member, task: Fields, end: int) -> Fields:
    size = task["record_bytes"]
    count = max(1, Config().send.bundle_bytes // (size + LENGTH_BYTES))
    records = [bytes([(number * 37 + task["number"]) % 256]) * size for number in range(count)]
    given = _batch(records) if task["batches"] else records
    rounds = 0
    behind_us: deque[float] = deque(maxlen=SAMPLES)
    while time.monotonic_ns() < end:
        await member.send_many(given)
        rounds += 1
        behind_us.append(time.time_ns() / 1_000 - wall_us(member.endpoint.stable))
    firsts = sum(record[0] for record in records)
    return {
        "records": rounds * count,
        "bytes": rounds * count * size,
        "first_bytes": rounds * firsts,
        "stability_ms": statistics.median(behind_us) / 1_000,
    }


def _batch(records: list[bytes]) -> RecordBatch:
    """The records end to end, as an Arrow column has them."""
    offsets = np.cumsum([0, *map(len, records)], dtype=np.int64)
    return RecordBatch(offsets, np.frombuffer(b"".join(records), dtype=np.uint8))


def stamp(task: Fields) -> None:
    """Member 0 sends records that carry the time; every member notes how long each took to be delivered to it."""
    asyncio.run(_stamp(task))


async def _stamp(task: Fields) -> None:
    orders = await _Orders.listen()
    delays: list[float] = []

    def note(event: Event) -> None:
        at = time.monotonic_ns()
        if isinstance(event, Chunk):
            for message in event.messages():
                delays.extend((at - _STAMP.unpack_from(record)[0]) / 1_000 for record in message.records())

    async with _member(task, note) as member:
        say(kind="ready")
        await orders.next()
        if task["number"] == 0:
            gaps = Random(1)  # even gaps would fall into step with timers
            for _ in range(task["count"]):
                member.send([_STAMP.pack(time.monotonic_ns()).ljust(task["record_bytes"], b"\0")])
                await asyncio.sleep(gaps.uniform(0.5, 1.5) * task["gap_ms"] / 1_000)
            say(kind="sent")
        await orders.next()
        while len(delays) < task["count"]:
            await asyncio.sleep(0.01)
        _say_result(member, microseconds=delays)
        await orders.next()


def stall(task: Fields) -> None:
    """A receiver that reads from its inbox, stops reading when told, and goes on when told."""
    asyncio.run(_stall(task))


async def _stall(task: Fields) -> None:
    orders = await _Orders.listen()
    tally = Tally(digest=False)
    reading = asyncio.Event()
    reading.set()

    async def read(member: Member) -> None:
        while (event := await member.take()) is not None:
            tally.add(event)
            del event
            await reading.wait()

    async with _member(task, None) as member:
        reader = asyncio.create_task(read(member))
        say(kind="ready")
        while (order := await orders.next())["kind"] != "expect":
            if order["kind"] == "stop":
                reading.clear()
            elif order["kind"] == "read":
                reading.set()
            say(kind="noted", waiting=member.inbox.bytes, **tally.sums())
        while tally.records < order["records"]:
            await asyncio.sleep(0.01)
        _say_result(member, most_waiting=member.inbox.most_bytes, **tally.sums())
        await orders.next()
        reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reader
