"""One keyed queue of deadlines per engine, in integer nanoseconds of monotonic time."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Timers(Generic[Key]):
    """Arm, cancel and pop deadlines by key; a key has at most one deadline."""

    def __init__(self) -> None:
        self._due: dict[Key, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._serial = 0

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, key: Key) -> bool:
        return key in self._due

    def arm(self, key: Key, at: int) -> None:
        """Set or move the deadline of a key."""
        self._serial += 1
        self._due[key] = (at, self._serial)
        heapq.heappush(self._heap, (at, self._serial, key))
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self._due):
            self._heap = [(at, serial, key) for key, (at, serial) in self._due.items()]
            heapq.heapify(self._heap)

    def arm_before(self, key: Key, at: int) -> None:
        """Set the deadline of a key unless it already has an earlier one."""
        current = self._due.get(key)
        if current is None or at < current[0]:
            self.arm(key, at)

    def cancel(self, key: Key) -> None:
        self._due.pop(key, None)

    def deadline(self, key: Key) -> int | None:
        entry = self._due.get(key)
        return entry[0] if entry else None

    def next_deadline(self) -> int | None:
        heap = self._heap
        while heap:
            at, serial, key = heap[0]
            entry = self._due.get(key)
            if entry is not None and entry[1] == serial:
                return at
            heapq.heappop(heap)
        return None

    def pop_due(self, now: int) -> list[Key]:
        """Remove and return every key whose deadline has come, earliest first."""
        due: list[Key] = []
        while (at := self.next_deadline()) is not None and at <= now:
            key = heapq.heappop(self._heap)[2]
            del self._due[key]
            due.append(key)
        return due


def earliest(*deadlines: int | None) -> int | None:
    """The first of several deadlines, any of which may be absent."""
    first: int | None = None
    for deadline in deadlines:
        if deadline is not None and (first is None or deadline < first):
            first = deadline
    return first
