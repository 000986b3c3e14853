"""A listener that loses a part of what arrives, to see what repairs cost."""

from __future__ import annotations

from random import Random

from intergroup_core.runtime.listener import Listener, Span
from intergroup_core.wire.parse import Arrival


class LossyListener(Listener):
    """Drops datagrams at random, those inside coalesced buffers one by one."""

    loss = 0.0
    """Share of datagrams lost; set before the first receive."""
    _random = Random(1)

    def receive(self) -> Arrival | None:
        arrival = super().receive()
        if arrival is None or not self.loss:
            return arrival
        spans = [kept for span in arrival.spans for kept in self._thinned(span)]
        return Arrival(arrival.data, spans) if spans else None

    def _thinned(self, span: Span) -> list[Span]:
        offset, length, segment = span
        kept: list[Span] = []
        begin: int | None = None
        for start in range(0, length, segment):
            if self._random.random() >= self.loss:
                begin = start if begin is None else begin
            elif begin is not None:
                kept.append((offset + begin, start - begin, segment))
                begin = None
        if begin is not None:
            kept.append((offset + begin, length - begin, segment))
        return kept
