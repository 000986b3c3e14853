"""Builders for members on real sockets: groups on loopback, whose names nobody else uses."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any

from intergroup_core.config import Config
from intergroup_core.effects import Install
from intergroup_core.ids import MemberId, Service, View, ViewId, timestamp_at
from intergroup_core.runtime.inbox import Event
from intergroup_core.runtime.listener import Listener
from intergroup_core.runtime.member import Member
from intergroup_core.runtime.opening import open_member
from intergroup_core.wire.chunk import Chunk
from tests.builders import a_config

PATIENCE_SECONDS = 30.0
"""A test that waits longer for something has failed; none waits for time to pass."""

_serial = count()


def a_group_name() -> str:
    return f"test-{os.getpid()}-{next(_serial)}"


def loopback(**sections: Any) -> Config:
    network = {"interface": "lo"} | sections.pop("network", {})
    return a_config("lan", network=network, **sections)


@dataclasses.dataclass(slots=True)
class Seen:
    """What an application saw of one member, in order."""

    records: list[tuple[MemberId, int, bytes]] = dataclasses.field(default_factory=list)
    views: list[View] = dataclasses.field(default_factory=list)

    def add(self, event: Event) -> None:
        if isinstance(event, Chunk):
            for message in event.messages():
                self.records += [(message.source, message.seq, record) for record in message.records()]
        elif isinstance(event, Install):
            self.views.append(event.view)

    def of(self, source: MemberId) -> list[bytes]:
        return [record for sender, _, record in self.records if sender == source]


class Group:
    """Members of one group in this process, each with its own sockets."""

    def __init__(self, senders: int, receivers: int) -> None:
        self.ids = [MemberId(0xA0 + number) for number in range(senders + receivers)]
        self.members: list[Member] = []
        self.seen = [Seen() for _ in self.ids]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let the loop run until something holds."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                await asyncio.sleep(0.001)

    async def until_all_have(self, records: int) -> None:
        await self.until(lambda: all(len(seen.records) >= records for seen in self.seen))


@asynccontextmanager
async def a_group(
    senders: int,
    receivers: int = 0,
    *,
    config: Config | None = None,
    services: Sequence[Service] = (),
    inboxes: Sequence[int] = (),
    listen: type[Listener] = Listener,
) -> AsyncIterator[Group]:
    """A group whose members hand deliveries to their `seen`; those numbered in `inboxes` wait to be read instead."""
    group, name = Group(senders, receivers), a_group_name()
    view = View(id=ViewId(timestamp_at(time.time_ns()), group.ids[0], 1), members=tuple(group.ids[:senders]))
    async with AsyncExitStack() as stack:
        for number, me in enumerate(group.ids):
            member = open_member(
                group=name,
                name=f"m{number}",
                me=me,
                view=view,
                counted=frozenset(group.ids),
                service=services[number] if services else Service.RTO,
                config=config or loopback(),
                on_event=None if number in inboxes else group.seen[number].add,
                listen=listen,
            )
            group.members.append(member)
            await stack.enter_async_context(member)
        yield group
