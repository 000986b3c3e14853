"""Sending: bundles records into messages, stamps them at emission and accounts for what is unstable (T4.5)."""

from __future__ import annotations

from collections import deque

from intergroup_core.config import HEADER_BYTES, Config
from intergroup_core.counters import Counters
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.delivery.flow import Pacer
from intergroup_core.delivery.keepalive import KeepAliveTimer
from intergroup_core.delivery.outbox import Outbox
from intergroup_core.ids import Instant, Timestamp
from intergroup_core.wire.frames import Emission, FrameMaker
from intergroup_core.wire.header import FrameType
from intergroup_core.wire.run import Run


class Sender:
    """One member's way out: nothing stamped is ever queued (D11)."""

    SMALL_WINDOW = 8
    """Credit below this fraction of the window waits for more while a full message could be made."""

    def __init__(
        self,
        config: Config,
        maker: FrameMaker,
        clock: HybridClock,
        pacer: Pacer,
        counters: Counters,
        activation: int,
        outbox: Outbox | None = None,
    ) -> None:
        self._config = config.send
        self._maker = maker
        self._clock = clock
        self._counters = counters
        self._body = config.group.frame_bytes - HEADER_BYTES
        self._unstable_limit = max(1, config.send.unstable_bytes // config.group.frame_bytes)
        self._unstable: deque[tuple[int, int]] = deque()
        self._stable_seq = activation - 1
        self.outbox = Outbox(config.send.queue_bytes, config.group.max_message_bytes) if outbox is None else outbox
        self.pacer = pacer
        self.keepalive = KeepAliveTimer(config.send)
        self.seq = activation - 1
        """Of the last frame sent."""
        self.promised = 0
        """The last timestamp given out: whatever comes later exceeds it."""
        self.last_sent = 0
        """The last timestamp of data or an ordered membership message, not of a keep-alive."""
        self.paced = False
        """Whether only the pacer holds back what is queued."""
        self.data_at: int | None = None
        """When data was sent last, in monotonic nanoseconds."""

    @property
    def stable_seq(self) -> int:
        """Of the last own frame that everybody has."""
        return self._stable_seq

    @property
    def unstable_frames(self) -> int:
        return self.seq - self._stable_seq

    def next_message(self, window: int, acknowledged_seq: int, now: Instant) -> Emission | None:
        """The next message, stamped now, if pacing, window and the cap on unstable messages allow it."""
        self.paced = False
        if not self.outbox:
            return None
        room = self._usable_credit(window, acknowledged_seq)
        if room == 0:
            return None
        if now.mono < self.pacer.ready_at:
            self.paced = True
            return None
        payload, records = self.outbox.bundle(min(self._config.bundle_bytes, room * self._body))
        frames = self._maker.frames_for(len(payload))
        timestamp = self._clock.stamp(frames, now)
        emission = self._maker.message(payload, self.seq + 1, timestamp)
        self.seq += frames
        self.promised = timestamp + frames - 1
        self.last_sent = self.promised
        self._unstable.append((self.promised, self.seq))
        self.pacer.spend(len(emission.data), now.mono)
        self.keepalive.data_sent(now.mono)
        self.data_at = now.mono
        counters = self._counters
        counters.messages_sent += 1
        counters.records_sent += records
        counters.frames_sent += frames
        counters.bytes_sent += len(emission.data)
        if frames > 1:
            counters.fragments_sent += frames
        return emission

    def _usable_credit(self, window: int, acknowledged_seq: int) -> int:
        """Frames the next message may take; 0 to wait.

        A message is stamped whole, so one that exceeds the window goes only when nothing is in flight.
        """
        least = self._maker.frames_for(self.outbox.first_payload_bytes())
        unstable_room = self._unstable_limit - self.unstable_frames
        if unstable_room < least and self.unstable_frames > 0:
            return 0
        credit = window - self.seq
        in_flight = self.seq - acknowledged_seq
        if credit < least:
            return least if in_flight <= 0 < credit else 0
        wanted = min(self._config.bundle_bytes, self.outbox.bytes) // self._body
        if credit < wanted and in_flight > 0:
            # Cutting what could go as one message costs a copy and a message more: wait for the reports under way,
            # unless the window is so small that nothing else would be in flight meanwhile.
            small = 2 * wanted > window - acknowledged_seq
            if not small or credit * self.SMALL_WINDOW < window - acknowledged_seq:
                return 0
        return min(credit, max(unstable_room, least))

    def enter(self, maker: FrameMaker) -> None:
        """What is sent from now on belongs to another view."""
        self._maker = maker

    def change(self, body: bytes, now: Instant) -> tuple[bytes, Run]:
        """An ordered membership message, stamped now: small, and others wait for it, so nothing holds it back."""
        timestamp = self._clock.stamp(1, now)
        self.seq += 1
        self.promised = self.last_sent = timestamp
        self._unstable.append((timestamp, self.seq))
        self.keepalive.data_sent(now.mono)
        self._counters.changes_sent += 1
        return self._maker.change(body, self.seq, timestamp)

    def keepalive_frame(self, now: Instant) -> tuple[bytes, Timestamp]:
        """A keep-alive stamped now: a promise about everything sent later."""
        timestamp = self._clock.stamp(1, now)
        self.promised = timestamp
        self.keepalive.sent(now.mono)
        self._counters.keepalives_sent += 1
        return self._maker.single(FrameType.KEEP_ALIVE, self.seq, timestamp), timestamp

    def stable(self, timestamp: int) -> None:
        """Messages at or below a timestamp are stable."""
        while self._unstable and self._unstable[0][0] <= timestamp:
            self._stable_seq = self._unstable.popleft()[1]
