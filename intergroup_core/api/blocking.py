"""Joining a group from a script or a notebook."""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Protocol, Self

from intergroup_core.api.arguments import as_bytes, as_records, checked, default_name
from intergroup_core.api.events import Batch, BatchEvent, Event, Members, Message
from intergroup_core.api.joining import FETCH_BYTES, LEAVE_SECONDS, committed, with_last
from intergroup_core.api.progress import Progress
from intergroup_core.api.stream import Stream
from intergroup_core.api.thread_member import ThreadMember
from intergroup_core.api.transaction import ACK, ACK_SECONDS, TIMEOUT_S, WITHOUT_AGENT, BlockingTransaction, Terms
from intergroup_core.client.member import ClientMember
from intergroup_core.config import Config
from intergroup_core.errors import ConfigError, IntergroupError, LocalProtocolError
from intergroup_core.ids import Service
from intergroup_core.log.cut import Cut
from intergroup_core.runtime.inbox import Event as Delivered
from intergroup_core.wire.records import RecordBatch

_log = logging.getLogger(__name__)


class BlockingSeat(Protocol):
    """What a member does for its application, in a thread of this process or in the site's agent."""

    group: str
    name: str
    delivery: str

    @property
    def id(self) -> str: ...

    @property
    def state(self) -> str: ...

    def joined(self, timeout: float | None = None) -> None: ...

    def members(self) -> Mapping[str, Any]: ...

    def send_many(self, records: Sequence[bytes] | RecordBatch, ack: str = "taken") -> None: ...

    def flush(self, ack: str = "sent") -> None: ...

    def fetch(self, most_bytes: int, timeout: float | None = None) -> list[Delivered]: ...

    def commit(self, subscription: str, cut: Cut) -> None: ...

    def check_failure(self) -> None: ...

    def leave(self, seconds: float) -> None: ...

    def abandon(self, seconds: float) -> None: ...

    def close(self) -> None: ...


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
    start: str = "latest",
    subscription: str | None = None,
    in_process: bool = False,
    timeout: float | None = None,
    leave_timeout: float = LEAVE_SECONDS,
) -> BlockingMember:
    """Be a member of a group until it is closed: `join` for code without an event loop.

    The parameters are those of `join`. `timeout` limits, in seconds, how long a sender may wait until it is in the
    group; TimeoutError is raised then. Use the result in a `with` block, or close it; at the end of the program it
    leaves by itself.
    """
    wanted = checked(group, delivery, name, config, interface, start=start, in_process=in_process)
    if subscription is not None and in_process:
        raise ConfigError("a member without a log has no subscriptions: leave out in_process=True")
    seat: BlockingSeat
    if in_process:
        seat = ThreadMember(
            group,
            service=wanted.service,
            sender=sender,
            name=name if name is not None else default_name(),
            config=wanted.config,
            home=home,
            reads=reads,
        )
    else:
        seat = ClientMember(
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
    try:
        if sender:
            seat.joined(timeout)
    except BaseException:
        _end(seat, leave_timeout)
        raise
    return BlockingMember(seat, reads=reads, leave_timeout=leave_timeout, subscription=subscription, start=wanted.start)


class BlockingMember:
    """A member of a group for one thread at a time; another thread may send while one reads."""

    def __init__(
        self,
        seat: BlockingSeat,
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
        self._left = False
        # Not self.close: that would keep this object from ever being collected.
        self._finalizer = weakref.finalize(self, _end, seat, leave_timeout)

    @property
    def id(self) -> str:
        """The id of this incarnation, 16 hex digits; a gap begins a new one."""
        return self._seat.id

    @property
    def state(self) -> str:
        """Where the membership protocol stood when last heard of."""
        return self._seat.state

    def members(self) -> Members:
        """The senders of the last view and the receivers this member has heard of."""
        return Members.of(self.group, self._seat.members())

    def joined(self, timeout: float | None = None) -> None:
        """Wait for the first view; TimeoutError after `timeout` seconds."""
        self._seat.joined(timeout)

    def send(self, value: bytes | bytearray | memoryview, *, ack: str = "taken") -> None:
        """Multicast one record; see GroupMember.send."""
        self._check_here()
        self._seat.send_many([as_bytes(value)], ack)

    def send_many(self, values: Iterable[bytes] | RecordBatch, *, ack: str = "taken") -> None:
        """Multicast several records in this order; all of them are taken, or none and the error says why."""
        self._check_here()
        self._seat.send_many(as_records(values), ack)

    def transaction(
        self,
        *,
        app: str | None = None,
        version: int | None = None,
        ack: str = ACK,
        ack_timeout: float = ACK_SECONDS,
        timeout_s: int = TIMEOUT_S,
    ) -> BlockingTransaction:
        """Records that committed readers see together or not at all; see GroupMember.transaction."""
        if not isinstance(self._seat, ClientMember):
            raise LocalProtocolError(WITHOUT_AGENT)
        return BlockingTransaction(self._seat, Terms.of(app, version, ack, ack_timeout, timeout_s))

    def flush(self, ack: str = "sent") -> None:
        """Wait until all that was accepted has come so far."""
        self._check_here()
        self._seat.flush(ack)

    def commit(self) -> None:
        """This member's subscription is done with all that was read so far; see GroupMember.commit."""
        self._check_here()
        self._seat.commit(*committed(self._subscription, self._progress))

    def read(self, timeout: float | None = None) -> Event | None:
        """The next record, view or gap; None once this member has left.

        TimeoutError after `timeout` seconds without one; the next call goes on where this one stopped.
        """
        self._read_by(record=True)
        while True:
            for message, last in self._records:
                if last:
                    self._progress.passed(message)
                return message
            event = self._next_batch(timeout)
            if not isinstance(event, Batch):
                if event is not None:
                    self._progress.passed(event)
                return event
            self._records = with_last(event.messages())

    def __iter__(self) -> Iterator[Event]:
        while (event := self.read()) is not None:
            yield event

    def batches(self) -> Iterator[BatchEvent]:
        """The stream with one object per message, whose records lie end to end."""
        self._read_by(record=False)
        while (event := self._next_batch(None)) is not None:
            self._progress.passed(event)
            yield event

    def leave(self) -> None:
        """Leave the group: send what was accepted, then go. What was delivered before can still be read."""
        if not self._left:
            self._left = True
            self._seat.leave(self._leave_timeout)

    def close(self) -> None:
        """Leave the group if that has not happened, and end."""
        if self._finalizer.detach() is not None:
            try:
                self.leave()
            finally:
                self._seat.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        elif self._left:
            self._finalizer.detach()
            self._seat.close()
        else:
            self._finalizer()

    def _check_here(self) -> None:
        if self._left:
            raise LocalProtocolError(f"member {self.name} of group {self.group} is closed; open another one")

    def _read_by(self, *, record: bool) -> None:
        if not self._reads:
            raise LocalProtocolError("this member only sends: open it with reads=True to read from it")
        if self._by_record is None:
            self._by_record = record
        elif self._by_record is not record:
            raise LocalProtocolError("this member is read by record or by batch; choose one of the two")

    def _next_batch(self, timeout: float | None) -> BatchEvent | None:
        while True:
            for event in self._batches:
                return event
            if not self._fetched:
                self._fetched.extend(self._seat.fetch(FETCH_BYTES, timeout))
            if not self._fetched:
                self._seat.check_failure()
                return None
            self._batches = self._stream.events(self._fetched.popleft())


def _end(seat: BlockingSeat, seconds: float) -> None:
    try:
        seat.abandon(seconds)
    except IntergroupError as error:
        _log.warning("%s", error)
