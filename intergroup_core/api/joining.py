"""Joining a group from a coroutine."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from os import PathLike
from typing import Any, Protocol

from intergroup_core.api.arguments import as_bytes, as_records, checked, default_name
from intergroup_core.api.events import Batch, BatchEvent, Event, Members, Message
from intergroup_core.api.own_member import OwnMember
from intergroup_core.api.progress import Progress
from intergroup_core.api.stream import Stream
from intergroup_core.api.transaction import ACK, ACK_SECONDS, TIMEOUT_S, WITHOUT_AGENT, Terms, Transaction
from intergroup_core.client.async_member import AsyncClientMember
from intergroup_core.config import Config
from intergroup_core.errors import ConfigError, IntergroupError, LocalProtocolError
from intergroup_core.ids import Service
from intergroup_core.log.cut import Cut
from intergroup_core.runtime.inbox import Event as Delivered
from intergroup_core.wire.records import RecordBatch

_log = logging.getLogger(__name__)

LEAVE_SECONDS = 10.0
"""How long leaving may take before the member is closed anyhow."""
TURN_NS = 10_000_000
"""A reader that has events at hand gives the loop a turn this often: the same loop may run the protocol."""
FETCH_BYTES = 1_000_000
"""About what is taken from the member at a time."""


class Seat(Protocol):
    """What a member does for its application, in this process or in the site's agent."""

    group: str
    name: str
    delivery: str

    @property
    def id(self) -> str: ...

    @property
    def state(self) -> str: ...

    async def joined(self) -> None: ...

    async def members(self) -> Mapping[str, Any]: ...

    async def send_many(self, records: Sequence[bytes] | RecordBatch, ack: str = "taken") -> None: ...

    async def flush(self, ack: str = "sent") -> None: ...

    async def fetch(self, most_bytes: int) -> list[Delivered]: ...

    async def commit(self, subscription: str, cut: Cut) -> None: ...

    def check_failure(self) -> None: ...

    def discard(self) -> None: ...

    async def leave(self, seconds: float) -> None: ...


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
    start: str = "latest",
    subscription: str | None = None,
    in_process: bool = False,
    leave_timeout: float = LEAVE_SECONDS,
) -> AsyncIterator[GroupMember]:
    """Be a member of a group for the length of the block.

    `delivery` is `uu`, `rso` or `rto`. With `sender=True` the block begins when the member is in the group and may
    send; without it the block begins at once, the stream begins when a sender is there, and the first `send` makes
    the member a sender. `name` is what others see beside the random id. A member with `reads=False` only sends: what
    the group delivers to it is dropped, where else it would wait to be read.

    `start` is `latest`, `earliest` (all that any site still has in its log comes first) or a cut as JSON. A named
    `subscription` remembers how far its readers have come: one that was committed goes on from there, whatever `start`
    says, and the logs that have what comes next are held for it, within their limits.

    The member is run by the site's agent, which is started where none is there; it keeps what is delivered in its log,
    and those at the site who join the same group share it. `home` (or INTERGROUP_HOME) is the directory of another
    site than this machine's. With `in_process=True` the member lives in this process, and nothing is kept.

    The member leaves the group when the block ends, however it ends; that takes `leave_timeout` seconds at most.
    """
    member = await GroupMember.opened(
        group,
        delivery=delivery,
        sender=sender,
        name=name,
        config=config,
        interface=interface,
        home=home,
        reads=reads,
        start=start,
        subscription=subscription,
        in_process=in_process,
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
    """A member of a group, for the tasks of one event loop.

    With `in_process=True` the loop runs the protocol too: code that blocks it for long makes others think that this
    member has failed.
    """

    def __init__(
        self,
        seat: Seat,
        *,
        reads: bool,
        leave_timeout: float,
        subscription: str | None = None,
        start: Cut | str | None = None,
    ) -> None:
        self.group: str = seat.group
        self.name: str = seat.name
        self.delivery: str = seat.delivery
        self._seat = seat
        self._reads = reads
        self._leave_timeout = leave_timeout
        self._stream = Stream(seat.group, Service(seat.delivery))
        self._fetched: deque[Delivered] = deque()
        self._batches: Iterator[BatchEvent] = iter(())
        self._records: Iterator[tuple[Message, bool]] = iter(())
        self._by_record: bool | None = None
        self._subscription = subscription
        self._progress = Progress(Service(seat.delivery), start)
        self._turn_at = 0

    @classmethod
    async def opened(
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
        start: str,
        subscription: str | None,
        in_process: bool,
        leave_timeout: float,
    ) -> GroupMember:
        """A member that has begun to join."""
        wanted = checked(group, delivery, name, config, interface, start=start, in_process=in_process)
        if subscription is not None and in_process:
            raise ConfigError("a member without a log has no subscriptions: leave out in_process=True")
        seat: Seat
        if in_process:
            seat = OwnMember(
                group,
                service=wanted.service,
                sender=sender,
                name=name if name is not None else default_name(),
                config=wanted.config,
                home=home,
                reads=reads,
            )
        else:
            seat = await AsyncClientMember.opened(
                group,
                delivery=delivery,
                sender=sender,
                name=name,
                config=wanted.config,
                home=home,
                reads=reads,
                start=wanted.start,
                subscription=subscription,
            )
        return cls(seat, reads=reads, leave_timeout=leave_timeout, subscription=subscription, start=wanted.start)

    @property
    def id(self) -> str:
        """The id of this incarnation, 16 hex digits; a gap begins a new one."""
        return self._seat.id

    @property
    def state(self) -> str:
        """Where the membership protocol stood when last heard of, such as `receiver`, `sender` or `consensus`."""
        return self._seat.state

    async def members(self) -> Members:
        """The senders of the last view and the receivers this member has heard of."""
        return Members.of(self.group, await self._seat.members())

    async def joined(self) -> None:
        """Until this member has its first view, in which one that joins as a sender is a sender.

        Without any sender in the group there is none.
        """
        await self._seat.joined()

    async def send(self, value: bytes | bytearray | memoryview, *, ack: str = "taken") -> None:
        """Multicast one record.

        Returns when the queue to the group has it, and waits for room there; with `ack="sent"` when it left this site,
        with `ack="delivered"` when the site has delivered it in order and has it in its log. Raises MessageTooLarge,
        NoQuorum where the group's quorum forbids sending here, and LocalProtocolError once this member leaves.
        """
        await self._seat.send_many([as_bytes(value)], ack)

    async def send_many(self, values: Iterable[bytes] | RecordBatch, *, ack: str = "taken") -> None:
        """Multicast several records in this order; all of them are taken, or none and the error says why."""
        await self._seat.send_many(as_records(values), ack)

    def transaction(
        self,
        *,
        app: str | None = None,
        version: int | None = None,
        ack: str = ACK,
        ack_timeout: float = ACK_SECONDS,
        timeout_s: int = TIMEOUT_S,
    ) -> Transaction:
        """Records that committed readers see together or not at all, by rto and through the site's agent.

        `app` and `version` name it: of the same application a version is committed once, whoever tries again, and
        versions count up. Without them it is a transaction of its own. It has to be committed within `timeout_s` of
        its first record, in the group's time.
        """
        if not isinstance(self._seat, AsyncClientMember):
            raise LocalProtocolError(WITHOUT_AGENT)
        return Transaction(self._seat, Terms.of(app, version, ack, ack_timeout, timeout_s))

    async def flush(self, ack: str = "sent") -> None:
        """Until all that was accepted has come so far; a group that does not keep up is waited for."""
        await self._seat.flush(ack)

    async def commit(self) -> None:
        """This member's subscription is done with all that was read so far; the next to open it goes on from there."""
        await self._seat.commit(*committed(self._subscription, self._progress))

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        """The next record, view or gap; the stream ends when this member has left."""
        self.read_by(record=True)
        await self._give_turn()
        while True:
            for message, last in self._records:
                if last:
                    self._progress.passed(message)
                return message
            event = await self._next_batch()
            if event is None:
                raise StopAsyncIteration
            if not isinstance(event, Batch):
                self._progress.passed(event)
                return event
            self._records = with_last(event.messages())

    async def batches(self) -> AsyncIterator[BatchEvent]:
        """The stream with one object per message, whose records lie end to end: for those who have many."""
        self.read_by(record=False)
        while (event := await self._next_batch()) is not None:
            self._progress.passed(event)
            yield event
            await self._give_turn()

    async def leave(self) -> None:
        """Leave the group: send what was accepted, then go.

        What the group delivers meanwhile can still be read, by another task; one that does not read holds nobody up.
        Raises MemberEnded when it took longer than it may and the member was closed anyhow.
        """
        await self._seat.leave(self._leave_timeout)

    async def abandon(self) -> None:
        """Leave without reading on and without complaints: the block has failed or was cancelled."""
        self._seat.discard()
        try:
            await self.leave()
        except IntergroupError as error:
            _log.warning("%s", error)

    async def _next_batch(self) -> BatchEvent | None:
        while True:
            for event in self._batches:
                return event
            if not self._fetched:
                self._fetched.extend(await self._seat.fetch(FETCH_BYTES))
            if not self._fetched:
                self._seat.check_failure()
                return None
            self._batches = self._stream.events(self._fetched.popleft())

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


def committed(subscription: str | None, progress: Progress) -> tuple[str, Cut]:
    """What a commit says; LocalProtocolError where there is nothing to say."""
    if subscription is None:
        raise LocalProtocolError("this member was opened without a subscription; name one to commit what was read")
    if progress.cut is None:
        raise LocalProtocolError("nothing was read yet that could be committed")
    return subscription, progress.cut


def with_last(messages: Sequence[Message]) -> Iterator[tuple[Message, bool]]:
    """Each record of a message, and whether it is the last."""
    last = len(messages) - 1
    return ((message, number == last) for number, message in enumerate(messages))
