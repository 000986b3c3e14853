"""Asking for what is missing, once for everybody who misses it (T3.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from intergroup_core.config import RepairConfig
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.multicast.adaptation import RequestAdaptation
from intergroup_core.multicast.losses import Experience, Loss, Ticket
from intergroup_core.multicast.ranges import Disjoint, Promise, Span, coalesced
from intergroup_core.ports import Distances
from intergroup_core.timers import Timers
from intergroup_core.wire.header import MAX_SEQ

BACKOFF_BASE = 3
FARTHER = 2.5
"""A requester at this many times my distance to the source is at least 1.5 times as far from it (by the triangle)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsDue:
    """What to ask for now, and what nobody has answered for too long."""

    spans: list[Span] = field(default_factory=list)
    promises: list[Promise] = field(default_factory=list)
    given_up: list[Span | Promise] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.spans or self.promises or self.given_up)


class RequestScheduler:
    """Asks for missing frames and promises after a random, distance-scaled delay, and again until they come (T3.3).

    Tickets are bounded by the gaps in what the member holds. `recovered(source, waited_ns, distance_ns)` is called for
    every loss whose last frame came.
    """

    def __init__(
        self,
        config: RepairConfig,
        distances: Distances,
        rng: Random,
        recovered: Callable[[MemberId, int, int], None] | None = None,
    ) -> None:
        self._config = config
        self._distances = distances
        self._rng = rng
        self._recovered = recovered
        self._floor = round(config.distance_floor_us * 1_000)
        self._longest = round(config.backoff_max_ms * 1_000_000)
        self._give_up = round(config.give_up_ms * 1_000_000)
        self._waiting: dict[MemberId, Disjoint[Ticket]] = {}
        self._promises: dict[MemberId, Ticket] = {}
        self._experience: dict[MemberId, Experience] = {}
        self._timers: Timers[Ticket | Loss] = Timers()
        self._next_request = 0
        self._forgiven = -self._give_up
        self.requests_sent = 0
        self.suppressed = 0
        self.given_up = 0

    def waiting(self, source: MemberId) -> bool:
        """Whether frames of this source are missing."""
        return source in self._waiting

    def wants_promise(self, source: MemberId) -> bool:
        return source in self._promises

    def window(self, source: MemberId) -> RequestAdaptation:
        """The timer parameters for this source's losses."""
        return self._experience_of(source).window

    def missing(self, source: MemberId, first: int, last: int, now_ns: int) -> None:
        """A gap was noticed; what of it was known already keeps its timer."""
        table = self._waiting.get(source) or Disjoint()
        holes = table.uncovered(first, last)
        if not holes:
            return
        self._waiting[source] = table
        self.window(source).noticed()
        frames = sum(end - start + 1 for start, end in holes)
        loss = Loss(source, now_ns, self._distance(source), frames, frames)
        self._timers.arm(loss, now_ns + self._give_up)
        for start, end in holes:
            ticket = Ticket(loss, start, end)
            table.add(ticket)
            self._arm(ticket, now_ns)

    def arrived(self, source: MemberId, first: int, last: int, now_ns: int) -> None:
        """Frames came, as originals or as repairs; what else is missing keeps its timer and back-off."""
        table = self._waiting.get(source)
        if table is None:
            return
        for ticket in self._cut(table, first, last):
            self._settle(ticket, now_ns)
        if not table:
            del self._waiting[source]

    def overheard(self, requester: MemberId, source: MemberId, first: int, last: int, now_ns: int) -> None:
        """Another member asked: what this one would have asked for too waits for that answer."""
        experience = self._experience.get(source)
        if experience is None:
            return
        repeated = experience.answered_of(first, last, now_ns)
        table = self._waiting.get(source)
        for ticket in table.overlapping(first, last) if table is not None else ():
            start, end = max(first, ticket.first), min(last, ticket.last)
            if now_ns < ticket.deaf_until:
                repeated.append((ticket.loss, end - start + 1))
                continue
            assert table is not None
            for part in self._cut(table, start, end):
                table.add(part)
                self._yield_to_other(part, now_ns)
        farther = self._distance(requester) > FARTHER * self._distance(source)
        for loss, frames in repeated:
            experience.window.duplicate(frames / loss.frames, of_mine_from_farther=loss.sent and farther)

    def want_promise(self, source: MemberId, timestamp: Timestamp, now_ns: int) -> None:
        """Delivery waits for this source to promise at least this timestamp (D13)."""
        ticket = self._promises.get(source)
        if ticket is None:
            loss = Loss(source, now_ns, self._distance(source), 1, 1, promise=True)
            self._timers.arm(loss, now_ns + self._give_up)
            ticket = self._promises[source] = Ticket(loss, timestamp, timestamp)
            self._arm(ticket, now_ns)
        elif timestamp > ticket.last:
            ticket.last = timestamp
            ticket.loss.raised = now_ns

    def promise_arrived(self, source: MemberId, timestamp: Timestamp) -> None:
        """This source promised this much, by whatever frame."""
        ticket = self._promises.get(source)
        if ticket is None or timestamp < ticket.first:
            return
        if timestamp < ticket.last:
            ticket.first, ticket.loss.silent_since = ticket.last, ticket.loss.raised
            return
        del self._promises[source]
        self._discard(ticket)

    def overheard_promise(self, requester: MemberId, source: MemberId, timestamp: Timestamp, now_ns: int) -> None:
        """Another member asked for a promise; one too low for this member does not spare its own request."""
        ticket = self._promises.get(source)
        if ticket is not None and timestamp >= ticket.last and now_ns >= ticket.deaf_until:
            self._yield_to_other(ticket, now_ns)

    def cancel_source(self, source: MemberId) -> None:
        """Forget a source and everything wanted of it."""
        for ticket in self._waiting.pop(source, ()):
            self._discard(ticket)
        promise = self._promises.pop(source, None)
        if promise is not None:
            self._discard(promise)
        self._experience.pop(source, None)

    def drop(self, source: MemberId, upto: int) -> None:
        """Frames up to and including this seq are not wanted any more."""
        table = self._waiting.get(source)
        if table is None:
            return
        for ticket in self._cut(table, 0, upto):
            self._discard(ticket)
        if not table:
            del self._waiting[source]

    def drop_after(self, source: MemberId, seq: int) -> None:
        """Frames beyond this seq are not wanted any more."""
        table = self._waiting.get(source)
        if table is None:
            return
        for ticket in self._cut(table, seq + 1, MAX_SEQ):
            self._discard(ticket)
        if not table:
            del self._waiting[source]

    def forget_promise(self, source: MemberId) -> None:
        """No promise of this source is waited for any more."""
        ticket = self._promises.pop(source, None)
        if ticket is not None:
            self._discard(ticket)

    def forgive(self, now_ns: int) -> None:
        """This member itself stood still: the time until now is no silence of others (M8)."""
        self._forgiven = now_ns

    def next_deadline(self) -> int | None:
        due = self._timers.next_deadline()
        return None if due is None else max(due, self._next_request)

    def tick(self, now_ns: int) -> RequestsDue:
        """What is due, at most one request full; what is left over is due a least distance later."""
        due = RequestsDue()
        if now_ns < self._next_request:
            return due
        limit = self._config.request_ranges
        asking: list[Ticket] = []
        while len(asking) < limit and (at := self._timers.next_deadline()) is not None and at <= now_ns:
            for key in self._timers.pop_due(at):
                if isinstance(key, Loss):
                    due.given_up.extend(self._unanswered(key, now_ns))
                elif key.loss.promise:
                    due.promises.append(Promise(key.loss.source, Timestamp(key.last)))
                    self._asked_for(key, now_ns)
                elif len(asking) < limit:
                    asking.append(key)
                else:
                    self._timers.arm(key, at)
        if len(asking) == limit:
            self._next_request = now_ns + self._floor
        for ticket in asking:
            self._asked_for(ticket, now_ns)
        due.spans.extend(coalesced([Span(ticket.loss.source, ticket.first, ticket.last) for ticket in asking]))
        self.given_up += len(due.given_up)
        return due

    def _experience_of(self, source: MemberId) -> Experience:
        experience = self._experience.get(source)
        if experience is None:
            experience = self._experience[source] = Experience(self._config)
        return experience

    def _distance(self, member: MemberId) -> int:
        return max(self._floor, self._distances.to(member))

    def _arm(self, ticket: Ticket, now_ns: int) -> None:
        """Uniform in 3^i * [low * d, (low + high) * d]; a repetition outlasts the usual answer, up to a cap (R2)."""
        experience = self._experience_of(ticket.loss.source)
        distance = self._distance(ticket.loss.source)
        scale = BACKOFF_BASE ** min(ticket.attempt, self._config.backoff_limit) * distance
        low = scale * experience.window.low
        spread = scale * experience.window.high
        if ticket.attempt:
            patience = experience.answer.patience * distance
            longest = max(self._longest, 2 * patience)
            # The lower end is capped at half, so that members at the cap do not all ask at the same instant.
            low = min(max(low, patience), longest / 2)
            spread = min(spread, longest - low)
        delay = round(low + spread * self._rng.random())
        ticket.due = now_ns + delay
        if ticket.attempt:
            ticket.deaf_until = now_ns + delay // 2
        self._timers.arm(ticket, ticket.due)

    def _asked_for(self, ticket: Ticket, now_ns: int) -> None:
        self.requests_sent += 1
        loss = ticket.loss
        if loss.is_untimed():
            self.window(loss.source).sent(loss.waited(now_ns))
        loss.sent = True
        self._back_off(ticket, now_ns)

    def _yield_to_other(self, ticket: Ticket, now_ns: int) -> None:
        self.suppressed += 1
        self._spare(ticket.loss, now_ns)
        self._back_off(ticket, now_ns)

    def _spare(self, loss: Loss, now_ns: int) -> None:
        if loss.is_untimed():
            self.window(loss.source).spared(loss.waited(now_ns))

    def _back_off(self, ticket: Ticket, now_ns: int) -> None:
        if ticket.attempt == 0:
            ticket.asked = now_ns
        ticket.attempt += 1
        self._arm(ticket, now_ns)

    def _cut(self, table: Disjoint[Ticket], first: int, last: int) -> list[Ticket]:
        taken, tails = table.take(first, last)
        for ticket in taken:
            self._timers.cancel(ticket)
        for ticket in tails:
            self._timers.arm(ticket, ticket.due)
        return taken

    def _settle(self, ticket: Ticket, now_ns: int) -> None:
        loss = ticket.loss
        loss.silent_since = now_ns
        experience = self._experience[loss.source]
        self._spare(loss, now_ns)
        if ticket.attempt:
            experience.answer.took((now_ns - ticket.asked) / loss.distance, ambiguous=ticket.attempt > 1)
            experience.remember(ticket, now_ns)
        self._discard(ticket)
        if not loss.missing and self._recovered is not None:
            self._recovered(loss.source, now_ns - loss.noticed, loss.distance)

    def _discard(self, ticket: Ticket) -> None:
        self._timers.cancel(ticket)
        ticket.loss.missing -= 1 if ticket.loss.promise else ticket.last - ticket.first + 1
        if not ticket.loss.missing:
            self._timers.cancel(ticket.loss)

    def _unanswered(self, loss: Loss, now_ns: int) -> list[Span | Promise]:
        silent_since = max(loss.silent_since, self._forgiven)
        if now_ns < silent_since + self._give_up:
            self._timers.arm(loss, silent_since + self._give_up)
            return []
        loss.silent_since = now_ns
        self._timers.arm(loss, now_ns + self._give_up)  # said again if nothing changes
        if loss.promise:
            return [Promise(loss.source, Timestamp(self._promises[loss.source].last))]
        tickets = [ticket for ticket in self._waiting[loss.source] if ticket.loss is loss]
        return list(coalesced([Span(loss.source, ticket.first, ticket.last) for ticket in tickets]))
