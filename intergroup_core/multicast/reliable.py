"""Reliable multicast at one member: what is here, what is missing, what others asked for (T3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from intergroup_core.config import HEADER_BYTES, Config
from intergroup_core.counters import Counters
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.multicast.archive import Archive
from intergroup_core.multicast.buffer import MessageBuffer
from intergroup_core.multicast.ranges import Promise, Span, without
from intergroup_core.multicast.reception import Reception
from intergroup_core.multicast.repairs import RepairScheduler
from intergroup_core.multicast.requests import RequestScheduler
from intergroup_core.ports import Distances
from intergroup_core.wire.exchange import Exchange, clock_at
from intergroup_core.wire.header import MAX_SEQ
from intergroup_core.wire.messages import KeepAlive, RepairRequest
from intergroup_core.wire.run import Run

MAX_CHANGES = 256
"""Ordered membership messages remembered by a member with a log; each is one small frame."""


@dataclass(slots=True)
class RecoveryDue:
    """What reliable multicast wants sent or said now."""

    request: RepairRequest | None = None
    repairs: list[Run] = field(default_factory=list)
    keepalives: list[bytes] = field(default_factory=list)
    exchange: Exchange | None = None
    """The request that the repairs answer."""
    given_up: list[Span | Promise] = field(default_factory=list)


class ReliableMulticast:
    """Receptions, the message buffer and the two schedulers, which meet nowhere else."""

    def __init__(
        self,
        me: MemberId,
        view_tag: int,
        activations: Mapping[MemberId, int],
        start: int,
        config: Config,
        distances: Distances,
        rng: Random,
        counters: Counters,
        recovered: Callable[[MemberId, int, int], None] | None = None,
        archive: Archive | None = None,
    ) -> None:
        self._me = me
        self._view_tag = view_tag
        self._counters = counters
        self._archive = archive
        self._changes: deque[Run] = deque(maxlen=MAX_CHANGES)
        self._distances = distances
        self._requests = RequestScheduler(config.repair, distances, rng, recovered)
        self._repairs = RepairScheduler(config.repair, distances, rng, config.group.frame_bytes + HEADER_BYTES)
        self._keepalives: dict[MemberId, KeepAlive] = {}
        self.receptions = {source: Reception(activation, start) for source, activation in activations.items()}
        self.buffer = MessageBuffer(config.repair.buffer_bytes)

    def enter(self, view_tag: int) -> None:
        """Requests are made in another view from now on."""
        self._view_tag = view_tag

    def follow(self, source: MemberId, activation: int, promise: int) -> None:
        """Take a source's frames from its activation point on; one that is followed goes on from there at least."""
        reception = self.receptions.get(source)
        if reception is None:
            self.receptions[source] = Reception(activation, promise)
        else:
            reception.skip_to(activation, promise)
            self._requests.drop(source, activation - 1)

    def refollow(self, source: MemberId, activation: int, promise: int) -> list[Run]:
        """Follow a source anew from a frame on; what is here of it and contiguous from there, in order."""
        reception = self.receptions[source] = Reception(activation, promise)
        ready: list[Run] = []
        for run in self.buffer.held(source, activation, MAX_SEQ):
            ready += reception.store(run)
        return ready

    def forget(self, source: MemberId) -> None:
        """A source is not followed any more; what is here of it stays until it is stable."""
        self.receptions.pop(source, None)
        self._keepalives.pop(source, None)
        self._requests.cancel_source(source)

    def want(self, source: MemberId, upto: int, now: int) -> None:
        """Get everything of a source up to a seq and nothing beyond it: a view is to end there."""
        reception = self.receptions[source]
        reception.exists(upto)
        self._requests.drop_after(source, upto)
        self._requests.forget_promise(source)
        self._missing(source, reception.contiguous + 1, upto, now)

    def hasten(self, source: MemberId, upto: int, now: int) -> None:
        """Ask anew, and soon, for what is missing of a source up to a seq: somebody has it, and is waited for."""
        self._requests.cancel_source(source)
        reception = self.receptions[source]
        reception.exists(upto)
        self._missing(source, reception.contiguous + 1, reception.highest, now)

    def contiguous(self) -> dict[MemberId, int]:
        """The last seq of each source below which nothing is missing."""
        return {source: reception.contiguous for source, reception in self.receptions.items()}

    def sent(self, run: Run) -> None:
        """This member's own frames: here by definition."""
        self.receptions[self._me].store(run)
        self.buffer.add(run)
        self._remember_change(run)

    def echoed(self, run: Run, now: int) -> None:
        """This member's own frames, come back: news only where somebody else repaired them."""
        if self._repaired_by_another(run):
            self._repairs.repaired(run.source, run.seq, run.last_seq, now)

    def arrived(self, run: Run, now: int) -> list[Run]:
        """Frames from the network; the runs that are contiguous because of them, in order."""
        source = run.source
        reception = self.receptions[source]
        if self._repaired_by_another(run):
            self._counters.repairs_received += run.count
            self._repairs.repaired(source, run.seq, run.last_seq, now)
        known = reception.highest
        fresh = reception.accept(run)
        if not fresh:
            self._counters.duplicates_received += run.count
            return []
        ready: list[Run] = []
        self._remember_change(run)
        for part in fresh:
            self.buffer.add(part)
            ready += reception.store(part)
            if self._requests.waiting(source):
                self._requests.arrived(source, part.seq, part.last_seq, now)
        if run.seq > known + 1:
            self._missing(source, known + 1, run.seq - 1, now)
        return ready

    def _repaired_by_another(self, run: Run) -> bool:
        """What this member repeated itself may come back to it."""
        return run.repair is not None and run.repair.by != self._me

    def refused(self, run: Run, now: int) -> None:
        """Frames that were not believed: they exist, so they are asked for again (D4)."""
        self.exists(run.source, run.last_seq, now)

    def exists(self, source: MemberId, seq: int, now: int) -> None:
        """A source is known to have sent up to a seq; what is not here of that is missing."""
        reception = self.receptions[source]
        known = reception.highest
        reception.exists(seq)
        if seq > known:
            self._missing(source, known + 1, seq, now)

    def _missing(self, source: MemberId, first: int, last: int, now: int) -> None:
        for start, stop in self.receptions[source].gaps(first, last):
            self._counters.losses_detected += stop - start + 1
            self._requests.missing(source, start, stop, now)

    def keepalive(self, keepalive: KeepAlive, now: int) -> bool:
        """A source's promise; whether nothing before it is missing here (D2)."""
        source = keepalive.source
        known = self._keepalives.get(source)
        if known is None or keepalive.timestamp > known.timestamp:
            self._keepalives[source] = keepalive
        if keepalive.repaired:
            self._repairs.promise_repaired(source, now, keepalive.timestamp)
        self.exists(source, keepalive.seq, now)
        return self.receptions[source].keepalive(keepalive.seq, keepalive.timestamp)

    def promise_reached(self, source: MemberId) -> int:
        """A source's promise as it stands; a request for it that it satisfies is over."""
        reception = self.receptions[source]
        reception.settle_promises()
        if self._requests.wants_promise(source):
            self._requests.promise_arrived(source, Timestamp(reception.promise))
        return reception.promise

    def want_promise(self, source: MemberId, timestamp: int, now: int) -> None:
        """Ordered delivery waits for a source; if frames of it are missing, those are asked for anyway."""
        if not self._requests.waiting(source):
            self._requests.want_promise(source, Timestamp(timestamp), now)

    def requested(self, request: RepairRequest, now: int) -> None:
        """Somebody misses something: back off if this member does too, repair what it has."""
        requester = request.requester
        for source, first, last in request.ranges:
            if source in self.receptions:
                self._requests.overheard(requester, source, first, last, now)
            # What an earlier view left behind is kept for those that have not followed yet.
            for run in self._held(source, first, last):
                self._repairs.requested(requester, source, run.seq, run.last_seq, now, request.clock)
        for source, timestamp in request.promises:
            if source not in self.receptions:
                # It left: its last frame says so, and whoever waits for more of it lacks that.
                self._repair_newest(requester, source, now)
            elif source != self._me:
                self._requests.overheard_promise(requester, source, timestamp, now)
                self._promise_requested(requester, source, timestamp, now)

    def _held(self, source: MemberId, first: int, last: int) -> list[Run]:
        """What is here of a range: in the buffer, else in the log, which still has what everybody once had (R6)."""
        buffered = self.buffer.held(source, first, last)
        if self._archive is None:
            return buffered
        found: list[Run] = []
        for start, stop in without(first, last, [(run.seq, run.last_seq) for run in buffered]):
            found += self._archive.held(source, start, stop)
            found += [run for run in self._changes if run.source == source and start <= run.seq <= stop]
        self._counters.frames_from_log += sum(run.count for run in found)
        return sorted([*buffered, *found], key=lambda run: run.seq) if found else buffered

    def _last_change(self, source: MemberId) -> Run | None:
        return next((run for run in reversed(self._changes) if run.source == source), None)

    def _remember_change(self, run: Run) -> None:
        """Ordered membership messages are in no log, and who lacks one lacks all that comes after."""
        if run.change and self._archive is not None:
            self._changes.append(run)

    def _promise_requested(self, requester: MemberId, source: MemberId, timestamp: int, now: int) -> None:
        keepalive = self._keepalives.get(source)
        if keepalive is not None and keepalive.timestamp >= timestamp:
            self._repairs.requested_promise(requester, source, now, keepalive.timestamp)
            return
        newest = self.buffer.newest(source)
        if newest is not None and newest.last_timestamp >= timestamp:
            self._repair_newest(requester, source, now)

    def _repair_newest(self, requester: MemberId, source: MemberId, now: int) -> None:
        newest = self.buffer.newest(source) or self._last_change(source)
        if newest is not None:
            self._repairs.requested(requester, source, newest.last_seq, newest.last_seq, now)

    def forgive(self, now: int) -> None:
        """This member itself stood still (M8)."""
        self._requests.forgive(now)

    def next_deadline(self) -> int | None:
        asking, answering = self._requests.next_deadline(), self._repairs.next_deadline()
        if asking is None or (answering is not None and answering < asking):
            return answering
        return asking

    def tick(self, now: int) -> RecoveryDue:
        due = RecoveryDue()
        asked = self._requests.tick(now)
        if asked.spans or asked.promises:
            due.request = RepairRequest(
                requester=self._me,
                view_tag=self._view_tag,
                ranges=tuple((span.source, span.first, span.last) for span in asked.spans),
                promises=tuple(asked.promises),
                clock=clock_at(now),
            )
        due.given_up = asked.given_up
        repairs = self._repairs.tick(now)
        due.exchange = repairs.exchange
        for span in repairs.spans:
            due.repairs += self._held(span.source, span.first, span.last)
        known = self._keepalives
        due.keepalives = [known[source].frame for source in repairs.promises if source in known]
        counters = self._counters
        counters.requests_sent = self._requests.requests_sent
        counters.requests_suppressed = self._requests.suppressed
        counters.repairs_sent = self._repairs.frames_sent
        counters.repairs_suppressed = self._repairs.suppressed
        return due
