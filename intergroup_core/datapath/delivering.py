"""What is delivered, acknowledged and reported."""

from __future__ import annotations

from intergroup_core.datapath.incoming import Incoming
from intergroup_core.delivery.rto import ReliableTimestampOrdered
from intergroup_core.effects import Deliver, Order, Stable
from intergroup_core.ids import Instant, MemberId, Timestamp
from intergroup_core.multicast.reliable import ReliableMulticast
from intergroup_core.ports import Control
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.control import decode_change
from intergroup_core.wire.membership import Add

MILLISECOND = 1_000_000
MICROSECOND = 1_000


class Delivering(Incoming):
    """Hands over what may be delivered and tells the others how far this member is."""

    def _deliver(self, now: Instant) -> None:
        order = self.order
        self._hand_over_unordered()
        if order is None:
            return
        while self.delivering:
            chunks = order.take()
            for chunk in chunks:
                if self._ledger is not None and not chunk.change:
                    self._ledger.deliver(chunk)
                if chunk.change:
                    self._apply(chunk, now)
                    # What was held of a sender that came with it precedes the view that it goes with.
                    self._hand_over_unordered()
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

    def _hand_over_unordered(self) -> None:
        """What does not wait for the timestamp order."""
        if self._delivery is not self.order:
            for chunk in self._delivery.take():
                self._hand_over(chunk)

    def _released(self, order: ReliableTimestampOrdered, now: Instant) -> bool:
        """Whether a membership message that is next may take effect: every sender must have all up to it (M13)."""
        held = order.held_change
        if held is None:
            return False
        if held > self._announced and self._held_back is not None:
            self._announced = held
            source, change = order.next_held()
            parsed = decode_change(change)
            if parsed is not None:
                self._held_back(parsed, source, Timestamp(held))
        self.reports.ready(held, now.mono)
        if not self.reports.all_ready(held):
            return False
        order.release(held)
        return True

    def _hand_over(self, chunk: Chunk) -> None:
        self._effects.append(Deliver(chunk))
        if self._undurable is not None:
            self._undurable.delivered(chunk)
        self.counters.messages_delivered += chunk.count
        self.counters.bytes_delivered += chunk.nbytes

    def _apply(self, chunk: Chunk, now: Instant) -> None:
        (message,) = chunk.messages()
        change = decode_change(message.payload.tobytes())
        self.reports.applied(message.timestamp)
        if self._live and isinstance(change, Add):
            self._add_source(change.peer.id, message.timestamp, change.first_seq, now)
            self._present.add(change.peer.id)
        if change is not None and self._changed is not None:
            self._changed(change, message.source, message.seq, message.timestamp, now)

    def _acknowledge(self, multicast: ReliableMulticast, now: Instant) -> None:
        acknowledged = self._delivery.acknowledged(self._clock.last)
        if self.order is not None and self.order is not self._delivery:
            acknowledged = self.order.acknowledged(acknowledged)
        if self.delivering:
            self._unpinned = Timestamp(acknowledged)
        if self._undurable is not None:
            acknowledged = min(acknowledged, self._undurable.least())
        acknowledged = self.reports.pinned(acknowledged, now.mono)
        if acknowledged > self.acknowledged and self.delivering:
            self.acknowledged = Timestamp(acknowledged)
            self.reports.progressed(now.mono)
        if self._control is not None:
            self._tell(self._control, now)
        stable = self.reports.stable(self.acknowledged)
        if stable > self.stable:
            self.stable = Timestamp(stable)
            if multicast.buffer.drop_stable(stable):
                self._effects.append(Stable(self.stable))
            if self.sender is not None:
                self.sender.stable(stable)
        if now.mono >= self.reports.next_deadline() and not self._congested:
            self._report(multicast, now)

    def _tell(self, control: Control, now: Instant) -> None:
        """What this member has goes to the hierarchy; where some do not report themselves, what all have comes back."""
        pressing = self.buffered_bytes > 0
        control.acknowledge(self.view_tag, self.acknowledged, self._room_frames(), pressing=pressing, now=now)
        if self.reports.relayed.any and not self.reports.goes_by_senders():
            self.reports.told(control.told(self.epochs, now.mono), self._waits, now.mono)

    def _may_relay(self, control: Control, now: Instant) -> bool:
        """Whether the group is large, and the hierarchy counts this member."""
        told = control.told(self.epochs, now.mono)
        most = self._config.report.direct_members
        # Senders wait for what their hierarchy said for a fault time and a grace more: they are missed in time.
        limit_ns = round(self._config.hierarchy.fault_ms * MILLISECOND)
        self._hears_senders = self.reports.hears_senders(limit_ns, now.mono, control.shares)
        return told is not None and told.members > most and self._is_spoken_for(control, now)

    def _is_spoken_for(self, control: Control, now: Instant) -> bool:
        """Whether every coordinator waits for this member, in a hierarchy that is the senders' too."""
        return self._hears_senders and control.counted(self.view_tag, now.mono)

    def is_counted(self, now: Instant) -> bool:
        """Whether this member knows that nothing it needs is dropped: all senders wait for it, or the hierarchy does.

        One that others stopped waiting for, and that they wait for again, may lack what they dropped meanwhile.
        """
        if self.reports.dropped_by_senders() > self._unpinned:
            return False
        if self._control is not None and self.reports.relaying:
            return self._is_spoken_for(self._control, now) and self.reports.heeded
        return self.reports.counted

    def lacks_what_is_gone(self, now: Instant) -> bool:
        """Whether senders take for stable what this receiver still waits for, and have for a while: it asks in vain.

        While it catches up with what waited in its socket it is behind too, but gets on.
        """
        if self.reports.dropped_by_senders() <= self._unpinned:
            self._behind = None
            return False
        if self._behind is None or self._behind[0] != self._unpinned:
            self._behind = (self._unpinned, now.mono)
            return False
        return now.mono - self._behind[1] > round(self._config.repair.backoff_max_ms * MILLISECOND)

    def _report(self, multicast: ReliableMulticast, now: Instant) -> None:
        if self._control is not None:
            self.reports.place = self._control.place
            self.reports.relay(self._may_relay(self._control, now), now.mono)
            if self.reports.silent:
                self.reports.postpone(now.mono)
                return
        report = self.reports.make(
            self.acknowledged, multicast.contiguous(), self._room_frames(), now.mono, self.stable
        )
        self.counters.reports_sent += 1
        self.say(report)

    def _stall_ns(self) -> int:
        floor = round(self._config.repair.distance_floor_us * MICROSECOND)
        farthest = max((self._distances.to(source) for source in self.members if source != self.me), default=0)
        return round(self._config.repair.stall_distances * max(floor, farthest))

    def forget_silent(self, now: Instant) -> list[MemberId]:
        """Receivers that are not waited for any more because they say nothing."""
        return self.reports.forget_silent(round(self._config.membership.forget_ms * MILLISECOND), now.mono)

    def pin(self, member: MemberId, until: int) -> None:
        """Acknowledge no further for a newcomer's sake, until it is counted (D7)."""
        self.reports.pin(member, self._unpinned, until)

    def hold_stability(self, start: int, until: int) -> None:
        """Receivers of a new view have to be heard before anything of it may become stable (D7)."""
        self.reports.pin(self.me, start, until)
