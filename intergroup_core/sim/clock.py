"""Clocks of simulated members: each has its own monotonic zero and a wall clock that is off by some."""

from __future__ import annotations

from intergroup_core.ids import Instant
from intergroup_core.sim.scheduler import Scheduler

START_WALL_NS = 1_717_200_000_000_000_000
"""The wall time at which every simulation begins: 2024-06-01T00:00:00Z."""


class MemberClock:
    """One member's view of virtual time.

    The monotonic clock starts anywhere, so that a comparison of two members' readings shows as a bug. The wall
    clock is offset, and coarse where `resolution_ns` says so, which makes equal timestamps of two senders likely.
    """

    def __init__(
        self, scheduler: Scheduler, *, mono_base: int = 0, wall_offset_ns: int = 0, resolution_ns: int = 1
    ) -> None:
        self._scheduler = scheduler
        self._mono_base = mono_base
        self._wall_offset_ns = wall_offset_ns
        self._resolution_ns = resolution_ns

    def now(self) -> Instant:
        virtual = self._scheduler.now
        wall = START_WALL_NS + virtual + self._wall_offset_ns
        return Instant(virtual + self._mono_base, wall - wall % self._resolution_ns)

    def virtual(self, mono: int) -> int:
        """The virtual time of one of this member's monotonic readings."""
        return mono - self._mono_base

    def step(self, delta_ns: int) -> None:
        """Somebody set the wall clock, forwards or back."""
        self._wall_offset_ns += delta_ns
