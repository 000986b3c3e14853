"""Answering requests with what this member holds, unless another is quicker (T3.4)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from intergroup_core.config import HEADER_BYTES, RepairConfig
from intergroup_core.ids import NO_TIMESTAMP, MemberId, Timestamp
from intergroup_core.multicast.adaptation import RepairAdaptation
from intergroup_core.multicast.ranges import Disjoint, Span, coalesced, without
from intergroup_core.ports import Distances
from intergroup_core.timers import Timers
from intergroup_core.wire.exchange import Exchange

HOLD_DOWN_DISTANCES = 3
"""A request this soon after a repair was sent before that repair could arrive (SRM)."""
IN_VAIN_WINDOWS = 2
"""How much longer than others who repeated something waits before it does so again."""
REMEMBERED = 1_024
"""Repairs per source remembered for the hold-down; beyond it the older half is forgotten and may be repeated."""
BUCKET_NS = 20_000_000
BUCKET_FRAMES = 64
"""Repairs sent at once after a quiet time: this much of the bandwidth, but never fewer than these frames."""
BLOCKED_NS = 500_000
"""How long the bucket fills, if as much is wanted, before a repair it held up goes on: runs are cheaper than frames."""
PROMISE_BYTES = 2 * HEADER_BYTES


@dataclass(eq=False, slots=True)
class _Answer:
    """What one request made this member schedule; its tickets may be many once others repaired parts of it."""

    scheduled: int
    distance: int
    frames: int
    requester: MemberId
    clock: int
    """When it was asked, by the requester's clock."""
    settled: bool = False


@dataclass(eq=False, slots=True)
class _Ticket:
    """Frames to repeat, with one timer; for a promise `first` and `last` are its timestamp."""

    answer: _Answer
    source: MemberId
    first: int
    last: int
    due: int
    promise: bool = False
    late: int = 0
    """By how much it is later than it would be without what was in vain."""

    def part(self, first: int, last: int) -> _Ticket:
        return replace(self, first=first, last=last)


@dataclass(eq=False, slots=True)
class _Repaired:
    """Frames repeated by somebody; `answer` if this member did it, which is `own`, or had been about to."""

    answer: _Answer | None
    first: int
    last: int
    at: int
    own: bool

    def part(self, first: int, last: int) -> _Repaired:
        return replace(self, first=first, last=last)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairsDue:
    """What to repeat now, and whose latest keep-alive."""

    spans: list[Span] = field(default_factory=list)
    promises: list[MemberId] = field(default_factory=list)
    exchange: Exchange | None = None
    """The request that the last of these answers."""

    def __bool__(self) -> bool:
        return bool(self.spans or self.promises)


