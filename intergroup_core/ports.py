"""What the pure part asks of the world, as small Protocols."""

from __future__ import annotations

from typing import Protocol

from intergroup_core.ids import MemberId


class Distances(Protocol):
    """One-way latency estimates (T2.4)."""

    def to(self, member: MemberId) -> int:
        """The estimated one-way delay to a member, in nanoseconds."""


class ConstantDistance:
    """The same distance to everybody, until something measures (R4)."""

    def __init__(self, distance_ns: int) -> None:
        self._distance_ns = distance_ns

    def to(self, member: MemberId) -> int:
        return self._distance_ns
