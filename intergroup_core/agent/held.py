"""What of each sender a growing log has kept: from where on without a gap, and up to where."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from intergroup_core.effects import Gap, Install
from intergroup_core.ids import MemberId
from intergroup_core.log.reader import LogReader
from intergroup_core.runtime.inbox import Event
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.keeping import Span

Spans = dict[MemberId, tuple[int, int]]
MAX_SENDERS = 4_096
"""Of those longest silent nothing is known any more."""


class Held:
    """Follows a log as it is appended to and kept; a sender's messages come in order, and a gap is announced.

    Where views meet, what was sent in the other ones is not delivered here, and a sender that was there goes on.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Span | Install | None]] = deque()
        """Entries that are not kept yet; a gap is none of the others."""
        self._spans: Spans = {}
        self.older: list[Spans] = []
        """What logs have that do not grow any more, each without a gap."""
        self.withheld: Callable[[], bool] = lambda: False
        """Whether the site remembers what it has not stated yet: until then it must not be counted for anything."""

    def appended(self, entry: int, event: Event) -> None:
        match event:
            case Chunk():
                self._waiting.append((entry, (event.source, event.first_seq, event.last_seq)))
            case Install(branches=branches) if branches:
                self._waiting.append((entry, event))
            case Gap():
                self._waiting.append((entry, None))

    def kept(self, stop: int) -> None:
        """All entries below are kept."""
        while self._waiting and self._waiting[0][0] < stop:
            match self._waiting.popleft()[1]:
                case None:
                    self._spans.clear()
                case Install(transitional=together):
                    self._spans = {source: span for source, span in self._spans.items() if source in together}
                case (source, first, last):
                    begin, _ = self._spans.pop(source, (first, last))
                    self._spans[source] = begin, last
                    if len(self._spans) > MAX_SENDERS:
                        self._spans.pop(next(iter(self._spans)))

    def within(self, spans: Iterable[Span]) -> tuple[Span, ...]:
        """As much of these as is kept, of each sender without a gap, be it in several logs."""
        if self.withheld():
            return ()
        found = []
        for source, first, last in spans:
            kept = [known[source] for known in (self._spans, *self.older) if source in known]
            parts = [(max(begin, first), min(end, last)) for begin, end in _joined(kept)]
            begin, end = max(parts, key=lambda part: part[1] - part[0], default=(1, 0))
            if begin <= end:
                found.append((source, begin, end))
        return tuple(found)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of one sender, those put together of which one goes on where another ends."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


def spans_of(log: LogReader) -> Spans:
    """What a log that does not grow any more has of each sender; nothing where it may lack something in between."""
    if log.skips() or any(len(segment.index.gaps) or segment.damages for segment in log.segments):
        return {}
    for number in log.view_entries():
        (view,) = log.entries(number, number + 1, check=False)
        if view.install().branches:
            return {}
    last = log.last_seqs()
    return {source: (first, last[source]) for source, first in log.first_seqs().items()}
