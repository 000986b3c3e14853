"""What arrives: frames, promises and requests of sources, which come and go."""

from __future__ import annotations

from collections import deque

from intergroup_core.datapath.engines import Engines
from intergroup_core.delivery.rso import ReliableSourceOrdered
from intergroup_core.ids import Instant, MemberId, Service, timestamp_at
from intergroup_core.wire.control import decode_change
from intergroup_core.wire.exchange import Repair
from intergroup_core.wire.membership import Add
from intergroup_core.wire.messages import KeepAlive, RepairRequest
from intergroup_core.wire.run import Run

HELD_PROMISES = 64
"""Sources not known yet whose last keep-alive is kept."""
HELD_BYTES = 2_000_000
"""Frames of a view or a source that is not known yet are kept up to this; more are asked for again later (M0)."""


class Incoming(Engines):
    """Takes frames of the sources it follows in its epoch, and holds some of what it does not know yet (M0)."""

    def receive_run(self, run: Run, now: Instant) -> bool:
        """Frames of a source; False where its view or the source is not known here."""
        counters = self.counters
        counters.frames_received += run.count
        counters.bytes_received += run.nbytes
        if run.repair is not None:
            self._measure(run.repair, now)
        if self.service is Service.UU and run.source != self.me:
            self._delivery.arrived(run)
            # Whatever the application saw comes before what it sends next, wherever it came from (D6).
            if run.last_timestamp <= timestamp_at(now.wall) + self._clock_bound:
                self._clock.observe(run.last_timestamp)
        return self._take_run(run, now)

    def _measure(self, repair: Repair, now: Instant) -> None:
        """A repair that answers this member's own request tells how far away the one that sent it is (R4)."""
        if self._control is None or repair.answers is None:
            return
        round_trip = repair.answers.round_trip_us(self.me, now.mono)
        if round_trip is not None:
            self._control.exchanged(repair.by, round_trip)

    def _take_run(self, run: Run, now: Instant) -> bool:
        multicast = self._multicast
        if multicast is None:
            return True
        if run.source not in multicast.receptions or run.view_tag != self.view_tag:
            if not self._live:
                self.counters.drop(self._refusal(run.source, run.view_tag), run.count)
            return False
        if run.source == self.me:
            multicast.echoed(run, now.mono)
            return True
        if not self._believes(run.source, run.last_timestamp, now):
            multicast.refused(run, now.mono)
            return True
        self._heard = max(self._heard, run.last_timestamp)
        for ready in multicast.arrived(run, now.mono):
            self._ordered_run(ready, now)
        self._promised(run.source, multicast.promise_reached(run.source))
        self.reports.data_arrived(run.count, now.mono)
        return True

    def receive_keepalive(self, keepalive: KeepAlive, now: Instant) -> bool:
        """A source's promise; False where its view or the source is not known here."""
        multicast = self._multicast
        source = keepalive.source
        if multicast is None or source == self.me:
            return True
        if source not in multicast.receptions or keepalive.view_tag != self.view_tag:
            if not self._live:
                self.counters.drop(self._refusal(source, keepalive.view_tag))
            return False
        if not self._believes(source, keepalive.timestamp, now):
            return True
        if multicast.keepalive(keepalive, now.mono):
            self._promised(source, multicast.promise_reached(source))
            self.reports.progressed(now.mono)
        return True

    def receive_request(self, request: RepairRequest, now: Instant) -> None:
        multicast = self._multicast
        if multicast is None:
            return
        sender = self.sender
        if sender is not None:
            if any(source == self.me for source, _, _ in request.ranges):
                cut = sender.pacer.lost(2 * self._distances.to(request.requester), now.mono)
                self.counters.bandwidth_cuts += cut
            if self.stamping and any(source == self.me for source, _ in request.promises):
                sender.keepalive.wanted(now.mono)
        multicast.requested(request, now.mono)

    def hold(self, run: Run) -> None:
        """Keep frames whose view or source is not known yet, as long as there is room (M0)."""
        if self._held_bytes + run.nbytes > HELD_BYTES:
            self.counters.drop("held", run.count)
            return
        self.counters.frames_held += run.count
        self._held.append(run)
        self._held_bytes += run.nbytes

    def hold_keepalive(self, keepalive: KeepAlive) -> None:
        """The last promise of a source that is about to be known."""
        if keepalive.source in self._held_promises or len(self._held_promises) < HELD_PROMISES:
            self._held_promises[keepalive.source] = keepalive

    def _replay_held(self, now: Instant) -> None:
        """Take what was held and is known now; what belongs to the past is dropped."""
        assert self._multicast is not None
        held, self._held, self._held_bytes = self._held, deque(), 0
        for run in held:
            if run.view_tag == self.view_tag and run.source in self._multicast.receptions:
                self._take_run(run, now)
            elif run.last_timestamp > self.acknowledged:
                self._held.append(run)
                self._held_bytes += run.nbytes
        promises, self._held_promises = self._held_promises, {}
        for keepalive in promises.values():
            if keepalive.view_tag == self.view_tag and keepalive.source in self._multicast.receptions:
                self.receive_keepalive(keepalive, now)

    def _refusal(self, source: MemberId, view_tag: int) -> str:
        """Why a frame is passed over: another view, or a source this member does not follow."""
        return "source" if view_tag == self.view_tag and source in self.members else "view"

    def _believes(self, source: MemberId, timestamp: int, now: Instant) -> bool:
        assert self._guard is not None, "start comes before receive"
        if not self._guard.admits(source, timestamp, now.mono):
            self.counters.clock_refused += 1
            self.wild.add(source)
            return False
        self.wild.discard(source)
        self._clock.observe(timestamp)
        return True

    def _ordered_run(self, run: Run, now: Instant) -> None:
        if self.order is not None:
            self.order.ordered(run)
        if self._delivery is not self.order:
            self._delivery.ordered(run)
        if run.change and self._targets:
            self._register_wanted(now)

    def _promised(self, source: MemberId, timestamp: int) -> None:
        if self.order is not None and source != self.me:
            self.order.promised(source, timestamp)
        if self._delivery is not self.order:
            self._delivery.promised(source, timestamp)

    def _register_wanted(self, now: Instant) -> None:
        """In a repair, sources that others follow already: their Adds are here and have not taken effect."""
        assert self.order is not None
        for timestamp, body in self.order.queued_changes():
            change = decode_change(body)
            if isinstance(change, Add) and change.peer.id in self._targets:
                self._add_source(change.peer.id, timestamp, change.first_seq, now)

    def _add_source(self, source: MemberId, promise: int, activation: int, now: Instant) -> None:
        """Take a source's frames from here on; they all come after its Add in the order (M13)."""
        assert self.order is not None
        assert self._multicast is not None
        assert self._guard is not None
        # A late copy of a request may name a first frame that is long behind, and another sponsor may have acted on it.
        activation = max(activation, self.departed.get(source, 0) + 1)
        if source in self._present or not self.order.begins_above(source, activation):
            self.order.add(source, promise, activation)
            return
        self.order.forget(source)
        self._multicast.forget(source)
        self.departed.pop(source, None)
        self.order.add(source, promise, activation)
        self._guard.follow(source, promise, now.mono)
        if isinstance(self._delivery, ReliableSourceOrdered) and self._chooses(source):
            self._delivery.add(source, promise, activation)
        for run in self._multicast.refollow(source, activation, promise):
            self._ordered_run(run, now)
        if source in self._targets:
            self._multicast.want(source, self._targets[source], now.mono)
        self._replay_held(now)

    def source_left(self, source: MemberId, timestamp: int, seq: int) -> None:
        """A source's Leave was delivered: nothing of it comes any more, unless it was added again meanwhile."""
        assert self.order is not None
        assert self._multicast is not None
        self._present.discard(source)
        self.order.leave(source, timestamp)
        if source in self.order:
            return
        self.departed[source] = seq
        self._multicast.forget(source)
        if isinstance(self._delivery, ReliableSourceOrdered):
            self._delivery.remove(source)

    def has(self, source: MemberId, seq: int) -> bool:
        """Whether a frame was received here."""
        if self._multicast is None:
            return False
        reception = self._multicast.receptions.get(source)
        if reception is not None and reception.contiguous >= seq:
            return True
        return self.departed.get(source, 0) >= seq or bool(self._multicast.buffer.held(source, seq, seq))
