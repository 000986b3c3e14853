"""Joining a group from a coroutine."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from os import PathLike

from intergroup_core.api.events import Batch, BatchEvent, Event, Members, Message, Peer
from intergroup_core.api.stream import Stream
from intergroup_core.config import Config
from intergroup_core.errors import ConfigError, LocalProtocolError, MemberEnded
from intergroup_core.ids import Service, format_member, wall_us
from intergroup_core.runtime.clock import now
from intergroup_core.runtime.inbox import Event as Delivered
from intergroup_core.runtime.member import Member
from intergroup_core.runtime.opening import open_live_member
from intergroup_core.wire.records import RecordBatch

_log = logging.getLogger(__name__)

LEAVE_SECONDS = 10.0
"""How long leaving may take before the member is closed anyhow."""
MAX_NAME_BYTES = 255
TURN_NS = 10_000_000
"""A reader that has events at hand gives the loop a turn this often: the same loop runs the protocol."""

_members_here = itertools.count(1)


@asynccontextmanager
async def join(
    group: str,
    *,
    delivery: str = "rto",
    sender: bool = False,
    name: str | None = None,
    config: Config | None = None,
    interface: str | None = None,
    home: str | PathLike[str] | None = None,
    reads: bool = True,
    leave_timeout: float = LEAVE_SECONDS,
) -> AsyncIterator[GroupMember]:
    """Be a member of a group for the length of the block.

    `delivery` is `uu`, `rso` or `rto`. With `sender=True` the block begins when the member is in the group and may
    send; without it the block begins at once, the stream begins when a sender is there, and the first `send` makes
    the member a sender. `name` is what others see beside the random id. `home` (or INTERGROUP_HOME) is the directory
    that gives this site an identity beyond the life of its process. A member with `reads=False` only sends: what the
    group delivers to it is dropped, where else it would wait to be read and hold up the senders.

    The member leaves the group when the block ends, however it ends; that takes `leave_timeout` seconds at most.
    """
    member = GroupMember.opened(
        group,
        delivery=delivery,
        sender=sender,
        name=name,
        config=config,
        interface=interface,
        home=home,
        reads=reads,
        leave_timeout=leave_timeout,
    )
    try:
        if sender:
            await member.joined()
        yield member
    except BaseException:
        await member.abandon()
        raise
    await member.leave()


class GroupMember:
    """A member of a group, on the event loop of those who use it.

    The loop runs the protocol too: code that blocks it for long makes others think that this member has failed.
    """

    def __init__(self, member: Member, *, sender: bool, reads: bool, leave_timeout: float) -> None:
        endpoint = member.endpoint
        self.group: str = endpoint.group
        self.name: str = endpoint.name
        self.delivery: str = endpoint.service.value
        self._member = member
        self._sender = sender
        self._reads = reads
        self._leave_timeout = leave_timeout
        self._stream = Stream(endpoint.group, endpoint.service)
        self._batches: Iterator[BatchEvent] = iter(())
        self._records: Iterator[Message] = iter(())
        self._by_record: bool | None = None
        self._turn_at = 0

    @classmethod
    def opened(
        cls,
        group: str,
        *,
        delivery: str,
        sender: bool,
        name: str | None,
        config: Config | None,
        interface: str | None,
        home: str | PathLike[str] | None,
        reads: bool,
        leave_timeout: float,
    ) -> GroupMember:
        """A member that has begun to join."""
        config = config or Config()
        if interface is not None:
            config = dataclasses.replace(config, network=dataclasses.replace(config.network, interface=interface))
        member = open_live_member(
            group=_checked(group, "a group's name"),
            name=_checked(name, "a member's name") if name is not None else default_name(),
            service=service_of(delivery),
            config=config,
            sender=sender,
            home=home,
            on_event=None if reads else _drop,
        )
        member.start()
        return cls(member, sender=sender, reads=reads, leave_timeout=leave_timeout)

    @property
    def id(self) -> str:
        """The id of this incarnation, 16 hex digits; a gap begins a new one."""
        return format_member(self._member.endpoint.me)

    @property
    def state(self) -> str:
        """Where the membership protocol stands, such as `receiver`, `sender` or `consensus`."""
        return self._member.endpoint.state

    def members(self) -> Members:
        """The senders of the last view and the receivers this member has heard of."""
        endpoint = self._member.endpoint
        view = endpoint.view
        senders: tuple[Peer, ...] = ()
        if view is not None:
            names = itertools.chain(view.names, itertools.repeat(""))
            senders = tuple(_peer(member, name) for member, name in zip(view.members, names, strict=False))
        at = now()
        told = endpoint.told(at)
        return Members(
            group_name=self.group,
            view_id=str(view.id) if view is not None else None,
            senders=senders,
            receivers=tuple(_peer(member, name) for member, name in sorted(endpoint.receivers.items())),
            count=told.members if told is not None else None,
            sites=endpoint.roll(at),
            slowest=told.slowest if told is not None else None,
            behind_s=max(0.0, at.wall / 1e9 - wall_us(told.upto) / 1e6) if told is not None else None,
        )

    async def joined(self) -> None:
        """Until this member has its first view, in which one that joins as a sender is a sender.

        Without any sender in the group there is none.
        """
        await self._member.installed(as_sender=self._sender)

    async def send(self, value: bytes | bytearray | memoryview) -> None:
        """Multicast one record.

        Returns when the queue to the group has it, and waits for room there. Raises MessageTooLarge, NoQuorum where
        the group's quorum forbids sending here, and LocalProtocolError once this member leaves.
        """
        await self._member.send_many([_as_bytes(value)])

    async def send_many(self, values: Iterable[bytes] | RecordBatch) -> None:
        """Multicast several records in this order; all of them are taken, or none and the error says why."""
        if isinstance(values, (bytes, bytearray, memoryview, str)):
            raise LocalProtocolError("send_many takes several records; use send for one")
        records = values if isinstance(values, RecordBatch) else [_as_bytes(value) for value in values]
        await self._member.send_many(records)

    async def flush(self) -> None:
        """Until all that was accepted has been sent; a group that does not keep up is waited for."""
        await self._member.sent()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        """The next record, view or gap; the stream ends when this member has left."""
        self.read_by(record=True)
        await self._give_turn()
        while True:
            for message in self._records:
                return message
            event = await self._next_batch()
            if event is None:
                raise StopAsyncIteration
            if not isinstance(event, Batch):
                return event
            self._records = iter(event.messages())

    async def batches(self) -> AsyncIterator[BatchEvent]:
        """The stream with one object per message, whose records lie end to end: for those who have many."""
        self.read_by(record=False)
        while (event := await self._next_batch()) is not None:
            yield event
            await self._give_turn()

    async def leave(self) -> None:
        """Leave the group: send what was accepted, then go.

        What the group delivers meanwhile can still be read, by another task; one that does not read holds nobody up.
        Raises MemberEnded when it took longer than it may and the member was closed anyhow.
        """
        self._member.begin_to_leave()
        await self._until_left()

    async def abandon(self) -> None:
        """Leave without reading on and without complaints: the block has failed or was cancelled."""
        self._member.inbox.discard()
        try:
            await self.leave()
        except MemberEnded as error:
            _log.warning("%s", error)

    async def fetch(self, most_bytes: int) -> list[Delivered]:
        """What is there to read, waiting for the first; nothing once the stream has ended."""
        await self._member.inbox.wait()
        return self._member.inbox.take_ready(most_bytes)

    def translate(self, delivered: Delivered) -> Iterator[BatchEvent]:
        """The events of something fetched."""
        return self._stream.events(delivered)

    def check_failure(self) -> None:
        """Raise what ended the member by itself, if something did."""
        self._member.check_failure()

    async def _next_batch(self) -> BatchEvent | None:
        while True:
            for event in self._batches:
                return event
            delivered = await self._member.take()
            if delivered is None:
                self.check_failure()
                return None
            self._batches = self.translate(delivered)

    def read_by(self, *, record: bool) -> None:
        """Choose, once, how the stream is read."""
        if not self._reads:
            raise LocalProtocolError("this member only sends: join with reads=True to read from it")
        if self._by_record is None:
            self._by_record = record
        elif self._by_record is not record:
            raise LocalProtocolError("this member is read by record or by batch; choose one of the two")

    async def _give_turn(self) -> None:
        now = time.monotonic_ns()
        if now - self._turn_at > TURN_NS:
            await asyncio.sleep(0)
            self._turn_at = time.monotonic_ns()

    async def _until_left(self) -> None:
        try:
            async with asyncio.timeout(self._leave_timeout):
                await self._member.ended()
        except TimeoutError:
            unsent = self._member.endpoint.unsent_bytes
            rest = f", and {unsent} bytes that were accepted are not sent" if unsent else ""
            raise MemberEnded(
                f"{self.name} went from group {self.group} without being let go within {self._leave_timeout:g} s{rest}"
            ) from None
        finally:
            self._member.close()


def service_of(delivery: str) -> Service:
    try:
        return Service(delivery)
    except ValueError:
        raise ConfigError(f"delivery is {delivery!r}; it must be uu, rso or rto") from None


def default_name() -> str:
    """Host and process, and a number from the second member of a process on."""
    number = next(_members_here)
    base = f"{socket.gethostname()}-{os.getpid()}"
    return base if number == 1 else f"{base}-{number}"


def _checked(name: str, what: str) -> str:
    if not name or len(name.encode()) > MAX_NAME_BYTES or not name.isprintable():
        raise ConfigError(f"{what} is {name[:40]!r}; it must be 1 to {MAX_NAME_BYTES} bytes of printable text")
    return name


def _as_bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)  # the caller may do with its buffer what it likes
    raise TypeError(f"a record is bytes, not {type(value).__name__}: encode it first")


def _peer(member: int, name: str) -> Peer:
    return Peer(name or f"{member:016x}", f"{member:016x}")


def _drop(event: Delivered) -> None:
    """The application of a member that only sends."""
