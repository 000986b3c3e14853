"""A member that sends for clients: what they handed over, and how far it has come."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from enum import Enum

from intergroup_core.delivery.outbox import Records
from intergroup_core.errors import MemberEnded
from intergroup_core.log.body import stated_records
from intergroup_core.runtime.member import Member
from intergroup_core.wire.chunk import Chunk


class Ack(Enum):
    """How far a record is when its sender is told so."""

    TAKEN = "taken"
    """The queue to the group has it."""
    SENT = "sent"
    """It left this site."""
    DELIVERED = "delivered"
    """This site's member delivered it in order, and its log has it."""


class Sending:
    """Counts records on their way out and on their way back: a sender's messages are delivered in its own order."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.users = 0
        self.offered = 0
        self._delivered = 0
        self._not_kept: deque[tuple[int, int]] = deque()
        """Entries of the log, and the records delivered with them and before."""
        self._kept = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def send(self, records: Records) -> int:
        """Hand records over; how many there were with them, which `reached` takes."""
        await self.member.send_many(records)
        self.offered += len(records)
        return self.offered

    async def reached(self, ack: Ack, count: int) -> None:
        """Until the first so many records that were handed over have come so far."""
        if ack is Ack.SENT:
            await self.member.sent()
        elif ack is Ack.DELIVERED and self._kept < count:
            self.member.check_failure()
            waiter = asyncio.get_running_loop().create_future()
            insort(self._waiting, (count, waiter), key=lambda waiting: waiting[0])
            await waiter

    def appended(self, entry: int, chunk: Chunk) -> None:
        """A chunk was put into the log of this site's stream; it may be this sender's."""
        if chunk.source == self.member.endpoint.me:
            self._delivered += stated_records(chunk)
            self._not_kept.append((entry, self._delivered))

    def kept(self, stop: int) -> None:
        """All entries below are kept."""
        while self._not_kept and self._not_kept[0][0] < stop:
            self._kept = self._not_kept.popleft()[1]
        while self._waiting and self._waiting[0][0] <= self._kept:
            self._settle(None)

    def skipped(self, reason: str) -> None:
        """The member was left behind: what it had sent and not delivered may have reached others, or not."""
        unsent = self.member.endpoint.unsent_records
        self._delivered = self._kept = self.offered - unsent
        self._not_kept.clear()
        while self._waiting:
            self._settle(
                MemberEnded(
                    f"{self.member.endpoint.name} was left behind by group {self.member.endpoint.group} ({reason}): "
                    "whether the others have what it had just sent is not known; read the group, then decide"
                )
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
