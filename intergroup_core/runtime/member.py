"""One endpoint on an event loop: sockets and timers in, bursts and deliveries out."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Protocol, Self, assert_never

from intergroup_core.delivery.outbox import Records
from intergroup_core.effects import (
    Counted,
    Deliver,
    Effect,
    Gap,
    Install,
    Left,
    Multicast,
    Order,
    Persist,
    SendRoom,
    Stable,
    Suspect,
)
from intergroup_core.endpoint import Endpoint
from intergroup_core.errors import Backpressure, IntergroupError, LocalProtocolError, LogError, MemberEnded
from intergroup_core.ids import format_member
from intergroup_core.runtime.alarm import Alarm
from intergroup_core.runtime.clock import now
from intergroup_core.runtime.control import ControlRunner
from intergroup_core.runtime.inbox import Event, Inbox
from intergroup_core.runtime.listener import Listener
from intergroup_core.runtime.member_log import MemberLog
from intergroup_core.runtime.transmitter import Transmitter
from intergroup_core.wire.records import Payload
from intergroup_core.wire.statements import Statement

_log = logging.getLogger(__name__)

MAX_ARRIVALS = 4
"""Arrivals taken in one wake-up before others on the loop have their turn."""
MAX_RECEIVE_NS = 20_000_000
"""Time after which no further arrival is taken in a wake-up: after a pause there can be seconds of them."""


LEFT = "left"
"""The reason of a member that was asked to leave."""
REASONS = {"clock": "its clock differs too much from the others'; set it (NTP) and join again"}


class StateStore(Protocol):
    """Keeps what a member must remember."""

    def save(self, record: bytes) -> None:
        """Durable once this returns."""

    def close(self) -> None:
        """Let others have it."""


class Member:
    """Drives an endpoint. Deliveries go to `on_event` where one is given, else they wait in a bounded inbox."""

    def __init__(
        self,
        endpoint: Endpoint,
        listener: Listener,
        transmitter: Transmitter,
        *,
        app_queue_bytes: int,
        on_event: Callable[[Event], None] | None = None,
        on_closed: Callable[[], None] | None = None,
        store: StateStore | None = None,
        control: ControlRunner | None = None,
        log: MemberLog | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._listener = listener
        self._transmitter = transmitter
        self._store = store
        self._control = control
        self._log = log
        self._told_free = -1
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(self._loop, self._due)
        self._unsent: deque[tuple[memoryview | bytes, int, int]] = deque()
        self._delivered: deque[Event] = deque()
        self._handing_over = False
        self._room_waiters: list[asyncio.Future[None]] = []
        self._sent_waiters: list[asyncio.Future[None]] = []
        self._view_waiters: list[asyncio.Future[None]] = []
        self._on_event = on_event
        self._on_closed = on_closed
        self._closed = False
        self._leaving = False
        self._left: Left | None = None
        self._ended = asyncio.Event()
        self.failure: Exception | None = None
        """Why the member ended by itself, if it did."""
        self.inbox = Inbox(app_queue_bytes, self._tell_room)
        endpoint.hasten(self._send_early)
        if log is not None:
            log.changed, log.fail = self.log_changed, self._fail

    def start(self) -> Self:
        self._loop.add_reader(self._listener.fileno(), self._readable)
        if self._control is not None:
            self._control.start()
        self._carry_out(self.endpoint.start(now()))
        return self

    @property
    def closed(self) -> bool:
        return self._closed

    def send(self, records: Records) -> None:
        """Hand records over at once; Backpressure where the queue does not take them all."""
        self._check_open()
        self._carry_out(self.endpoint.send(records, now()))

    def declare(self, statement: Statement) -> None:
        """Say something to the other members, at its place in what this one sends."""
        self._check_open()
        self._carry_out(self.endpoint.declare(statement, now()))

    def become_sender(self) -> None:
        """Where it only receives, or was left out of the senders for its silence."""
        self._check_open()
        self._carry_out(self.endpoint.become_sender(now()))

    def stay(self, stays: bool) -> None:
        """Whether somebody will send again through it, however long it is silent until then."""
        if not self._closed:
            self._carry_out(self.endpoint.stay(stays, now()))

    async def send_many(self, records: Records) -> None:
        """Hand records over, waiting until the queue takes them; an empty one takes any number."""
        await self._taken(lambda: self.send(records))

    async def send_messages(self, messages: Sequence[tuple[Payload, int]]) -> None:
        """The same of messages that are made already, each with the number of its records."""

        def send() -> None:
            self._check_open()
            self._carry_out(self.endpoint.send_messages(messages, now()))

        await self._taken(send)

    async def _taken(self, send: Callable[[], None]) -> None:
        while True:
            try:
                send()
                return
            except Backpressure:
                await self._wait(self._room_waiters)

    async def take(self) -> Event | None:
        """The next event; None once the member is closed."""
        return await self.inbox.take()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self.inbox.take()) is not None:
            yield event

    async def installed(self, *, as_sender: bool = False) -> None:
        """Until this member has a view, or one in which it is a sender."""
        endpoint = self.endpoint
        while (view := endpoint.view) is None or (as_sender and endpoint.me not in view.members):
            self._check_open()
            await self._wait(self._view_waiters)

    async def sent(self) -> None:
        """Until all that was handed over has gone to the network."""
        while self.endpoint.unsent_bytes or self._unsent:
            self._check_open()
            await self._wait(self._sent_waiters)

    def begin_to_leave(self) -> None:
        """What was sent before goes out first, then the stream ends."""
        if not self._closed and not self._leaving:
            self._leaving = True
            self.inbox.leave()
            self._carry_out(self.endpoint.leave(now()))

    async def ended(self) -> None:
        """Until this member has left or was closed."""
        await self._ended.wait()

    def close(self) -> None:
        """Leave the loop; what the application has not taken can still be taken."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._listener.fileno())
        self._loop.remove_writer(self._transmitter.fileno())
        self._alarm.close()
        self._listener.close()
        self._transmitter.close()
        if self._store is not None:
            self._store.close()
        if self._log is not None:
            self._log.close()
        self._wake(self._room_waiters)
        self._wake(self._view_waiters)
        self._wake(self._sent_waiters)
        self.inbox.close()
        self._ended.set()
        if self._on_closed is not None:
            self._on_closed()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        self.check_failure()
        if self._closed:
            raise LocalProtocolError("this member is closed: nothing can be sent through it any more")

    def check_failure(self) -> None:
        """Raise what ended the member by itself, if something did."""
        if self.failure is not None:
            endpoint = self.endpoint
            raise MemberEnded(f"{endpoint.name} is out of group {endpoint.group}: {self.failure}") from self.failure

    async def _wait(self, waiters: list[asyncio.Future[None]]) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        waiters.append(waiter)
        await waiter

    @staticmethod
    def _wake(waiters: list[asyncio.Future[None]]) -> None:
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        waiters.clear()

    # The loop calls these. An error in one would otherwise only be logged, and the application wait for ever.

    def _readable(self) -> None:
        try:
            self._receive()
        except Exception as error:
            self._fail(error)

    def _due(self) -> None:
        try:
            # What has arrived comes first: somebody waits for the answer, and it may settle what is due.
            self._receive()
            if not self._closed:
                self._carry_out(self.endpoint.tick(now()))
        except Exception as error:
            self._fail(error)

    def _writable(self) -> None:
        try:
            self._send_unsent()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._closed:
            return
        expected = isinstance(error, IntergroupError)
        _log.error("a member of group %s ends: %s", self.endpoint.group, error, exc_info=None if expected else error)
        self.failure = error
        self.close()

    def _receive(self) -> None:
        started: int | None = None
        for _ in range(MAX_ARRIVALS):
            if self._closed or (arrival := self._listener.receive()) is None:
                break
            instant = now()
            self._carry_out(self.endpoint.receive(arrival, instant))
            if self._closed or self._listener.drained:
                break
            if started is None:
                started = instant.mono
            elif instant.mono - started > MAX_RECEIVE_NS:
                break

    def _transmit(self, data: memoryview | bytes, segment: int, burst: int) -> None:
        if self._unsent:
            self._unsent.append((data, segment, burst))
        elif (taken := self._transmitter.send(data, segment, burst)) < len(data):
            self._unsent.append((data[taken:], segment, burst))
            self._loop.add_writer(self._transmitter.fileno(), self._writable)
            self.endpoint.congested(now())

    def _send_unsent(self) -> None:
        while self._unsent:
            data, segment, burst = self._unsent.popleft()
            taken = self._transmitter.send(data, segment, burst)
            if taken < len(data):
                self._unsent.appendleft((data[taken:], segment, burst))
                return
        self._loop.remove_writer(self._transmitter.fileno())
        self._carry_out(self.endpoint.writable(now()))

    def log_changed(self) -> None:
        """The log has kept more, or has another room than before."""
        if not self._closed and self._log is not None:
            self._keep(self._log)

    def _keep(self, log: MemberLog) -> None:
        try:
            kept = log.settle()
        except LogError as error:
            self._fail(error)
            return
        if log.free != self._told_free:
            self._told_free = log.free
            self._tell_room(log.free)
        if kept and not self._closed:
            self._carry_out(self.endpoint.appended(kept, now()))

    def _tell_room(self, free: int) -> None:
        if not self._closed:
            self._carry_out(self.endpoint.room(free, now()))

    def _send_early(self, effects: Sequence[Effect]) -> None:
        """Somebody waits for this: it goes while the endpoint still works on the stimulus that brought it about."""
        for effect in effects:
            if isinstance(effect, Multicast):
                self._transmit(effect.data, effect.segment, effect.burst)
            else:
                self._wake(self._room_waiters)

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        """Network first, so that an application that sends from its callback does not overtake what came before."""
        for effect in effects:
            match effect:
                case Multicast(data, segment, burst):
                    self._transmit(data, segment, burst)
                case Deliver(chunk):
                    self._delivered.append(chunk)
                case Install():
                    self._delivered.append(effect)
                    self._wake(self._view_waiters)
                case Gap():
                    self._delivered.append(effect)
                    self._told_free = -1  # a new incarnation knows nothing of it
                    self._listener.drop_frames_of(effect.incarnation)
                case Left():
                    self._left = effect
                case Persist(record):
                    if not self._persisted(record):
                        break  # nothing after it may happen
                case SendRoom():
                    self._wake(self._room_waiters)
                case Suspect(member, reason, seq):
                    _log.info("member %s is suspected at seq %d: %s", format_member(member), seq, reason)
                case Order() | Stable() | Counted():
                    pass
                case _:
                    assert_never(effect)
        if self._delivered:
            self._hand_over()
        if self._left is not None and not self._handing_over:
            self._end(self._left)
        if self._sent_waiters and not self.endpoint.unsent_bytes and not self._unsent:
            self._wake(self._sent_waiters)
        if not self._closed:
            self._alarm.wake_by(self.endpoint.next_deadline())
            if self._control is not None:
                self._control.wake()

    def _persisted(self, record: bytes) -> bool:
        if self._store is not None:
            try:
                self._store.save(record)
            except IntergroupError as error:
                self._fail(error)
                return False
        return True

    def _hand_over(self) -> None:
        if self._handing_over:
            return
        self._handing_over = True
        try:
            while self._delivered:
                event = self._delivered.popleft()
                if self._log is not None:
                    self._log.append(event)
                if self._on_event is not None:
                    self._on_event(event)
                else:
                    self.inbox.put(event)
        except LogError as error:
            self._fail(error)
        finally:
            self._handing_over = False
        if self._log is not None and not self._closed:
            self._keep(self._log)
        if self._on_event is None and self._left is None:
            self.inbox.settle()

    def _end(self, left: Left) -> None:
        if left.reason != LEFT and self.failure is None:
            self.failure = MemberEnded(REASONS.get(left.reason, left.reason))
        self.close()
