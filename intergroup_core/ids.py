"""Names of things: members, groups, views, and the timestamps that order messages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, NewType

MemberId = NewType("MemberId", int)
"""64 random bits per incarnation; compares unsigned and prints as 16 hex digits."""

SiteId = NewType("SiteId", int)
"""64 random bits per incarnation of a site's control process."""

Timestamp = NewType("Timestamp", int)
"""63 bits: 51 of microseconds since 2020 and 12 of counter, one integer to compare and increment."""

COUNTER_BITS = 12
EPOCH_US = 1_577_836_800_000_000
"""2020-01-01T00:00:00Z in microseconds since 1970."""

MAX_TIMESTAMP = Timestamp((1 << 63) - 1)
NO_TIMESTAMP = Timestamp(0)


class Service(Enum):
    """How a receiver has messages delivered (T4.6 to T4.8)."""

    UU = "uu"
    RSO = "rso"
    RTO = "rto"


class Instant(NamedTuple):
    """One stimulus's time: monotonic for timers, wall for the hybrid clock, both in nanoseconds."""

    mono: int
    wall: int


@dataclass(frozen=True, slots=True, order=True)
class ViewId:
    """Orders views by (start time, leader, leader sequence), T4.1."""

    start: Timestamp
    leader: MemberId
    leader_seq: int

    def __str__(self) -> str:
        return f"{self.start:016x}-{self.leader:016x}-{self.leader_seq:x}"

    @property
    def tag(self) -> int:
        """The 32 bits of it that frames carry (M0)."""
        digest = hashlib.blake2b(str(self).encode(), digest_size=4).digest()
        return int.from_bytes(digest, "little")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An agreed sender membership; `names` are what people call its members."""

    id: ViewId
    members: tuple[MemberId, ...]
    names: tuple[str, ...] = ()


def group_tag(group: str) -> int:
    """The 64-bit hash of a group's name that keeps colliding addresses apart."""
    return int.from_bytes(hashlib.blake2b(group.encode(), digest_size=8).digest(), "little")


def format_member(member: MemberId) -> str:
    return f"{member:016x}"


def timestamp_at(wall_ns: int) -> Timestamp:
    """The least timestamp of the microsecond that contains this wall time."""
    return Timestamp(max(0, wall_ns // 1_000 - EPOCH_US) << COUNTER_BITS)


def wall_us(timestamp: Timestamp) -> int:
    """Microseconds since 1970 of a timestamp's physical part."""
    return (timestamp >> COUNTER_BITS) + EPOCH_US


def timestamp_span(duration_ns: int) -> int:
    """A duration as a difference of timestamps."""
    return (duration_ns // 1_000) << COUNTER_BITS
