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
from intergroup_core.log.body import message_flags, stated_counts, stated_records
from intergroup_core.log.entry import EntryFlag
from intergroup_core.runtime.member import Member
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.keeping import Span
from intergroup_core.wire.records import Payload

MAX_MARKS = 8_192
"""Places of own messages that are remembered. Of more than these the older half is joined by pairs: who then asks for
the place of some of them gets that of a few more."""

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
        self._staying = 0
        """Users for whom it is not to be left out of the senders, though they are silent."""
        self.offered = 0
        self._delivered = 0
        self._not_kept: deque[Mark] = deque()
        self._marks: deque[Mark] = deque()
        """Those that are kept."""
        self._begin = 0
        """Records that were handed over before this incarnation sent anything."""
        self._given_up = 0
        """The last seq of records that may come back although they count as lost: the log's member was left behind, and
        one that only sends was not."""
        self._lost: list[Sent] = []
        """Records of which nobody here knows whether the others have them."""
        self._kept = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def stay(self) -> None:
        """One of its users will send again, sooner or later."""
        self._staying += 1
        self.member.stay(True)

    def stay_no_longer(self) -> None:
        """One of those has gone."""
        self._staying -= 1
        if not self._staying:
            self.member.stay(False)

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
        if sent.first < self._begin:
            raise self._unsure("meanwhile")
        marks = list(dropwhile(lambda mark: mark.records <= sent.first, self._marks))
        inside = [mark for number, mark in enumerate(marks) if not number or marks[number - 1].records < sent.stop]
        if not inside or inside[-1].records < sent.stop:
            raise self._unsure("meanwhile")
        span = self.member.endpoint.me, inside[0].first_seq, inside[-1].last_seq
        return Located(span, inside[0].first_timestamp, inside[-1].timestamp)

    def appended(self, entry: int, chunk: Chunk) -> None:
        """A chunk was put into the log of this site's stream; it may be this sender's."""
        if chunk.source != self.member.endpoint.me or chunk.last_seq <= self._given_up:
            return
        if chunk.count == 1 or (chunk.first_seq > self._given_up and not message_flags(chunk) & EntryFlag.STAGED):
            records, times = stated_records(chunk), (chunk.first_timestamp, chunk.last_timestamp)
            self._note(entry, records, chunk.first_seq, chunk.last_seq, *times)
            return
        # Of staged messages the last one counts, and not what others sent behind it.
        run, first = chunk.run, chunk.first_seq
        for end, records in zip(run.ends, stated_counts(chunk), strict=True):
            if run.seq + end > self._given_up:
                self._note(entry, records, first, run.seq + end, run.timestamp + end, run.timestamp + end)
            first = run.seq + end + 1

    def _note(self, entry: int, records: int, *place: int) -> None:
        self._delivered += records
        self._not_kept.append(Mark(entry, self._delivered, *place))

    def kept(self, stop: int) -> None:
        """All entries below are kept."""
        while self._not_kept and self._not_kept[0].entry < stop:
            mark = self._not_kept.popleft()
            self._marks.append(mark)
            if len(self._marks) > MAX_MARKS:
                self._join_older()
            self._kept = mark.records
        while self._waiting and self._waiting[0][0] <= self._kept:
            self._settle(None)

    def _join_older(self) -> None:
        marks = list(self._marks)
        older, newer = marks[: MAX_MARKS // 2], marks[MAX_MARKS // 2 :]
        joined = (
            second._replace(first_seq=first.first_seq, first_timestamp=first.first_timestamp)
            for first, second in zip(older[::2], older[1::2], strict=True)
        )
        self._marks = deque([*joined, *newer])

    def skipped(self, reason: str) -> None:
        """The member was left behind: what it had sent and not delivered may have reached others, or not."""
        unsent = self.member.endpoint.unsent_records
        self._lost = [*self._lost[-MAX_LOST:], Sent(self._kept, self.offered - unsent)]
        self._delivered = self._kept = self._begin = self.offered - unsent
        self._given_up = self.member.endpoint.last_seq
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
