"""The way of data through one member: between the network, reliable multicast, delivery and the sender.

It knows which sources it follows and in which epoch, not why: whoever owns it tells it of views.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from random import Random

from intergroup_core.config import HEADER_BYTES, Config
from intergroup_core.counters import Counters
from intergroup_core.delivery.clock import ClockGuard, HybridClock
from intergroup_core.delivery.flow import Pacer
from intergroup_core.delivery.outbox import Outbox
from intergroup_core.delivery.rso import ReliableSourceOrdered
from intergroup_core.delivery.rto import ReliableTimestampOrdered
from intergroup_core.delivery.sender import Sender
from intergroup_core.delivery.service import DeliveryService
from intergroup_core.delivery.uu import UnreliableUnordered
from intergroup_core.effects import Deliver, Effect, Multicast, Order, SendRoom, Stable, Suspect
from intergroup_core.hierarchy.flat import FlatReports
from intergroup_core.ids import (
    MAX_TIMESTAMP,
    Instant,
    MemberId,
    Service,
    Timestamp,
    format_member,
    timestamp_at,
    timestamp_span,
)
from intergroup_core.multicast.ranges import Span
from intergroup_core.multicast.reliable import ReliableMulticast
from intergroup_core.ports import Distances
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.control import decode_change, encode_change, encode_control
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.membership import Add, Change
from intergroup_core.wire.messages import ControlMessage, KeepAlive, RepairRequest
from intergroup_core.wire.run import Run

MILLISECOND = 1_000_000
MICROSECOND = 1_000
PUMP_BYTES = 250_000
"""What one stimulus emits, give or take a message: the network takes it while it is warm, and others get a turn."""
HELD_BYTES = 2_000_000
"""Frames of a view or a source that is not known yet are kept up to this; more are asked for again later (M0)."""

Changed = Callable[[Change, MemberId, int, Timestamp, Instant], None]
"""An ordered membership message took its place: what it says, its sender, seq and timestamp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Where a member's stream starts: a view at its first message, or a sponsor's cut."""

    view_tag: int
    position: int
    """Of the last message that lies before it."""
    activations: Mapping[MemberId, int]
    promises: Mapping[MemberId, int]
    counted: frozenset[MemberId]


class DataPath:
    """A member in an epoch, whatever its membership protocol is.

    Senders follow the timestamp order inside whatever service their application chose, so that causality
    holds (D6). So does every reliable member whose views change, for the order tells it where they do. A member that
    only wants `uu` takes part in nothing else.
    """

    def __init__(
        self,
        *,
        me: MemberId,
        maker: FrameMaker,
        service: Service,
        config: Config,
        clock: HybridClock,
        distances: Distances,
        rng: Random,
        counters: Counters,
        effects: list[Effect],
        beginning: Beginning,
        sends: bool,
        live: bool = False,
        chosen: frozenset[MemberId] | None = None,
        outbox: Outbox | None = None,
        recovered: Callable[[MemberId, int, int], None] | None = None,
        changed: Changed | None = None,
    ) -> None:
        self.me, self.service, self.counters = me, service, counters
        self.members: tuple[MemberId, ...] = tuple(beginning.activations)
        self.view_tag = beginning.view_tag
        self._live = live
        self._config = config
        self._clock = clock
        self._distances = distances
        self._maker = maker
        self._effects = effects
        self._chosen = chosen
        self._changed = changed
        points = dict(beginning.activations)
        followed = {source: point for source, point in points.items() if self._chooses(source)}
        if not sends and not live:
            points = followed
        self._burst = max(1, config.send.burst_bytes // config.group.frame_bytes) * config.group.frame_bytes
        self.follows = live or sends or service is not Service.UU
        ordered = live or sends or service is Service.RTO
        self.order = self._make_order(beginning) if ordered else None
        self._delivery = self._make_delivery(followed, beginning)
        self._multicast = (
            ReliableMulticast(
                me, self.view_tag, points, beginning.position, config, distances, rng, counters, recovered
            )
            if self.follows
            else None
        )
        if self._multicast is not None:
            for source, point in points.items():
                self._multicast.follow(source, point, beginning.promises[source])
        self.reports = FlatReports(
            me, self.view_tag, beginning.counted, points, config.report, config.group.frame_bytes
        )
        self.sender: Sender | None = None
        self._outbox = outbox
        self._pacer = Pacer(config.send, rng)
        if sends:
            self.start_sending(points.get(me, 1))
        self.stamping = sends
        """Whether this member may stamp: it sends, and no repair has closed the view (D11)."""
        self.permitted = True
        """Whether the quorum rule lets this member send data (M11)."""
        self.delivering = True
        """Whether ordered messages reach the application: a repair halts that (T5.4.2)."""
        self._guard: ClockGuard | None = None
        self._clock_bound = 0
        self._app_room = config.report.room_bytes
        self._congested = False
        self._stalled_at: int | None = None
        self._heard = 0
        self._more_at: int | None = None
        self._held: deque[Run] = deque()
        self._held_bytes = 0
        self.departed: dict[MemberId, int] = {}
        """Sources that left in this epoch, and their last seq."""
        self._targets: dict[MemberId, int] = {}
        self.wild: set[MemberId] = set()
        """Sources whose last frame had a timestamp not to be believed (D4)."""
        self.acknowledged = Timestamp(beginning.position)
        """Everything at or below is delivered here."""
        self.stable = Timestamp(beginning.position)
        """Everything at or below is delivered at every counted member."""

    def _chooses(self, source: MemberId) -> bool:
        return self._chosen is None or source in self._chosen

    def _make_order(self, beginning: Beginning) -> ReliableTimestampOrdered:
        order = ReliableTimestampOrdered(self.me, (), beginning.position, self.counters)
        for source, activation in beginning.activations.items():
            order.add(source, beginning.promises[source], activation)
        return order

    def _make_delivery(self, followed: Mapping[MemberId, int], beginning: Beginning) -> DeliveryService:
        match self.service:
            case Service.UU:
                return UnreliableUnordered(self.counters)
            case Service.RSO:
                delivery = ReliableSourceOrdered({}, beginning.position)
                for source, activation in followed.items():
                    delivery.add(source, beginning.promises[source], activation)
                return delivery
            case Service.RTO:
                assert self.order is not None
                return self.order

    def start(self, now: Instant) -> None:
        bound = round(self._config.group.clock_bound_ms * MILLISECOND)
        self._clock_bound = timestamp_span(bound)
        self._guard = ClockGuard(self.members, self.acknowledged, bound, now.mono)
        self._clock.observe(self.acknowledged)

    def start_sending(self, activation: int) -> None:
        """Make what sends; whether it may is said by `stamping`."""
        if self.sender is None:
            parts = (self._config, self._maker, self._clock, self._pacer, self.counters)
            self.sender = Sender(*parts, activation, self._outbox)

    # Receiving

    def receive_run(self, run: Run, now: Instant) -> bool:
        """Frames of a source; False where its view or the source is not known here."""
        counters = self.counters
        counters.frames_received += run.count
        counters.bytes_received += run.nbytes
        if self.service is Service.UU and run.source != self.me:
            self._delivery.arrived(run)
            # Whatever the application saw comes before what it sends next, wherever it came from (D6).
            if run.last_timestamp <= timestamp_at(now.wall) + self._clock_bound:
                self._clock.observe(run.last_timestamp)
        return self._take_run(run, now)

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
        if run.change and self._live:
            change = decode_change(run.frames.view("u1")[0, HEADER_BYTES : HEADER_BYTES + run.end_lengths[0]].tobytes())
            if isinstance(change, Add):
                self._add_source(change.peer.id, run.timestamp, change.first_seq, now)
        if self.order is not None:
            self.order.ordered(run)
        if self._delivery is not self.order:
            self._delivery.ordered(run)

    def _promised(self, source: MemberId, timestamp: int) -> None:
        if self.order is not None and source != self.me:
            self.order.promised(source, timestamp)
        if self._delivery is not self.order:
            self._delivery.promised(source, timestamp)

    # Sources that come and go

    def _add_source(self, source: MemberId, promise: int, activation: int, now: Instant) -> None:
        """An Add is here: its frames count from now on, though they all come after it in the order (M13)."""
        assert self.order is not None
        assert self._multicast is not None
        assert self._guard is not None
        if source not in self.order:
            self._multicast.follow(source, activation, promise)
            self._guard.follow(source, promise, now.mono)
            self.departed.pop(source, None)
        self.order.add(source, promise, activation)
        if isinstance(self._delivery, ReliableSourceOrdered) and self._chooses(source):
            self._delivery.add(source, promise, activation)
        if source in self._targets:
            self._multicast.want(source, self._targets[source], now.mono)
        self._replay_held(now)

    def source_left(self, source: MemberId, timestamp: int, seq: int) -> None:
        """A source's Leave was delivered: nothing of it comes any more, unless it was added again meanwhile."""
        assert self.order is not None
        assert self._multicast is not None
        self.order.leave(source, timestamp)
        if source in self.order:
            return
        self.departed[source] = seq
        self._multicast.forget(source)
        if isinstance(self._delivery, ReliableSourceOrdered):
            self._delivery.remove(source)

    def enter_view(self, members: Collection[MemberId], now: Instant) -> None:
        """The view changed inside the epoch: who is counted, and whether this member sends."""
        self.members = tuple(members)
        self.stamping = self.sender is not None and self.me in members
        self.reports.enter(self.view_tag, members, self._own_activation(), now.mono)
        if self.stamping:
            self._speak(now)

    def _own_activation(self) -> int | None:
        return self.sender.seq + 1 if self.sender is not None and self.stamping else None

    def _speak(self, now: Instant) -> None:
        """A sender's silence would block others (M2)."""
        assert self.sender is not None
        self.sender.keepalive.wanted(now.mono)

    # The end of an epoch

    def halt(self) -> None:
        """A repair is under way: nothing is delivered in order and nothing stamped until it ends."""
        self.delivering = self.stamping = False

    @property
    def last_seq(self) -> int:
        return self.sender.seq if self.sender is not None else 0

    def reach(self, survivors: Collection[MemberId]) -> tuple[tuple[MemberId, int, Timestamp], ...]:
        """What is here of the epoch's sources that do not come along: last contiguous seq, promise (M4)."""
        if self.order is None or self._multicast is None:
            return ()
        found = [
            (source, reception.contiguous, Timestamp(reception.promise))
            for source in self.order.sources
            if source not in survivors and (reception := self._multicast.receptions.get(source)) is not None
        ]
        found += [(source, seq, MAX_TIMESTAMP) for source, seq in self.departed.items() if source not in survivors]
        return tuple(sorted(found))

    def want(self, targets: Mapping[MemberId, int], now: Instant) -> None:
        """Get everything of the epoch up to these seqs, and nothing beyond."""
        assert self._multicast is not None
        self._targets = dict(targets)
        for source, seq in targets.items():
            if source != self.me and source in self._multicast.receptions:
                self._multicast.want(source, seq, now.mono)

    def has_reached(self) -> bool:
        """Whether everything wanted is here."""
        assert self._multicast is not None
        assert self.order is not None
        receptions = self._multicast.receptions
        return all(
            source == self.me or source not in self._targets or receptions[source].contiguous >= self._targets[source]
            for source in self.order.sources
            if source in receptions
        )

    def missing(self) -> list[MemberId]:
        """Sources of which something wanted is not here."""
        assert self._multicast is not None
        assert self.order is not None
        receptions = self._multicast.receptions
        wanted = self._targets.items()
        return [source for source, seq in wanted if source in receptions and receptions[source].contiguous < seq]

    @property
    def changed(self) -> Timestamp:
        """Of the last ordered membership message that took effect."""
        return Timestamp(self.order.changed if self.order is not None else 0)

    def kept(
        self, bound: int, failed: Collection[MemberId], changed: int
    ) -> tuple[Timestamp, tuple[tuple[MemberId, int], ...]]:
        """Up to which membership messages take effect before the epoch ends, and every source's last seq in it.

        The first message beyond those that took effect anywhere still does if everything below it is known; then failed
        senders' data above it is discarded, so that no two components deliver the same data in different views.
        """
        assert self.order is not None
        assert self._multicast is not None
        following = self.order.next_change(bound, failed, changed)
        if following is None:
            changes = changed
        elif following <= bound:
            changes = bound = following
        else:
            changes = changed
        last = dict(self.departed)
        for source in self.order.sources:
            if source in failed:
                last[source] = self.order.kept_seq(source, bound)
            else:
                last[source] = self._multicast.receptions[source].contiguous
        return Timestamp(changes), tuple(sorted(last.items()))

    def has_passed(self, last: Mapping[MemberId, int]) -> bool:
        """Whether something was delivered here that lies beyond a cut (M5)."""
        assert self.order is not None
        return any(
            activation - 1 > last[source] for source, activation in self.order.activations().items() if source in last
        ) or any(seq > last.get(source, seq) for source, seq in self.departed.items())

    def finish(self, last: Mapping[MemberId, int], changes: int, now: Instant) -> None:
        """Deliver what is left of the epoch up to its cut, in order, its views included."""
        assert self.order is not None
        self.order.close(last, changes)
        self.delivering = True
        self._deliver(now)
        self.order.blocked = False

    def begin_epoch(
        self, view_tag: int, start: int, activations: Mapping[MemberId, int], last: Mapping[MemberId, int], now: Instant
    ) -> None:
        """A repair installed a view: its senders start here, everybody else is behind (T5.4.2)."""
        multicast = self._multicast
        assert multicast is not None
        assert self._guard is not None
        self.view_tag = view_tag
        self.members = tuple(activations)
        self._targets.clear()
        self.departed.clear()
        self.wild.clear()
        for source in [source for source in multicast.receptions if source not in activations]:
            multicast.forget(source)
            self._guard.forget(source)
            self.reports.uncount(source)
            if source in last:
                multicast.buffer.drop_after(source, last[source])
        multicast.enter(view_tag)
        for source, activation in activations.items():
            multicast.follow(source, activation, start)
            self._guard.follow(source, start, now.mono)
        self._clock.observe(start)
        self._begin_order(activations, start)
        self._maker = replace(self._maker, view_tag=view_tag)
        self.stamping = self.me in activations
        if self.stamping:
            self.start_sending(activations[self.me])
            assert self.sender is not None
            self.sender.enter(self._maker)
            self._speak(now)
        elif self.sender is not None:
            self.sender.enter(self._maker)
        self.reports.enter(view_tag, activations, self._own_activation(), now.mono)
        self.delivering = True
        self._stalled_at = None
        self._replay_held(now)

    def _begin_order(self, activations: Mapping[MemberId, int], start: int) -> None:
        order = ReliableTimestampOrdered(self.me, activations, start, self.counters, activations)
        if self._delivery is self.order:
            self._delivery = order
        elif isinstance(self._delivery, ReliableSourceOrdered):
            for source in self._delivery.sources:
                if source not in activations:
                    self._delivery.remove(source)
            for source, activation in activations.items():
                if self._chooses(source):
                    self._delivery.add(source, start, activation)
        self.order = order

    def sponsored(self) -> tuple[Timestamp, tuple[tuple[MemberId, int], ...], tuple[tuple[MemberId, Timestamp], ...]]:
        """Where a newcomer may start: what was delivered last here, and each source's next frame and promise."""
        assert self.order is not None
        promises = self.order.promises()
        if self.me in promises and self.sender is not None:
            promises[self.me] = min(promises[self.me], self.sender.promised)
        stamps = tuple((source, Timestamp(promise)) for source, promise in promises.items())
        return Timestamp(self.order.delivered), tuple(self.order.activations().items()), stamps

    def pin(self, member: MemberId, until: int) -> None:
        """Acknowledge no further for a newcomer's sake, until it is counted (D7)."""
        self.reports.pin(member, self.acknowledged, until)

    def hold_stability(self, start: int, until: int) -> None:
        """Receivers of a new view have to be heard before anything of it may become stable (D7)."""
        self.reports.pin(self.me, start, until)

    def has(self, source: MemberId, seq: int) -> bool:
        """Whether a frame was received here."""
        if self._multicast is None:
            return False
        reception = self._multicast.receptions.get(source)
        if reception is not None and reception.contiguous >= seq:
            return True
        return self.departed.get(source, 0) >= seq or bool(self._multicast.buffer.held(source, seq, seq))

    # What follows from every stimulus

    def emit_change(self, change: Change, now: Instant) -> None:
        """Multicast an ordered membership message of this member."""
        assert self.sender is not None
        assert self._multicast is not None
        frame, run = self.sender.change(encode_change(change), now)
        self.counters.membership_bytes_sent += len(frame)
        self._effects.append(Multicast(frame, len(frame)))
        self._multicast.sent(run)
        self._ordered_run(run, now)
        self._promised(self.me, run.last_timestamp)

    def settle(self, now: Instant) -> None:
        """Send what may be sent, deliver what may be delivered, tell what must be told."""
        sender = self.sender
        if sender is not None:
            sender.stable(self.reports.stable(self.acknowledged))
            if self.stamping:
                if self.permitted:
                    self._pump(sender, now)
                if not self._congested:
                    self._keep_alive(sender, now)  # first of all that is not data: others wait for it
        self._deliver(now)
        if self._multicast is not None:
            self._acknowledge(self._multicast, now)

    def _pump(self, sender: Sender, now: Instant) -> None:
        assert self._multicast is not None
        self._more_at = None
        emitted = 0
        while sender.outbox and not self._congested:
            if emitted >= PUMP_BYTES:
                self._more_at = now.mono
                break
            emission = sender.next_message(self._window(), self.reports.lowest_contiguous(self.me), now)
            if emission is None:
                break
            emitted += len(emission.data)
            for start in range(0, len(emission.data), self._burst):
                self._effects.append(Multicast(emission.data[start : start + self._burst], emission.segment))
            for run in emission.runs:
                self._multicast.sent(run)
                self._ordered_run(run, now)
                self._promised(self.me, run.last_timestamp)
            if self.service is Service.UU:
                for run in emission.runs:
                    self._delivery.arrived(run)
        if sender.outbox.has_room_again():
            self._effects.append(SendRoom(sender.outbox.free))

    def _window(self) -> int:
        """Where this sender must stop: the slowest member's room, its own application's included."""
        own = self.sender.seq + self._room_frames() if self.sender is not None else 0
        return min(self.reports.window, own)

    def _deliver(self, now: Instant) -> None:
        order = self.order
        if self._delivery is not order:
            for chunk in self._delivery.take():
                self._hand_over(chunk)
        if order is None:
            return
        while self.delivering:
            chunks = order.take()
            for chunk in chunks:
                if chunk.change:
                    self._apply(chunk, now)
                elif self._delivery is order:
                    self._hand_over(chunk)
                else:
                    self._effects.append(Order(chunk))
            if (not chunks or not chunks[-1].change) and not self._released(order, now):
                break
        if self._guard is not None:
            self._guard.delivered(order.delivered, now.mono)
        if not order.blocked or not self.delivering:
            self._stalled_at = None
        elif self._stalled_at is None:
            self._stalled_at = now.mono + self._stall_ns()

    def _released(self, order: ReliableTimestampOrdered, now: Instant) -> bool:
        """Whether a membership message that is next may take effect: every sender must have all up to it (M13)."""
        held = order.held_change
        if held is None:
            return False
        self.reports.ready(held, now.mono)
        if not self.reports.all_ready(held):
            return False
        order.release(held)
        return True

    def _hand_over(self, chunk: Chunk) -> None:
        self._effects.append(Deliver(chunk))
        self.counters.messages_delivered += chunk.count
        self.counters.bytes_delivered += chunk.nbytes

    def _apply(self, chunk: Chunk, now: Instant) -> None:
        (message,) = chunk.messages()
        change = decode_change(message.payload.tobytes())
        if change is not None and self._changed is not None:
            self._changed(change, message.source, message.seq, message.timestamp, now)

    def _acknowledge(self, multicast: ReliableMulticast, now: Instant) -> None:
        acknowledged = self._delivery.acknowledged(self._clock.last)
        if self.order is not None and self.order is not self._delivery:
            acknowledged = self.order.acknowledged(acknowledged)
        acknowledged = self.reports.pinned(acknowledged, now.mono)
        if acknowledged > self.acknowledged:
            self.acknowledged = Timestamp(acknowledged)
            self.reports.progressed(now.mono)
        stable = self.reports.stable(self.acknowledged)
        if stable > self.stable:
            self.stable = Timestamp(stable)
            if multicast.buffer.drop_stable(stable):
                self._effects.append(Stable(self.stable))
            if self.sender is not None:
                self.sender.stable(stable)
        if now.mono >= self.reports.next_deadline() and not self._congested:
            self._report(multicast, now)

    def _report(self, multicast: ReliableMulticast, now: Instant) -> None:
        report = self.reports.make(
            self.acknowledged, multicast.contiguous(), self._room_frames(), now.mono, self.stable
        )
        self.counters.reports_sent += 1
        self.say(report)

    def _keep_alive(self, sender: Sender, now: Instant) -> None:
        if self._heard > sender.promised:
            sender.keepalive.wanted(now.mono)
        if now.mono < sender.keepalive.next_deadline():
            return
        frame, timestamp = sender.keepalive_frame(now)
        self._effects.append(Multicast(frame, len(frame)))
        self._promised(self.me, timestamp)

    def forgive(self, now: Instant) -> None:
        """This member itself stood still: nobody is given up for that time (M8)."""
        if self._multicast is not None:
            self._multicast.forgive(now.mono)

    def recover(self, now: Instant) -> list[Suspect]:
        """Ask and answer what is due; who did not answer for too long."""
        multicast = self._multicast
        if multicast is None or self._congested:
            return []
        if self._stalled_at is not None and now.mono >= self._stalled_at:
            self._ask_for_promises(multicast, now)
        deadline = multicast.next_deadline()
        if deadline is None or now.mono < deadline:
            return []
        due = multicast.tick(now.mono)
        if due.request is not None:
            self.say(due.request)
        for run in due.repairs:
            self._repair(run)
        for frame in due.keepalives:
            self._repair_frame(frame)
        suspects: list[Suspect] = []
        for lost in due.given_up:
            self.counters.suspicions += 1
            seq = lost.first if isinstance(lost, Span) else 0
            suspects.append(Suspect(lost.source, f"no answer for {format_member(lost.source)}", seq))
        return suspects

    def _ask_for_promises(self, multicast: ReliableMulticast, now: Instant) -> None:
        assert self.order is not None
        self._stalled_at = now.mono + self._stall_ns()
        for source, wanted in self.order.blocked_on():
            multicast.want_promise(source, wanted, now.mono)

    def _stall_ns(self) -> int:
        floor = round(self._config.repair.distance_floor_us * MICROSECOND)
        farthest = max((self._distances.to(source) for source in self.members if source != self.me), default=0)
        return round(self._config.repair.stall_distances * max(floor, farthest))

    def _repair(self, run: Run) -> None:
        per_burst = max(1, self._config.send.burst_bytes // (run.frame_bytes + HEADER_BYTES))
        for start in range(0, run.count, per_burst):
            data, segment = self._maker.repairs(run.frames[start : start + per_burst])
            self.counters.repair_bytes_sent += len(data)
            self._effects.append(Multicast(data, segment))

    def _repair_frame(self, frame: bytes) -> None:
        data = self._maker.repair(frame)
        self.counters.repair_bytes_sent += len(data)
        self._effects.append(Multicast(data, len(data)))

    def say(self, message: ControlMessage) -> None:
        kind, body = encode_control(message)
        frame = self._maker.single(kind, 0, 0, body)
        self._effects.append(Multicast(frame, len(frame)))

    # Room, congestion, time

    def room(self, free_bytes: int, now: Instant) -> None:
        self._app_room = free_bytes
        self.reports.room_changed(self._room_frames(), now.mono)

    def congested(self, congested: bool) -> None:
        self._congested = congested

    def next_deadline(self) -> int | None:
        if self._multicast is None or self._congested:
            return None  # a congested member says nothing until the network takes data again
        deadline = self.reports.next_deadline()
        recovery = self._multicast.next_deadline()
        if recovery is not None and recovery < deadline:
            deadline = recovery
        sender = self.sender
        if sender is not None and self.stamping:
            deadline = min(deadline, sender.keepalive.next_deadline())
            if self.permitted and sender.paced:
                deadline = min(deadline, sender.pacer.ready_at)
            if self.permitted and self._more_at is not None:
                deadline = min(deadline, self._more_at)
        if self._stalled_at is not None and self._stalled_at < deadline:
            deadline = self._stalled_at
        return deadline

    def _room_frames(self) -> int:
        room = self._config.report.room_bytes
        if self._multicast is not None:
            room = min(room, self._multicast.buffer.free)
        return self.reports.room_frames(min(room, self._app_room))

    @property
    def buffered_bytes(self) -> int:
        return self._multicast.buffer.bytes if self._multicast is not None else 0

    @property
    def most_buffered_bytes(self) -> int:
        return self._multicast.buffer.most_bytes if self._multicast is not None else 0

    @property
    def position(self) -> Timestamp:
        """Of the last message delivered in order."""
        return Timestamp(self.order.delivered if self.order is not None else 0)

    @property
    def undelivered(self) -> int:
        """Own frames that have not taken their place in the order here."""
        if self.sender is None or self.order is None:
            return 0
        return self.sender.seq + 1 - self.order.activations().get(self.me, self.sender.seq + 1)

    @property
    def drained(self) -> bool:
        """Whether nothing this member sent waits for anybody."""
        return self.buffered_bytes == 0 and (self.sender is None or self.sender.unstable_frames == 0)
