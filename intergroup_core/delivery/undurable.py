"""Deliveries that a member's log does not hold yet to the level that was asked for."""

from __future__ import annotations

from collections import deque

from intergroup_core.wire.chunk import Chunk

NO_BOUND = 1 << 63


class Undurable:
    """What a member delivered counts as held by it only once its log has it: until then others keep it.

    Appends become durable in the order of delivery, so a count says which.
    """

    def __init__(self) -> None:
        self._bounds: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._bounds)

    def delivered(self, chunk: Chunk) -> None:
        self._bounds.append(chunk.start_timestamp - 1)

    def appended(self, count: int) -> None:
        """So many more deliveries are durable."""
        for _ in range(count):
            self._bounds.popleft()

    def forget(self) -> None:
        """A new incarnation begins: nobody waits for what the old one had, and its appends still end one by one."""
        self._bounds = deque([NO_BOUND] * len(self._bounds))

    def least(self) -> int:
        """What may be acknowledged at most."""
        return min(self._bounds, default=NO_BOUND)
