"""Virtual time: one queue of events, run in the order of their time and then of their making."""

from __future__ import annotations

import gc
import heapq
from collections.abc import Callable
from typing import Any

from intergroup_core.errors import IntergroupError

MAX_EVENTS_AT_ONCE = 100_000
"""Events that may share one instant before the simulation is taken for stuck."""


GARBAGE = 50_000
"""Objects between two looks for garbage: a simulation makes thousands that all stay."""


def collect_seldom() -> None:
    """For a process that does nothing but simulate."""
    gc.set_threshold(GARBAGE)


class SimulationStuck(IntergroupError):
    """Virtual time stands still: something keeps asking to be called at once."""


class Scheduler:
    """The queue of what happens next, in integer nanoseconds of virtual time."""

    def __init__(self) -> None:
        self.now = 0
        self.events_run = 0
        self._heap: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []
        self._serial = 0

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, when: int, action: Callable[..., object], *args: Any) -> None:
        """Run an action at a time; one that has passed means now."""
        self._serial += 1
        heapq.heappush(self._heap, (when if when > self.now else self.now, self._serial, action, args))

    def after(self, delay: int, action: Callable[..., object], *args: Any) -> None:
        self.at(self.now + delay, action, *args)

    def run_until(self, end: int) -> None:
        """Run every event up to and including a time, and leave the clock there."""
        heap, pop = self._heap, heapq.heappop
        now = self.now
        run, here = 0, 1
        while heap and heap[0][0] <= end:
            when, _, action, args = pop(heap)
            run += 1
            if when != now:
                self.now = now = when
                here = run
            elif run - here >= MAX_EVENTS_AT_ONCE:
                raise SimulationStuck(f"more than {MAX_EVENTS_AT_ONCE} events at {when} ns; the last was {action!r}")
            action(*args)
        self.events_run += run
        self.now = max(now, end)
