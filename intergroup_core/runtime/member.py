"""One endpoint on an event loop: sockets and timers in, bursts and deliveries out."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Self, assert_never

from intergroup_core.delivery.outbox import Records
from intergroup_core.effects import Deliver, Effect, Install, Multicast, Order, SendRoom, Stable, Suspect
from intergroup_core.endpoint import Endpoint
from intergroup_core.errors import Backpressure, LocalProtocolError
from intergroup_core.ids import format_member
from intergroup_core.runtime.alarm import Alarm
from intergroup_core.runtime.clock import now
from intergroup_core.runtime.inbox import Event, Inbox
from intergroup_core.runtime.listener import Listener
from intergroup_core.runtime.transmitter import Transmitter

_log = logging.getLogger(__name__)

MAX_ARRIVALS = 4
"""Arrivals taken in one wake-up before others on the loop have their turn."""


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
    ) -> None:
        self.endpoint = endpoint
        self._listener = listener
        self._transmitter = transmitter
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(self._loop, self._due)
        self._unsent: deque[tuple[memoryview | bytes, int]] = deque()
        self._delivered: deque[Event] = deque()
        self._handing_over = False
        self._room_waiters: list[asyncio.Future[None]] = []
        self._on_event = on_event
        self._closed = False
        self.inbox = Inbox(app_queue_bytes, self._tell_room)

    def start(self) -> Self:
        self._loop.add_reader(self._listener.fileno(), self._readable)
        self._carry_out(self.endpoint.start(now()))
        return self

    def send(self, records: Records) -> None:
        """Hand records over at once; Backpressure where the queue does not take them all."""
        self._check_open()
        self._carry_out(self.endpoint.send(records, now()))

    async def send_many(self, records: Records) -> None:
        """Hand records over, waiting until the queue takes them; an empty one takes any number."""
        while True:
            try:
                self.send(records)
                return
            except Backpressure:
                await self._room()

    async def take(self) -> Event | None:
        """The next delivery or view; None once the member is closed."""
        return await self.inbox.take()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self.inbox.take()) is not None:
            yield event

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
        self._wake_senders()
        self.inbox.close()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise LocalProtocolError("this member is closed: nothing can be sent through it any more")

    async def _room(self) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._room_waiters.append(waiter)
        await waiter

    def _wake_senders(self) -> None:
        waiters, self._room_waiters = self._room_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _readable(self) -> None:
        for _ in range(MAX_ARRIVALS):
            arrival = self._listener.receive()
            if arrival is None or self._closed:
                break
            self._carry_out(self.endpoint.receive(arrival, now()))
            if self._closed or self._listener.drained:
                break

    def _due(self) -> None:
        # What has arrived comes first: somebody waits for the answer, and it may settle what is due.
        self._readable()
        if not self._closed:
            self._carry_out(self.endpoint.tick(now()))

    def _transmit(self, data: memoryview | bytes, segment: int) -> None:
        if self._unsent:
            self._unsent.append((data, segment))
        elif (taken := self._transmitter.send(data, segment)) < len(data):
            self._unsent.append((data[taken:], segment))
            self._loop.add_writer(self._transmitter.fileno(), self._writable)
            self.endpoint.congested(now())

    def _writable(self) -> None:
        while self._unsent:
            data, segment = self._unsent.popleft()
            taken = self._transmitter.send(data, segment)
            if taken < len(data):
                self._unsent.appendleft((data[taken:], segment))
                return
        self._loop.remove_writer(self._transmitter.fileno())
        self._carry_out(self.endpoint.writable(now()))

    def _tell_room(self, free: int) -> None:
        if not self._closed:
            self._carry_out(self.endpoint.room(free, now()))

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        """Network first, so that an application that sends from its callback does not overtake what came before."""
        for effect in effects:
            match effect:
                case Multicast(data, segment):
                    self._transmit(data, segment)
                case Deliver(chunk):
                    self._delivered.append(chunk)
                case Install(view):
                    self._delivered.append(view)
                case SendRoom():
                    self._wake_senders()
                case Suspect(member, reason, seq):
                    _log.warning("member %s is suspected at seq %d: %s", format_member(member), seq, reason)
                case Order() | Stable():
                    pass
                case _:
                    assert_never(effect)
        if self._delivered:
            self._hand_over()
        if not self._closed:
            self._alarm.wake_by(self.endpoint.next_deadline())

    def _hand_over(self) -> None:
        if self._handing_over:
            return
        self._handing_over = True
        try:
            while self._delivered:
                event = self._delivered.popleft()
                if self._on_event is not None:
                    self._on_event(event)
                else:
                    self.inbox.put(event)
        finally:
            self._handing_over = False
        if self._on_event is None:
            self.inbox.settle()
