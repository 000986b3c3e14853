"""A member that sends for clients: what they handed over, and how far it has come."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from collections.abc import Sequence
from itertools import dropwhile
from typing import NamedTuple

from intergroup_core.delivery.outbox import Records
from intergroup_core.errors import MemberEnded
from intergroup_core.log.body import stated_records
from intergroup_core.runtime.member import Member
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.keeping import Span
from intergroup_core.wire.records import Payload

MAX_MARKS = 8_192
"""Own messages that came back last and are remembered: who waits for what others have of older ones asks for more."""


MAX_LOST = 100
"""Times that the member was left behind, and what was lost with them, which are remembered."""


class Sent(NamedTuple):
    """Records that a client handed over, counted from the member's beginning."""

    first: int
    stop: int


class Mark(NamedTuple):
    """Own messages that came back, and the records handed over with them and before."""

    entry: int
    records: int
    first_seq: int
    last_seq: int
    first_timestamp: int
    timestamp: int


class Located(NamedTuple):
    """Where records came to stand, perhaps among others of the same sender."""

    span: Span
    first_timestamp: int
    timestamp: int
    """By which the last of them is ordered."""


class Sending:
    """Counts records on their way out and on their way back: a sender's messages are delivered in its own order."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.users = 0
        self.offered = 0
        self._delivered = 0
        self._not_kept: deque[Mark] = deque()
        self._marks: deque[Mark] = deque()
        """Those that are kept."""
        self._forgotten = 0
        """Records of this incarnation whose marks are not remembered any more."""
        self._first_seq = 0
        """Of this incarnation."""
        self._given_up = 0
        """The last seq of records that may come back although they count as lost: the log's member was left behind, and
        one that only sends was not."""
        self._lost: list[Sent] = []
        """Records of which nobody here knows whether the others have them."""
        self._kept = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def send(self, records: Records) -> Sent:
        """Hand records over."""
        await self.member.send_many(records)
        return self._handed_over(len(records))

    async def send_messages(self, messages: Sequence[tuple[Payload, int]]) -> Sent:
        """Hand messages over that are made already, each with the number of its records."""
        await self.member.send_messages(messages)
        return self._handed_over(sum(records for _, records in messages))

    def _handed_over(self, records: int) -> Sent:
        first = self.offered
        self.offered += records
        return Sent(first, self.offered)

    async def left(self) -> None:
        """Until all that was handed over has left this site."""
        await self.member.sent()

    async def delivered(self, sent: Sent) -> None:
        """Until records were delivered here, and are kept."""
        if self._kept < sent.stop:
            self.member.check_failure()
            waiter = asyncio.get_running_loop().create_future()
            insort(self._waiting, (sent.stop, waiter), key=lambda waiting: waiting[0])
            await waiter
        if any(lost.first < sent.stop and sent.first < lost.stop for lost in self._lost):
            raise self._unsure("meanwhile")

    def place_of(self, sent: Sent) -> Located:
        """What others must have to have records that were delivered."""
        marks = list(dropwhile(lambda mark: mark.records <= sent.first, self._marks))
        inside = [mark for number, mark in enumerate(marks) if not number or marks[number - 1].records < sent.stop]
        if not inside or inside[-1].records < sent.stop:
            raise self._unsure("meanwhile")
        first = self._first_seq if sent.first < self._forgotten else inside[0].first_seq
        span = self.member.endpoint.me, first, inside[-1].last_seq
        return Located(span, inside[0].first_timestamp, inside[-1].timestamp)

    def appended(self, entry: int, chunk: Chunk) -> None:
        """A chunk was put into the log of this site's stream; it may be this sender's."""
        if chunk.source == self.member.endpoint.me and chunk.last_seq > self._given_up:
            self._delivered += stated_records(chunk) if chunk.first_seq > self._given_up else self._rest(chunk)
            self._first_seq = self._first_seq or chunk.first_seq
            self._not_kept.append(
                Mark(
                    entry,
                    self._delivered,
                    chunk.first_seq,
                    chunk.last_seq,
                    chunk.first_timestamp,
                    chunk.last_timestamp,
                )
            )

    def _rest(self, chunk: Chunk) -> int:
        """Records of a chunk that begins with some that were given up."""
        return sum(len(message.records()) for message in chunk.messages() if message.seq > self._given_up)

    def kept(self, stop: int) -> None:
        """All entries below are kept."""
        while self._not_kept and self._not_kept[0].entry < stop:
            mark = self._not_kept.popleft()
            self._marks.append(mark)
            if len(self._marks) > MAX_MARKS:
                self._forgotten = self._marks.popleft().records
            self._kept = mark.records
        while self._waiting and self._waiting[0][0] <= self._kept:
            self._settle(None)

    def skipped(self, reason: str) -> None:
        """The member was left behind: what it had sent and not delivered may have reached others, or not."""
        unsent = self.member.endpoint.unsent_records
        self._lost = [*self._lost[-MAX_LOST:], Sent(self._kept, self.offered - unsent)]
        self._delivered = self._kept = self._forgotten = self.offered - unsent
        self._given_up = self.member.endpoint.last_seq
        self._first_seq = 0
        self._not_kept.clear()
        self._marks.clear()
        while self._waiting:
            self._settle(self._unsure(reason))

    def _unsure(self, reason: str) -> MemberEnded:
        return MemberEnded(
            f"{self.member.endpoint.name} was left behind by group {self.member.endpoint.group} ({reason}): "
            "whether the others have what it had just sent is not known; read the group, then decide"
        )

    def ended(self) -> None:
        """The member is closed."""
        failure = self.member.failure
        why = f": {failure}" if failure is not None else ""
        while self._waiting:
            self._settle(MemberEnded(f"{self.member.endpoint.name} is out of group {self.member.endpoint.group}{why}"))

    def _settle(self, error: MemberEnded | None) -> None:
        _, waiter = self._waiting.pop(0)
        if waiter.done():
            return
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)
