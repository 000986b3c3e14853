"""Joining a group from a script or a notebook: the member runs on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeVar

from intergroup_core.api.events import Batch, BatchEvent, Event, Members, Message
from intergroup_core.api.joining import LEAVE_SECONDS, GroupMember
from intergroup_core.config import Config
from intergroup_core.errors import LocalProtocolError
from intergroup_core.runtime.inbox import Event as Delivered
from intergroup_core.wire.records import RecordBatch

FETCH_BYTES = 1_000_000
"""About what is taken from the member's thread at a time."""

_Result = TypeVar("_Result")


def open(  # noqa: A001 it is read as ig.open
    group: str,
    *,
    delivery: str = "rto",
    sender: bool = False,
    name: str | None = None,
    config: Config | None = None,
    interface: str | None = None,
    home: str | PathLike[str] | None = None,
    reads: bool = True,
    timeout: float | None = None,
    leave_timeout: float = LEAVE_SECONDS,
) -> BlockingMember:
    """Be a member of a group until it is closed: `join` for code without an event loop.

    The parameters are those of `join`. `timeout` limits, in seconds, how long a sender may wait until it is in the
    group; TimeoutError is raised then. Use the result in a `with` block, or close it; at the end of the program it
    leaves by itself.
    """
    thread = _LoopThread(group)
    try:
        member = thread.run(
            _opened(
                group,
                delivery=delivery,
                sender=sender,
                name=name,
                config=config,
                interface=interface,
                home=home,
                reads=reads,
                leave_timeout=leave_timeout,
                timeout=timeout,
            )
        )
    except BaseException:
        thread.stop()
        raise
    return BlockingMember(member, thread)


async def _opened(group: str, *, timeout: float | None, sender: bool, **options: Any) -> GroupMember:
    member = GroupMember.opened(group, sender=sender, **options)
    try:
        if sender:
            async with asyncio.timeout(timeout):
                await member.joined()
    except BaseException:
        await member.abandon()
        raise
    return member


class BlockingMember:
    """A member of a group for one thread at a time; another thread may send while one reads."""

    def __init__(self, member: GroupMember, thread: _LoopThread) -> None:
        self._member = member
        self._thread = thread
        self._fetched: deque[Delivered] = deque()
        self._batches: Iterator[BatchEvent] = iter(())
        self._records: Iterator[Message] = iter(())
        # Not self.close: that would keep this object from ever being collected.
        self._finalizer = weakref.finalize(self, _end, member, thread)

    @property
    def group(self) -> str:
        return self._member.group

    @property
    def name(self) -> str:
        return self._member.name

    @property
    def delivery(self) -> str:
        return self._member.delivery

    @property
    def id(self) -> str:
        """The id of this incarnation, 16 hex digits; a gap begins a new one."""
        return self._member.id

    @property
    def state(self) -> str:
        """Where the membership protocol stands."""
        return self._member.state

    def members(self) -> Members:
        """The senders of the last view and the receivers this member has heard of."""
        return self._thread.run(_called(self._member.members))

    def joined(self, timeout: float | None = None) -> None:
        """Wait for the first view; TimeoutError after `timeout` seconds."""
        self._thread.run(_within(timeout, self._member.joined()))

    def send(self, value: bytes | bytearray | memoryview) -> None:
        """Multicast one record; see GroupMember.send."""
        self._thread.run(self._member.send(value))

    def send_many(self, values: Iterable[bytes] | RecordBatch) -> None:
        """Multicast several records in this order; all of them are taken, or none and the error says why."""
        self._thread.run(self._member.send_many(values))

    def flush(self) -> None:
        """Wait until all that was accepted has been sent."""
        self._thread.run(self._member.flush())

    def read(self, timeout: float | None = None) -> Event | None:
        """The next record, view or gap; None once this member has left.

        TimeoutError after `timeout` seconds without one; the next call goes on where this one stopped.
        """
        self._member.read_by(record=True)
        while True:
            for message in self._records:
                return message
            event = self._next_batch(timeout)
            if not isinstance(event, Batch):
                return event
            self._records = iter(event.messages())

    def __iter__(self) -> Iterator[Event]:
        while (event := self.read()) is not None:
            yield event

    def batches(self) -> Iterator[BatchEvent]:
        """The stream with one object per message, whose records lie end to end."""
        self._member.read_by(record=False)
        while (event := self._next_batch(None)) is not None:
            yield event

    def leave(self) -> None:
        """Leave the group: send what was accepted, then go. What was delivered before can still be read."""
        self._thread.run(self._member.leave())

    def close(self) -> None:
        """Leave the group if that has not happened, and end the thread."""
        if self._finalizer.detach() is not None:
            try:
                self._thread.run(self._member.leave())
            finally:
                self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._finalizer()

    def _next_batch(self, timeout: float | None) -> BatchEvent | None:
        while True:
            for event in self._batches:
                return event
            if not self._fetched and self._thread.running:
                # Into the queue and not as a result: what an interrupt keeps from being returned is not lost.
                self._thread.run(self._fetch(timeout))
            if not self._fetched:
                self._member.check_failure()
                return None
            self._batches = self._member.translate(self._fetched.popleft())

    async def _fetch(self, timeout: float | None) -> None:
        async with asyncio.timeout(timeout):
            self._fetched.extend(await self._member.fetch(FETCH_BYTES))


async def _called(function: Callable[[], _Result]) -> _Result:
    return function()


async def _within(timeout: float | None, wanted: Coroutine[Any, Any, _Result]) -> _Result:
    async with asyncio.timeout(timeout):
        return await wanted


def _end(member: GroupMember, thread: _LoopThread) -> None:
    try:
        thread.run(member.abandon())
    finally:
        thread.stop()


class _LoopThread:
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