class _Bucket:
    """What this member may still repeat (R5)."""

    __slots__ = ("_at", "_depth", "_frame_bytes", "_rate", "_tokens")

    def __init__(self, bandwidth: float, frame_bytes: int) -> None:
        self._frame_bytes = frame_bytes
        self._rate = bandwidth / 1e9
        self._depth = max(self._rate * BUCKET_NS, BUCKET_FRAMES * frame_bytes)
        self._tokens = self._depth
        self._at = 0

    def fill(self, now_ns: int) -> None:
        self._tokens = min(self._depth, self._tokens + self._rate * (now_ns - self._at))
        self._at = now_ns

    def spend(self, nbytes: int) -> None:
        self._tokens -= nbytes

    def frames(self) -> int:
        return max(0, int(self._tokens // self._frame_bytes))

    def blocked_until(self, frames: int) -> int:
        """When it is worth going on, with so many frames to send."""
        frames = max(1, min(frames, int(self._rate * BLOCKED_NS / self._frame_bytes)))
        return self._at + int((frames * self._frame_bytes - self._tokens) / self._rate) + 1


class RepairScheduler:
    """Repeats requested frames and promises after a random delay scaled by the distance to who asked (T3.4, R5).

    `frame_bytes` is what one repeated frame takes on the wire at most. Tickets are bounded by the frames this member
    holds.
    """

    def __init__(self, config: RepairConfig, distances: Distances, rng: Random, frame_bytes: int) -> None:
        self._distances = distances
        self._rng = rng
        self._frame_bytes = frame_bytes
        self._floor = round(config.distance_floor_us * 1_000)
        self._bucket = _Bucket(config.bandwidth, frame_bytes)
        self._blocked_until = 0
        self._farthest = self._floor
        self._tables: dict[MemberId, Disjoint[_Ticket]] = {}
        self._promises: dict[MemberId, _Ticket] = {}
        self._repaired: dict[MemberId, Disjoint[_Repaired]] = {}
        self._promised: dict[MemberId, tuple[int, Timestamp]] = {}
        self._timers: Timers[_Ticket] = Timers()
        self.window = RepairAdaptation(config)
        self.repairs_sent = 0
        self.frames_sent = 0
        self.suppressed = 0
        self.held_down = 0

    def requested(
        self, requester: MemberId, source: MemberId, first: int, last: int, now_ns: int, clock: int = 0
    ) -> None:
        """A member asked for frames this one holds, at a time by its own clock."""
        table = self._tables.get(source) or Disjoint()
        holes = table.uncovered(first, last)
        if not holes:
            return
        distance = self._distance(requester)
        recent = self._repaired_since(source, first, last, now_ns - HOLD_DOWN_DISTANCES * distance)
        cuts = [(old.first, old.last) for old in recent]
        parts = [part for start, end in holes for part in without(start, end, cuts)]
        if not parts:
            self.held_down += 1
            return
        self._tables[source] = table
        self.window.scheduled()
        answer = _Answer(now_ns, distance, sum(end - start + 1 for start, end in parts), requester, clock)
        for start, end in parts:
            late = self._in_vain(answer) if self._repeated_before(source, start, end) else 0
            ticket = _Ticket(answer, source, start, end, self._draw(answer) + late, late=late)
            table.add(ticket)
            self._timers.arm(ticket, ticket.due)

    def repaired(self, source: MemberId, first: int, last: int, now_ns: int) -> None:
        """Somebody else repeated these frames, or their originals came at last."""
        answer = None
        for old in self._repaired_since(source, first, last, now_ns - HOLD_DOWN_DISTANCES * self._farthest):
            if old.answer is not None and old.at > now_ns - HOLD_DOWN_DISTANCES * old.answer.distance:
                answer = old.answer
                self.window.duplicate((min(last, old.last) - max(first, old.first) + 1) / answer.frames)
        table = self._tables.get(source)
        if table is not None:
            for ticket in self._cut(source, table, first, last):
                answer = ticket.answer
                if not answer.settled:
                    answer.settled = True
                    self.suppressed += 1
                    self.window.cancelled((now_ns - answer.scheduled) / answer.distance)
        self._remember(source, first, last, answer, now_ns, own=False)

    def requested_promise(
        self, requester: MemberId, source: MemberId, now_ns: int, held: Timestamp = NO_TIMESTAMP
    ) -> None:
        """A member asked for a source's latest keep-alive; `held` is what this member's promises.

        One that promises more than the last repeated is not held down.
        """
        if source in self._promises:
            return
        distance = self._distance(requester)
        at, timestamp = self._promised.get(source, (None, NO_TIMESTAMP))
        if at is not None and at > now_ns - HOLD_DOWN_DISTANCES * distance and held <= timestamp:
            self.held_down += 1
            return
        answer = _Answer(now_ns, distance, 1, requester, 0)
        ticket = self._promises[source] = _Ticket(answer, source, held, held, self._draw(answer), promise=True)
        self._timers.arm(ticket, ticket.due)

    def promise_repaired(self, source: MemberId, now_ns: int, timestamp: Timestamp) -> None:
        """Somebody else repeated a source's keep-alive with this timestamp."""
        ticket = self._promises.pop(source, None)
        if ticket is not None:
            self._timers.cancel(ticket)
            self.suppressed += 1
        self._promised[source] = (now_ns, timestamp)

    def cancel_source(self, source: MemberId) -> None:
        """Forget a source and every repair of it."""
        for ticket in self._tables.pop(source, ()):
            self._timers.cancel(ticket)
        promise = self._promises.pop(source, None)
        if promise is not None:
            self._timers.cancel(promise)
        self._repaired.pop(source, None)
        self._promised.pop(source, None)

    def drop(self, source: MemberId, upto: int) -> None:
        """Frames up to and including this seq are not held any more."""
        table = self._tables.get(source)
        if table is not None:
            self._cut(source, table, 0, upto)

    def next_deadline(self) -> int | None:
        due = self._timers.next_deadline()
        return None if due is None else max(due, self._blocked_until)

    def tick(self, now_ns: int) -> RepairsDue:
        """What is due and within the bandwidth; the rest stays due until the bandwidth allows it."""
        if now_ns < self._blocked_until:
            return RepairsDue()
        promises: list[MemberId] = []
        exchange: Exchange | None = None
        self._bucket.fill(now_ns)
        spans: list[Span] = []
        while now_ns >= self._blocked_until and (at := self._timers.next_deadline()) is not None and at <= now_ns:
            for ticket in self._timers.pop_due(at):
                if ticket.promise:
                    promises.append(ticket.source)
                    self._repeat_promise(ticket, now_ns)
                else:
                    spans.extend(self._repeat(ticket, now_ns))
                    answer = ticket.answer
                    exchange = Exchange.of(answer.requester, answer.clock, now_ns - answer.scheduled)
        return RepairsDue(spans=list(coalesced(spans)), promises=promises, exchange=exchange)

    def _repeat(self, ticket: _Ticket, now_ns: int) -> list[Span]:
        frames = min(ticket.last - ticket.first + 1, self._bucket.frames())
        source, first = ticket.source, ticket.first
        if frames:
            self._bucket.spend(frames * self._frame_bytes)
            self._cut(source, self._tables[source], first, first + frames - 1)
            self._remember(source, first, first + frames - 1, ticket.answer, now_ns, own=True)
            self.frames_sent += frames
            if not ticket.answer.settled:
                ticket.answer.settled = True
                self.repairs_sent += 1
                self.window.sent((ticket.due - ticket.late - ticket.answer.scheduled) / ticket.answer.distance)
            if first + frames > ticket.last:
                return [Span(source, first, ticket.last)]
        self._timers.arm(ticket, ticket.due)
        self._blocked_until = self._bucket.blocked_until(ticket.last - ticket.first + 1)
        return [Span(source, first, ticket.first - 1)] if frames else []

    def _repeat_promise(self, ticket: _Ticket, now_ns: int) -> None:
        self._bucket.spend(PROMISE_BYTES)
        del self._promises[ticket.source]
        self._promised[ticket.source] = (now_ns, Timestamp(ticket.last))
        self.repairs_sent += 1

    def _draw(self, answer: _Answer) -> int:
        """Uniform in [low * d, (low + high) * d] (T3.4)."""
        self._farthest = max(self._farthest, answer.distance)
        factor = self.window.low + self.window.high * self._rng.random()
        return answer.scheduled + round(factor * answer.distance)

    def _repeated_before(self, source: MemberId, first: int, last: int) -> bool:
        """Whether this member itself repeated some of this, longer ago than who asks for it now can have asked."""
        return any(old.own for old in self._repaired_since(source, first, last, 0))

    def _in_vain(self, answer: _Answer) -> int:
        """Who is asked again may not be heard there: others go first, whom it would silence."""
        return round(IN_VAIN_WINDOWS * (self.window.low + self.window.high) * answer.distance)

    def _distance(self, member: MemberId) -> int:
        return max(self._floor, self._distances.to(member))

    def _cut(self, source: MemberId, table: Disjoint[_Ticket], first: int, last: int) -> list[_Ticket]:
        taken, tails = table.take(first, last)
        for ticket in taken:
            self._timers.cancel(ticket)
        for ticket in tails:
            self._timers.arm(ticket, ticket.due)
        if not table:
            self._tables.pop(source, None)
        return taken

    def _repaired_since(self, source: MemberId, first: int, last: int, since: int) -> list[_Repaired]:
        repaired = self._repaired.get(source)
        return [old for old in repaired.overlapping(first, last) if old.at > since] if repaired is not None else []

    def _remember(
        self, source: MemberId, first: int, last: int, answer: _Answer | None, now_ns: int, *, own: bool
    ) -> None:
        repaired = self._repaired.get(source)
        if repaired is None:
            repaired = self._repaired[source] = Disjoint()
        repaired.take(first, last)
        for before in repaired.overlapping(first - 1, first - 1):
            if before.answer is answer and before.own == own and now_ns - before.at <= self._floor:
                before.last, before.at = last, now_ns
                return
        repaired.add(_Repaired(answer, first, last, now_ns, own))
        if len(repaired) > REMEMBERED:
            newer = set(sorted(repaired, key=lambda old: old.at)[REMEMBERED // 2 :])
            repaired.retain(newer.__contains__)
