"""A member's log that takes its time: what is appended is durable a while later, in order."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from intergroup_core.sim.scheduler import Scheduler


class SlowLog:
    """Only how long it takes is simulated; what a crash leaves of a log is another simulation's matter."""

    def __init__(self, scheduler: Scheduler, rng: Random, longest_ns: int) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self._longest_ns = longest_ns
        self._busy_until = 0

    def append(self, done: Callable[[], None]) -> None:
        ready = self._scheduler.now + self._rng.randrange(self._longest_ns)
        self._busy_until = max(self._busy_until, ready)
        self._scheduler.at(self._busy_until, done)
