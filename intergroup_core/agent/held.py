"""What of each sender a growing log has kept: from where on without a gap, and up to where."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from intergroup_core.effects import Gap
from intergroup_core.ids import MemberId
from intergroup_core.runtime.inbox import Event
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.keeping import Span

MAX_SENDERS = 4_096
"""Of those longest silent nothing is known any more."""


class Held:
    """Follows a log as it is appended to and kept; a sender's messages come in order, and a gap is announced."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Span | None]] = deque()
        """Entries that are not kept yet, a gap without a span."""
        self._spans: dict[MemberId, tuple[int, int]] = {}

    def appended(self, entry: int, event: Event) -> None:
        if isinstance(event, Chunk):
            self._waiting.append((entry, (event.source, event.first_seq, event.last_seq)))
        elif isinstance(event, Gap):
            self._waiting.append((entry, None))

    def kept(self, stop: int) -> None:
        """All entries below are kept."""
        while self._waiting and self._waiting[0][0] < stop:
            _, span = self._waiting.popleft()
            if span is None:
                self._spans.clear()
                continue
            source, first, last = span
            begin, _ = self._spans.pop(source, (first, last))
            self._spans[source] = begin, last
            if len(self._spans) > MAX_SENDERS:
                self._spans.pop(next(iter(self._spans)))

    def within(self, spans: Iterable[Span]) -> tuple[Span, ...]:
        """As much of these as is kept."""
        found = []
        for source, first, last in spans:
            begin, end = self._spans.get(source, (1, 0))
            if max(first, begin) <= min(last, end):
                found.append((source, max(first, begin), min(last, end)))
        return tuple(found)
