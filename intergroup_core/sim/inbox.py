"""A simulated socket: what arrived waits in a bounded buffer until its member wakes up."""

from __future__ import annotations

import numpy as np

from intergroup_core.sim.network import Packet
from intergroup_core.wire.header import padded
from intergroup_core.wire.parse import Arrival

MAX_SPANS = 64
"""Buffers a member reads in one wake-up."""


class Inbox:
    """First in, first out, bounded by bytes as a kernel's receive buffer is."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._waiting: list[Packet] = []
        self._bytes = 0
        self.overflowed = 0
        """Packets dropped because the buffer was full."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, packet: Packet) -> bool:
        """Take a packet; False where there is no room for it."""
        waiting = self._bytes + len(packet.data)
        if waiting > self._limit_bytes:
            self.overflowed += 1
            return False
        self._waiting.append(packet)
        self._bytes = waiting
        return True

    def take(self) -> Arrival:
        """What one wake-up reads, laid end to end."""
        packets, self._waiting = self._waiting[:MAX_SPANS], self._waiting[MAX_SPANS:]
        pieces: list[bytes] = []
        spans: list[tuple[int, int, int]] = []
        at = 0
        for data, segment in packets:
            size = len(data)
            spans.append((at, size, segment))
            pieces.append(data)
            at += size
            if odd := padded(size) - size:
                pieces.append(bytes(odd))
                at += odd
            self._bytes -= size
        return Arrival(
            np.frombuffer(pieces[0] if len(pieces) == 1 else bytearray().join(pieces), dtype=np.uint8), spans
        )
