"""Tells of a head that stays where it is although there is more: which sites are waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from intergroup_core.client.planning import Head
    from intergroup_core.log.cut import Cut

PATIENCE_SECONDS = 10.0
"""Waits that are shorter are everyday ones."""
AGAIN_SECONDS = 60.0


class Standstill:
    """Of one group that a query plans."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cut: Cut | None = None
        self._tell_at: float | None = None

    def tell(self, head: Head) -> str | None:
        """What to say when a head was asked for: why it does not move, if it has not for long and that is known."""
        now = self._clock()
        if not head.waits_for or head.cut != self._cut:
            self._cut, self._tell_at = head.cut, None
            return None
        if self._tell_at is None:
            self._tell_at = now + PATIENCE_SECONDS
        if now < self._tell_at:
            return None
        self._tell_at = now + AGAIN_SECONDS
        return head.waits_for
