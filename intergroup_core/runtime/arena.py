"""Memory for received datagrams, which stay where the kernel put them for as long as anyone looks at them."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

ARENA_BYTES = 4 << 20
MAX_POOLED = 16
"""Arenas kept for reuse; what is needed beyond them is left to the allocator."""


class Arena:
    """One block of memory; `array` is sliced for those who read, `view` for the socket that writes."""

    __slots__ = ("_idle_references", "array", "view")

    def __init__(self) -> None:
        self.array: NDArray[np.uint8] = np.empty(ARENA_BYTES, dtype=np.uint8)
        self.view = self.array.data
        self._idle_references = sys.getrefcount(self.array)

    @property
    def in_use(self) -> bool:
        """Whether any slice of it is still referenced: every numpy view refers to the array it was cut from."""
        return sys.getrefcount(self.array) > self._idle_references


class ArenaPool:
    """Hands out arenas nobody refers to, the warmest first: fresh pages cost more than the copy into them."""

    def __init__(self) -> None:
        self._arenas: list[Arena] = []

    def __len__(self) -> int:
        return len(self._arenas)

    def take(self, current: Arena | None = None) -> Arena:
        """An arena that is free, other than the current one."""
        for arena in self._arenas:
            if arena is not current and not arena.in_use:
                return arena
        arena = Arena()
        if len(self._arenas) < MAX_POOLED:
            self._arenas.append(arena)
        return arena
