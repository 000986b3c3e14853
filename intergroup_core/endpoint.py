"""One group member: routes stimuli between the engines and gathers their effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from intergroup_core.config import HEADER_BYTES, Config
from intergroup_core.counters import Counters
from intergroup_core.delivery.clock import ClockGuard, HybridClock
from intergroup_core.delivery.flow import Pacer
from intergroup_core.delivery.outbox import Records
from intergroup_core.delivery.rso import ReliableSourceOrdered
from intergroup_core.delivery.rto import ReliableTimestampOrdered
from intergroup_core.delivery.sender import Sender
from intergroup_core.delivery.service import DeliveryService
from intergroup_core.delivery.uu import UnreliableUnordered
from intergroup_core.effects import Deliver, Effect, Install, Multicast, Order, SendRoom, Stable, Suspect
from intergroup_core.errors import LocalProtocolError
from intergroup_core.hierarchy.flat import FlatReports
from intergroup_core.ids import Instant, MemberId, Service, Timestamp, View, format_member, group_tag
from intergroup_core.multicast.ranges import Span
from intergroup_core.multicast.reliable import ReliableMulticast
from intergroup_core.ports import Distances
from intergroup_core.wire.control import encode_control
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.messages import ControlMessage, KeepAlive, RepairRequest, Report
from intergroup_core.wire.parse import Arrival, parse
from intergroup_core.wire.run import Run

MILLISECOND = 1_000_000
MICROSECOND = 1_000
PUMP_BYTES = 250_000
"""What one stimulus emits, give or take a message: the network takes it while it is warm, and others get a turn."""


class Endpoint:
    """A member of one group, with the view it is given at the start.

    Senders follow the timestamp order inside whatever service their application chose, so that causality
    holds (D6). A member that only wants `uu` takes part in nothing else.
    """

    def __init__(
        self,
        *,
        me: MemberId,
        name: str,
        group: str,
        view: View,
        counted: frozenset[MemberId],
        service: Service,
        config: Config,
        clock: HybridClock,
        distances: Distances,
        rng: Random,
        activations: Mapping[MemberId, int] | None = None,
        sources: frozenset[MemberId] | None = None,
        recovered: Callable[[MemberId, int, int], None] | None = None,
    ) -> None:
        self.me, self.name, self.group, self.view, self.service = me, name, group, view, service
        self.counters = Counters()
        self._counted = counted
        self._config = config
        self._clock = clock
        self._distances = distances
        self._tag = group_tag(group)
        self._view_tag = view.id.tag
        self._maker = FrameMaker(self._tag, me, self._view_tag, config.group.frame_bytes)
        points = dict.fromkeys(view.members, 1) | dict(activations or {})
        chosen = self._chosen_points(points, sources)
        if me not in view.members:
            points = chosen
        start = view.id.start
        self._burst = max(1, config.send.burst_bytes // config.group.frame_bytes) * config.group.frame_bytes
        self._follows = me in view.members or service is not Service.UU
        self._order = ReliableTimestampOrdered(me, view.members, start, self.counters) if self._ordered else None
        self._delivery = self._make_delivery(chosen, start)
        self._multicast = (
            ReliableMulticast(me, self._view_tag, points, start, config, distances, rng, self.counters, recovered)
            if self._follows
            else None
        )
        self._reports = FlatReports(me, self._view_tag, counted, points, config.report, config.group.frame_bytes)
        self._sender = (
            Sender(config, self._maker, clock, Pacer(config.send, rng), self.counters, points[me])
            if me in view.members
            else None
        )
        self._guard: ClockGuard | None = None
        self._app_room = config.report.room_bytes
        self._congested = False
        self._stalled_at: int | None = None
        self._heard = 0
        self._more_at: int | None = None
        self._effects: list[Effect] = []
        self.acknowledged = Timestamp(start)
        """Everything at or below is delivered here."""
        self.stable = Timestamp(start)
        """Everything at or below is delivered at every counted member."""

    @property
    def _ordered(self) -> bool:
        return self.me in self.view.members or self.service is Service.RTO

    def _chosen_points(self, points: dict[MemberId, int], sources: frozenset[MemberId] | None) -> dict[MemberId, int]:
        """The activation points of the sources this member follows: all of them unless `rso` names some (D12)."""
        if sources is None:
            return points
        if self.service is not Service.RSO or not sources or not sources <= points.keys():
            raise LocalProtocolError(
                f"member {self.name} of group {self.group} chose sources; that needs rso and senders of the view"
            )
        return {source: points[source] for source in points if source in sources}

    def _make_delivery(self, points: Mapping[MemberId, int], start: int) -> DeliveryService:
        match self.service:
            case Service.UU:
                return UnreliableUnordered(self.counters)
            case Service.RSO:
                return ReliableSourceOrdered(points, start)
            case Service.RTO:
                assert self._order is not None
                return self._order

    # Stimuli

    def start(self, now: Instant) -> list[Effect]:
        """Begin in the given view; a sender speaks at once, for its silence would block others (M2)."""
        bound = round(self._config.group.clock_bound_ms * MILLISECOND)
        self._guard = ClockGuard(self.view.members, self.view.id.start, bound, now.mono)
        self._clock.observe(self.view.id.start)
        self._effects.append(Install(self.view))
        return self.tick(now)

    def receive(self, arrival: Arrival, now: Instant) -> list[Effect]:
        """Datagrams from the network, checked here."""
        for parsed in parse(arrival, self._tag, self.counters):
            match parsed:
                case Run():
                    self._receive_run(parsed, now)
                case KeepAlive():
                    self._receive_keepalive(parsed, now)
                case RepairRequest() | Report():
                    self._receive_control(parsed, now)
        return self._settle(now)

    def send(self, records: Records, now: Instant) -> list[Effect]:
        """Records for the group: all are taken, or none and the error says why."""
        if self._sender is None:
            raise LocalProtocolError(f"member {self.name} only receives from group {self.group}; join it as a sender")
        self._sender.outbox.offer(records)
        return self._settle(now)

    def tick(self, now: Instant) -> list[Effect]:
        """Time has passed."""
        self._recover(now)
        return self._settle(now)

    def room(self, free_bytes: int, now: Instant) -> list[Effect]:
        """How much delivered data the application side still takes."""
        self._app_room = free_bytes
        self._reports.room_changed(self._room_frames(), now.mono)
        return self._settle(now)

    def congested(self, now: Instant) -> None:
        """The network took no more; what was stamped is with the shell, in order."""
        self._congested = True

    def writable(self, now: Instant) -> list[Effect]:
        """The network takes data again."""
        self._congested = False
        return self._settle(now)

    def next_deadline(self) -> int | None:
        """When tick is wanted next, in monotonic nanoseconds."""
        if self._multicast is None or self._congested:
            return None  # a congested member says nothing until the network takes data again
        deadline = self._reports.next_deadline()
        recovery = self._multicast.next_deadline()
        if recovery is not None and recovery < deadline:
            deadline = recovery
        sender = self._sender
        if sender is not None:
            deadline = min(deadline, sender.keepalive.next_deadline())
            if sender.paced:
                deadline = min(deadline, sender.pacer.ready_at)
            if self._more_at is not None:
                deadline = min(deadline, self._more_at)
        if self._stalled_at is not None and self._stalled_at < deadline:
            deadline = self._stalled_at
        return deadline

    # What the shell may ask

    @property
    def is_sender(self) -> bool:
        return self._sender is not None

    @property
    def send_room(self) -> int:
        """Bytes the send queue still takes."""
        return self._sender.outbox.free if self._sender is not None else 0

    @property
    def unsent_bytes(self) -> int:
        """Bytes taken from the application and not yet sent."""
        return self._sender.outbox.bytes if self._sender is not None else 0

    @property
    def buffered_bytes(self) -> int:
        """Bytes kept because not every counted member has them."""
        return self._multicast.buffer.bytes if self._multicast is not None else 0

    @property
    def most_buffered_bytes(self) -> int:
        return self._multicast.buffer.most_bytes if self._multicast is not None else 0

    @property
    def slowest(self) -> MemberId | None:
        """The member whose room ends this sender's window first."""
        return self._reports.slowest()

    # Receiving

    def _receive_run(self, run: Run, now: Instant) -> None:
        counters = self.counters
        counters.frames_received += run.count
        counters.bytes_received += run.nbytes
        if self.service is Service.UU and run.source != self.me:
            self._delivery.arrived(run)
        multicast = self._multicast
        if multicast is None:
            return
        if run.source not in multicast.receptions or run.view_tag != self._view_tag:
            counters.drop(self._refusal(run.source, run.view_tag), run.count)
            return
        if run.source == self.me:
            multicast.echoed(run, now.mono)
            return
        if not self._believes(run.source, run.last_timestamp, now):
            multicast.refused(run, now.mono)
            return
        self._heard = max(self._heard, run.last_timestamp)
        for ready in multicast.arrived(run, now.mono):
            self._ordered_run(ready)
        promise = multicast.promise_reached(run.source)
        self._promised(run.source, promise)
        self._reports.data_arrived(run.count, now.mono)

    def _receive_keepalive(self, keepalive: KeepAlive, now: Instant) -> None:
        multicast = self._multicast
        source = keepalive.source
        if multicast is None or source == self.me:
            return
        if source not in multicast.receptions or keepalive.view_tag != self._view_tag:
            self.counters.drop(self._refusal(source, keepalive.view_tag))
            return
        if not self._believes(source, keepalive.timestamp, now):
            return
        if multicast.keepalive(keepalive, now.mono):
            self._promised(source, multicast.promise_reached(source))
            self._reports.progressed(now.mono)

    def _receive_control(self, message: ControlMessage, now: Instant) -> None:
        member = message.member if isinstance(message, Report) else message.requester
        if member == self.me or self._multicast is None:
            return
        if member not in self._counted:
            self.counters.drop("member")
            return
        if message.view_tag != self._view_tag:
            self.counters.drop("view")
            return
        match message:
            case Report():
                self._reports.received(message)
            case RepairRequest():
                self._receive_request(message, self._multicast, now)

    def _receive_request(self, request: RepairRequest, multicast: ReliableMulticast, now: Instant) -> None:
        sender = self._sender
        if sender is not None:
            if any(source == self.me for source, _, _ in request.ranges):
                cut = sender.pacer.lost(2 * self._distances.to(request.requester), now.mono)
                self.counters.bandwidth_cuts += cut
            if any(source == self.me for source, _ in request.promises):
                sender.keepalive.wanted(now.mono)
        multicast.requested(request, now.mono)

    def _refusal(self, source: MemberId, view_tag: int) -> str:
        """Why a frame is passed over: another view, or a source this member does not follow."""
        return "source" if view_tag == self._view_tag and source in self.view.members else "view"

    def _believes(self, source: MemberId, timestamp: int, now: Instant) -> bool:
        assert self._guard is not None, "start comes before receive"
        if not self._guard.admits(source, timestamp, now.mono):
            self.counters.clock_refused += 1
            return False
        self._clock.observe(timestamp)
        return True

    def _ordered_run(self, run: Run) -> None:
        if self._order is not None:
            self._order.ordered(run)
        if self._delivery is not self._order:
            self._delivery.ordered(run)

    def _promised(self, source: MemberId, timestamp: int) -> None:
        if self._order is not None and source != self.me:
            self._order.promised(source, timestamp)
        if self._delivery is not self._order:
            self._delivery.promised(source, timestamp)

    # What follows from every stimulus

    def _settle(self, now: Instant) -> list[Effect]:
        """Send what may be sent, deliver what may be delivered, tell what must be told."""
        if self._sender is not None:
            self._sender.stable(self._reports.stable(self.acknowledged))
            self._pump(self._sender, now)
            if not self._congested:
                self._keep_alive(self._sender, now)  # first of all that is not data: others wait for it
        self._deliver(now)
        if self._multicast is not None:
            self._acknowledge(self._multicast, now)
        effects, self._effects = self._effects, []
        return effects

    def _pump(self, sender: Sender, now: Instant) -> None:
        assert self._multicast is not None
        self._more_at = None
        emitted = 0
        while sender.outbox and not self._congested:
            if emitted >= PUMP_BYTES:
                self._more_at = now.mono
                break
            emission = sender.next_message(self._window(), self._reports.lowest_contiguous(self.me), now)
            if emission is None:
                break
            emitted += len(emission.data)
            for start in range(0, len(emission.data), self._burst):
                self._effects.append(Multicast(emission.data[start : start + self._burst], emission.segment))
            for run in emission.runs:
                self._multicast.sent(run)
                self._ordered_run(run)
                self._promised(self.me, run.last_timestamp)
            if self.service is Service.UU:
                for run in emission.runs:
                    self._delivery.arrived(run)
        if sender.outbox.has_room_again():
            self._effects.append(SendRoom(sender.outbox.free))

    def _window(self) -> int:
        """Where this sender must stop: the slowest member's room, its own application's included."""
        own = self._sender.seq + self._room_frames() if self._sender is not None else 0
        return min(self._reports.window, own)

    def _deliver(self, now: Instant) -> None:
        for chunk in self._delivery.take():
            self._effects.append(Deliver(chunk))
            self.counters.messages_delivered += chunk.count
            self.counters.bytes_delivered += chunk.nbytes
        order = self._order
        if order is None:
            return
        if order is not self._delivery:
            self._effects += [Order(chunk) for chunk in order.take()]
        if self._guard is not None:
            self._guard.delivered(order.delivered, now.mono)
        if not order.blocked:
            self._stalled_at = None
        elif self._stalled_at is None:
            self._stalled_at = now.mono + self._stall_ns()

    def _acknowledge(self, multicast: ReliableMulticast, now: Instant) -> None:
        acknowledged = self._delivery.acknowledged(self._clock.last)
        if self._order is not None and self._order is not self._delivery:
            acknowledged = self._order.acknowledged(acknowledged)
        if acknowledged > self.acknowledged:
            self.acknowledged = Timestamp(acknowledged)
            self._reports.progressed(now.mono)
        stable = self._reports.stable(self.acknowledged)
        if stable > self.stable:
            self.stable = Timestamp(stable)
            if multicast.buffer.drop_stable(stable):
                self._effects.append(Stable(self.stable))
        if now.mono >= self._reports.next_deadline() and not self._congested:
            self._report(multicast, now)

    def _report(self, multicast: ReliableMulticast, now: Instant) -> None:
        report = self._reports.make(self.acknowledged, multicast.contiguous(), self._room_frames(), now.mono)
        self.counters.reports_sent += 1
        self._say(report)

    def _keep_alive(self, sender: Sender, now: Instant) -> None:
        if self._heard > sender.promised:
            sender.keepalive.wanted(now.mono)
        if now.mono < sender.keepalive.next_deadline():
            return
        frame, timestamp = sender.keepalive_frame(now)
        self._effects.append(Multicast(frame, len(frame)))
        self._promised(self.me, timestamp)

    def _recover(self, now: Instant) -> None:
        multicast = self._multicast
        if multicast is None or self._congested:
            return
        if self._stalled_at is not None and now.mono >= self._stalled_at:
            self._ask_for_promises(multicast, now)
        deadline = multicast.next_deadline()
        if deadline is None or now.mono < deadline:
            return
        due = multicast.tick(now.mono)
        if due.request is not None:
            self._say(due.request)
        for run in due.repairs:
            self._repair(run)
        for frame in due.keepalives:
            self._repair_frame(frame)
        for lost in due.given_up:
            self.counters.suspicions += 1
            seq = lost.first if isinstance(lost, Span) else 0
            self._effects.append(Suspect(lost.source, f"no answer for {format_member(lost.source)}", seq))

    def _ask_for_promises(self, multicast: ReliableMulticast, now: Instant) -> None:
        assert self._order is not None
        self._stalled_at = now.mono + self._stall_ns()
        for source, wanted in self._order.blocked_on():
            multicast.want_promise(source, wanted, now.mono)

    def _stall_ns(self) -> int:
        floor = round(self._config.repair.distance_floor_us * MICROSECOND)
        farthest = max((self._distances.to(source) for source in self.view.members if source != self.me), default=0)
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

    def _say(self, message: ControlMessage) -> None:
        kind, body = encode_control(message)
        frame = self._maker.single(kind, 0, 0, body)
        self._effects.append(Multicast(frame, len(frame)))

    def _room_frames(self) -> int:
        room = self._config.report.room_bytes
        if self._multicast is not None:
            room = min(room, self._multicast.buffer.free)
        return self._reports.room_frames(min(room, self._app_room))
