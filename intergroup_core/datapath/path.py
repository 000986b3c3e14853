"""The way of data through one member: between the network, reliable multicast, delivery and the sender.

It knows which sources it follows and in which epoch, not why: whoever owns it tells it of views.
"""

from __future__ import annotations

from intergroup_core.datapath.epochs import Epochs
from intergroup_core.ids import Instant


class DataPath(Epochs):
    """A member in an epoch, whatever its membership protocol is."""

    def settle(self, now: Instant) -> None:
        """Send what may be sent, deliver what may be delivered, tell what must be told."""
        sender = self.sender
        if sender is not None:
            sender.stable(self.reports.stable(self.acknowledged))
            if self.stamping:
                if self.permitted and not self.closing:
                    self._pump(sender, now)
                if not self._congested:
                    self._keep_alive(sender, now)  # first of all that is not data: others wait for it
                self._effects.hasten()
        self._deliver(now)
        if self._multicast is not None:
            self._acknowledge(self._multicast, now)

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
            if self.permitted and not self.closing:
                if sender.paced:
                    deadline = min(deadline, sender.pacer.ready_at)
                if self._more_at is not None:
                    deadline = min(deadline, self._more_at)
        if self._stalled_at is not None and self._stalled_at < deadline:
            deadline = self._stalled_at
        return deadline
