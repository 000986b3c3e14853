"""Up to where a stream may be planned: what is kept here, and at the level asked for also elsewhere (18a)."""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import NamedTuple

from intergroup_core.effects import Gap, Install
from intergroup_core.errors import ConfigError
from intergroup_core.ids import MemberId, Service, ViewId
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.runtime.inbox import Event
from intergroup_core.wire.chunk import Chunk

LEVELS_TO_COME = ("k:N", "majority")


class ReadLevel(Enum):
    """Who must have something before a reader hears that it may be planned."""

    LOCAL = "local"
    """This site."""
    STABLE = "stable"
    """Every sender of the view and every live site with a log: no later repair can fall behind it."""


def read_level_of(level: object) -> ReadLevel:
    try:
        return ReadLevel(level)
    except ValueError:
        allowed = " or ".join(each.value for each in ReadLevel)
        raise ConfigError(
            f"read_level is {level!r:.40}; it must be {allowed} for now: {' and '.join(LEVELS_TO_COME)} need what "
            "single sites say of their logs, which is not built yet"
        ) from None


class Mark(NamedTuple):
    """Where a stream is behind an entry of its log."""

    entry: int
    timestamp: int
    """Up to which it reaches."""
    source: MemberId | None
    seq: int
    order: OrderCut | None


class Head:
    """Follows a log that grows, at one level: what is not there yet waits as marks, not as data."""

    def __init__(self, service: Service, log: int) -> None:
        self._service = service
        self._log = log
        self._waiting: deque[Mark] = deque()
        self._entry = 0
        self._order: OrderCut | None = None
        self._seqs: dict[MemberId, int] = {}

    def appended(self, mark: Mark) -> None:
        self._waiting.append(mark)

    def advance(self, kept: int, stable: int | None) -> None:
        """Entries below are kept; with a timestamp only what is at or below that counts."""
        while self._waiting:
            mark = self._waiting[0]
            if mark.entry >= kept or (stable is not None and mark.timestamp > stable):
                break
            self._waiting.popleft()
            self._entry = mark.entry + 1
            self._order = mark.order or self._order
            if mark.source is not None:
                self._seqs[mark.source] = mark.seq

    @property
    def cut(self) -> Cut | None:
        """Behind all that counts; None before anything does."""
        if not self._entry:
            return None
        match self._service:
            case Service.UU:
                return EntryCut(self._log, self._entry)
            case Service.RTO:
                return self._order
            case Service.RSO:
                return SourceCut(dict(self._seqs), self._order.view if self._order is not None else None)


class Heads:
    """The head of one stream at every level."""

    def __init__(self, service: Service, log: int) -> None:
        self._heads = {level: Head(service, log) for level in ReadLevel}
        self._orderly = service is not Service.UU
        self._view: ViewId | None = None

    def appended(self, entry: int, event: Event, behind: OrderCut | None = None) -> None:
        """An entry was made; one that only carries a view says behind what the log begins."""
        mark = self._mark(entry, event, behind)
        for head in self._heads.values():
            head.appended(mark)

    def advance(self, kept: int, stable: int) -> None:
        self._heads[ReadLevel.LOCAL].advance(kept, None)
        # What uu delivers nobody acknowledges: it is there, or it is not.
        self._heads[ReadLevel.STABLE].advance(kept, stable if self._orderly else None)

    def cut(self, level: ReadLevel) -> Cut | None:
        return self._heads[level].cut

    def _mark(self, entry: int, event: Event, behind: OrderCut | None) -> Mark:
        match event:
            case Chunk():
                order = OrderCut(event.last_timestamp, event.source, self._view)
                return Mark(entry, event.last_timestamp, event.source, event.last_seq, order)
            case Install(view=view):
                self._view = view.id
                order = behind or OrderCut(view.id.start, view.id.leader, view.id)
                return Mark(entry, order.timestamp, None, 0, order)
            case Gap():
                return Mark(entry, 0, None, 0, None)
