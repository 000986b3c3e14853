"""What is sent: data, ordered membership messages, keep-alives, requests and repairs."""

from __future__ import annotations

from dataclasses import replace

from intergroup_core.config import HEADER_BYTES
from intergroup_core.datapath.delivering import Delivering
from intergroup_core.delivery.sender import Sender
from intergroup_core.effects import Multicast, SendRoom, Suspect
from intergroup_core.ids import COUNTER_BITS, Instant, Service, format_member
from intergroup_core.multicast.ranges import Span
from intergroup_core.multicast.reliable import ReliableMulticast
from intergroup_core.wire.control import encode_change
from intergroup_core.wire.exchange import Exchange
from intergroup_core.wire.membership import Change
from intergroup_core.wire.run import Run

PUMP_BYTES = 250_000
"""What one stimulus emits, give or take a message: the network takes it while it is warm, and others get a turn."""


class Outgoing(Delivering):
    """Sends what may be sent, and asks and answers what is due."""

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

    def _pump(self, sender: Sender, now: Instant) -> None:
        assert self._multicast is not None
        self._more_at = None
        emitted = 0
        while sender.outbox and not self._congested:
            if emitted >= PUMP_BYTES:
                self._more_at = now.mono
                break
            emission = sender.next_message(self._window(), self._lowest_contiguous(sender), now)
            if emission is None:
                break
            emitted += len(emission.data)
            self._effects.append(Multicast(emission.data, emission.segment, self._burst))
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
        sender = self.sender
        if sender is None:
            return min(self.reports.window, 0)
        return min(
            self.reports.window, sender.seq + self._room_frames(), self.reports.relayed.window(sender.stable_seq)
        )

    def _lowest_contiguous(self, sender: Sender) -> int:
        """The last own frame that everybody has; of members that do not report, what is stable."""
        lowest = self.reports.lowest_contiguous(self.me)
        return min(lowest, sender.stable_seq) if self.reports.relayed.binds else lowest

    def _keep_alive(self, sender: Sender, now: Instant) -> None:
        if self._heard > sender.promised:
            sender.keepalive.wanted(now.mono)
        elif self._nobody_waits(sender) and sender.keepalive.rest():
            self.reports.progressed(now.mono)  # those who only receive go by what senders say is stable
        if now.mono < sender.keepalive.next_deadline():
            return
        frame, timestamp = sender.keepalive_frame(now)
        self._effects.append(Multicast(frame, len(frame)))
        self._promised(self.me, timestamp)

    def _nobody_waits(self, sender: Sender) -> bool:
        """Whether everybody has everything; who plans reads waits besides for the end of the last microsecond."""
        return self.stable >> COUNTER_BITS > max(self._begun, self._heard, sender.last_sent) >> COUNTER_BITS

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
            place = self._control.place if self._control is not None else None
            self.say(replace(due.request, place=place) if place is not None else due.request)
        for run in due.repairs:
            self._repair(run, due.exchange)
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

    def _repair(self, run: Run, exchange: Exchange | None) -> None:
        per_burst = max(1, self._config.send.burst_bytes // (run.frame_bytes + HEADER_BYTES))
        for start in range(0, run.count, per_burst):
            data, segment = self._maker.repairs(run.frames[start : start + per_burst], exchange)
            self.counters.repair_bytes_sent += len(data)
            self._effects.append(Multicast(data, segment))

    def _repair_frame(self, frame: bytes) -> None:
        data = self._maker.repair(frame)
        self.counters.repair_bytes_sent += len(data)
        self._effects.append(Multicast(data, len(data)))
