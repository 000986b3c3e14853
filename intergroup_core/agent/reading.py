"""A client that reads a log: how far it is, how far behind it may be, and what happens then."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum

from intergroup_core.errors import LocalProtocolError

MAX_MARKS = 10_000
"""Places in a log whose distance from its end is known."""


class SlowReader(Enum):
    """What becomes of a reader that falls behind."""

    SPILL = "spill"
    """It finds everything in the log, which is kept for it."""
    BLOCK = "block"
    """The senders wait for it."""
    GAP = "gap"
    """It skips to the end, and its stream says so."""


@dataclass(slots=True, eq=False)
class Reading:
    """One reader of a log."""

    pid: int
    policy: SlowReader
    entry: int
    """It has read everything below."""
    in_history: bool = False
    """Whether it still reads older logs."""
    skipped_bytes: int = 0
    skips: int = 0
    waiting: asyncio.Future[None] | None = field(default=None, repr=False)

    async def more(self) -> None:
        """Until somebody wakes it."""
        if self.waiting is not None:
            raise LocalProtocolError("this reader waits already; one at a time can")
        self.waiting = asyncio.get_running_loop().create_future()
        try:
            await self.waiting
        finally:
            self.waiting = None

    def wake(self) -> None:
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(None)


class Lengths:
    """How many bytes a log has behind an entry, for as far back as somebody asks."""

    def __init__(self) -> None:
        self._stops = [0]
        self._totals = [0]

    @property
    def total(self) -> int:
        return self._totals[-1]

    def __len__(self) -> int:
        return len(self._stops)

    def grew(self, stop: int, nbytes: int) -> None:
        """Entries up to a stop were appended."""
        if stop == self._stops[-1]:
            self._totals[-1] += nbytes
        else:
            self._stops.append(stop)
            self._totals.append(self._totals[-1] + nbytes)
            if len(self._stops) > MAX_MARKS:
                # Who is so far behind is told less exactly.
                del self._stops[1:-1:2], self._totals[1:-1:2]

    def behind(self, entry: int) -> int:
        """Bytes of the entries from this one on; of older ones than are known, as many as are known."""
        at = bisect_right(self._stops, entry) - 1
        return self.total - self._totals[max(at, 0)]

    def forget(self, entry: int) -> None:
        """Nobody asks for less than this any more."""
        at = bisect_right(self._stops, entry) - 1
        if at > 0:
            del self._stops[:at], self._totals[:at]
