"""What a repair says of the request it answers, so that who asked can tell how far away who answered is (R4)."""

from __future__ import annotations

from typing import NamedTuple

from intergroup_core.ids import MemberId

MICROSECOND = 1_000
CLOCK_BITS = 32
"""Messages carry their sender's clock in microseconds modulo 2^32: an hour, where round trips take a second."""
CLOCK_MASK = (1 << CLOCK_BITS) - 1
MAX_HELD_US = (1 << 31) - 1
MAX_ROUND_TRIP_US = 60_000_000
"""Samples beyond it are nonsense, or a process that stood still."""


def clock_at(mono_ns: int) -> int:
    """A monotonic clock as messages carry it: only its owner reads it again."""
    return mono_ns // MICROSECOND & CLOCK_MASK


class Exchange(NamedTuple):
    """The request that a repair answers."""

    asker: int
    """The lower half of the id of the member that asked."""
    clock: int
    """When it asked, by its own clock."""
    held_us: int
    """How long the one that answers has had the request."""

    @classmethod
    def of(cls, requester: MemberId, clock: int, held_ns: int) -> Exchange:
        return cls(requester & CLOCK_MASK, clock, min(MAX_HELD_US, held_ns // MICROSECOND))

    @classmethod
    def unpacked(cls, seq: int, timestamp: int) -> Exchange | None:
        """From the two words of a repair's own header; None where it answers nobody in particular."""
        if not timestamp & CLOCK_MASK:
            return None
        return cls(timestamp & CLOCK_MASK, seq & CLOCK_MASK, timestamp >> CLOCK_BITS)

    def packed(self) -> tuple[int, int]:
        return self.clock, self.held_us << CLOCK_BITS | self.asker

    def round_trip_us(self, me: MemberId, now: int) -> int | None:
        """Of the two messages alone, if this member asked."""
        if self.asker != me & CLOCK_MASK:
            return None
        found = (clock_at(now) - self.clock & CLOCK_MASK) - self.held_us
        return found if 0 <= found <= MAX_ROUND_TRIP_US else None


class Repair(NamedTuple):
    """Where a repeated frame came from."""

    by: MemberId
    answers: Exchange | None
