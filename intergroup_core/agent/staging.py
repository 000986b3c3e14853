"""What a client has staged and not asked about yet."""

from __future__ import annotations

from dataclasses import dataclass

from intergroup_core.agent.acknowledging import Acknowledging
from intergroup_core.agent.levels import Level, Wanted
from intergroup_core.agent.sending import Sending, Sent
from intergroup_core.agent.stream import Stream

_LEAST = Wanted(Level.DELIVERED)
"""Before that nobody knows where something stands."""


@dataclass(slots=True)
class Staging:
    """Messages that were handed over, perhaps among others of the same member."""

    sent: Sent | None = None
    messages: int = 0
    rows: int = 0

    def add(self, sent: Sent, messages: int) -> None:
        self.sent = Sent(self.sent.first if self.sent is not None else sent.first, sent.stop)
        self.messages += messages
        self.rows += sent.stop - sent.first

    async def located(self, stream: Stream, sending: Sending, ack: Wanted, seconds: float | None) -> list[int]:
        """Sender, first and last seq and timestamp, messages and rows, once they have come so far."""
        assert self.sent is not None
        least = ack if ack.asks_others else _LEAST
        await Acknowledging(stream, sending, least, seconds).reached(self.sent)
        (source, first, last), begin, end = sending.place_of(self.sent)
        return [source, first, last, begin, end, self.messages, self.rows]
