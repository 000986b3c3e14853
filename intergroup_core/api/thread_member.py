"""A member in this process for code without an event loop: it runs on one in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from os import PathLike
from typing import Any, TypeVar

from intergroup_core.api.own_member import OwnMember
from intergroup_core.config import Config
from intergroup_core.errors import LocalProtocolError
from intergroup_core.ids import Service
from intergroup_core.log.cut import Cut
from intergroup_core.runtime.inbox import Event as Delivered
from intergroup_core.wire.records import RecordBatch

_Result = TypeVar("_Result")


class ThreadMember:
    """What `ClientMember` is for a member of the agent's."""

    def __init__(
        self,
        group: str,
        *,
        service: Service,
        sender: bool,
        name: str,
        config: Config,
        home: str | PathLike[str] | None,
        reads: bool,
    ) -> None:
        self._thread = LoopThread(group)
        try:
            self._member = self._thread.run(
                _made(group, service=service, sender=sender, name=name, config=config, home=home, reads=reads)
            )
        except BaseException:
            self._thread.stop()
            raise
        self.group, self.name, self.delivery = group, name, service.value
        self._fetched: list[Delivered] = []

    @property
    def id(self) -> str:
        return self._member.id

    @property
    def state(self) -> str:
        return self._member.state

    def joined(self, timeout: float | None = None) -> None:
        self._thread.run(_within(timeout, self._member.joined()))

    def members(self) -> Mapping[str, Any]:
        return self._thread.run(self._member.members())

    def send_many(self, records: Sequence[bytes] | RecordBatch, ack: str = "taken") -> None:
        self._thread.run(self._member.send_many(records, ack))

    def flush(self, ack: str = "sent") -> None:
        self._thread.run(self._member.flush(ack))

    def commit(self, subscription: str, cut: Cut) -> None:
        self._thread.run(self._member.commit(subscription, cut))

    def fetch(self, most_bytes: int, timeout: float | None = None) -> list[Delivered]:
        """What is there to read; nothing once the stream has ended and was read."""
        if self._thread.running:
            # Into the queue and not as a result: what an interrupt keeps from being returned is not lost.
            self._thread.run(_within(timeout, self._fetch(most_bytes)))
        fetched, self._fetched = self._fetched, []
        return fetched or self._rest(most_bytes)

    async def _fetch(self, most_bytes: int) -> None:
        if not self._fetched:
            self._fetched += await self._member.fetch(most_bytes)

    def _rest(self, most_bytes: int) -> list[Delivered]:
        """What was delivered and not read when the thread ended."""
        return self._member.member.inbox.take_ready(most_bytes) if not self._thread.running else []

    def check_failure(self) -> None:
        self._member.check_failure()

    def leave(self, seconds: float) -> None:
        self._thread.run(self._member.leave(seconds))

    def abandon(self, seconds: float) -> None:
        """Leave without reading on."""
        try:
            self._thread.run(_abandoned(self._member, seconds))
        finally:
            self.close()

    def close(self) -> None:
        self._thread.stop()


async def _made(group: str, **options: Any) -> OwnMember:
    return OwnMember(group, **options)


async def _abandoned(member: OwnMember, seconds: float) -> None:
    member.discard()
    await member.leave(seconds)


async def _within(timeout: float | None, wanted: Coroutine[Any, Any, _Result]) -> _Result:
    async with asyncio.timeout(timeout):
        return await wanted


class LoopThread:
    """An event loop in a daemon thread: it must not keep a program that forgot to close its member."""

    def __init__(self, group: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name=f"intergroup {group}", daemon=True)
        self._thread.start()

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def run(self, wanted: Coroutine[Any, Any, _Result]) -> _Result:
        """The result of a coroutine run there; an interrupt here cancels it."""
        if not self.running:
            wanted.close()
            raise LocalProtocolError("this member is closed; open another one")
        future = asyncio.run_coroutine_threadsafe(wanted, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the loop after what still runs there, such as a member that leaves because it was interrupted."""
        if self.running:
            try:
                self.run(_others_done())
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()


async def _others_done() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)
