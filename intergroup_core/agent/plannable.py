"""Up to where a stream may be planned: what is kept here, and at the level asked for also elsewhere (18a)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from intergroup_core.effects import Gap, Install
from intergroup_core.errors import ConfigError
from intergroup_core.ids import COUNTER_BITS, MemberId, Service, ViewId
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.standings import Passed
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
    first: int
    timestamp: int
    """From which on, and up to which it reaches."""
    source: MemberId | None
    seq: int
    order: OrderCut | None
    before: Mapping[MemberId, int] = MappingProxyType({})
    """Seqs that senders had come to before the log begins."""
    event: Install | Gap | None = None
    """What says where senders stand, in `rso`."""


class Frontier(NamedTuple):
    """Timestamps at or below which nothing more comes."""

    here: int
    everywhere: int


class Head:
    """Follows a log that grows, at one level: what is not there yet waits as marks, not as data.

    In `rto` a head never lies between two messages of one microsecond: that is what rows show of a timestamp, and a
    reader's watermark takes a row for late that comes after another one of the same time.
    """

    def __init__(self, service: Service, log: int) -> None:
        self._service = service
        self._log = log
        self._waiting: deque[Mark] = deque()
        self._orderly = service is Service.RTO
        self._entry = 0
        self._order: OrderCut | None = None
        self._passed = Passed()
        self._upto = 0
        self._whole: OrderCut | None = None
        """The last cut between two microseconds."""

    def appended(self, mark: Mark) -> None:
        self._waiting.append(mark)

    def advance(self, kept: int, upto: int | None) -> None:
        """Entries below are kept; with a timestamp only what is at or below that counts."""
        if upto is not None and self._orderly:
            # Of the microsecond it lies in there may be more to come.
            upto = (upto >> COUNTER_BITS << COUNTER_BITS) - 1
        while self._waiting:
            mark = self._waiting[0]
            if mark.entry >= kept or (upto is not None and mark.timestamp > upto):
                break
            self._waiting.popleft()
            self._entry = mark.entry + 1
            self._order = mark.order or self._order
            if self._service is Service.RSO:
                self._pass(mark)
            if not self._is_followed_within(mark.timestamp):
                self._whole = self._order
        self._upto = upto if upto is not None else self._upto

    def _pass(self, mark: Mark) -> None:
        self._passed.begin(mark.before)
        match mark.event:
            case Install() as install:
                self._passed.enter(install)
            case Gap():
                self._passed.skip()
            case None if mark.source is not None:
                self._passed.data(mark.source, mark.seq)

    def _is_followed_within(self, timestamp: int) -> bool:
        """Whether what waits next is of the same microsecond."""
        return bool(self._waiting) and self._waiting[0].first >> COUNTER_BITS <= timestamp >> COUNTER_BITS

    @property
    def waits(self) -> bool:
        return bool(self._waiting)

    @property
    def upto(self) -> int:
        """In `rto`: at or below this timestamp nothing more will come behind the head."""
        if not self._waiting:
            return self._upto
        return min(self._upto, (self._waiting[0].first >> COUNTER_BITS << COUNTER_BITS) - 1)

    @property
    def cut(self) -> Cut | None:
        """Behind all that counts; None before anything does. In `uu` a log is an order from its beginning."""
        match self._service:
            case Service.UU:
                return EntryCut(self._log, self._entry)
            case Service.RTO:
                return self._whole
            case Service.RSO if not self._entry:
                return None
            case Service.RSO:
                return self._passed.cut


class Heads:
    """The head of one stream at every level."""

    def __init__(self, service: Service, log: int) -> None:
        self._heads = {level: Head(service, log) for level in ReadLevel}
        self._service = service
        self._view: ViewId | None = None

    def appended(
        self, entry: int, event: Event, behind: OrderCut | None = None, before: SourceCut | None = None
    ) -> None:
        """An entry was made; one that only carries a view says behind what the log begins.

        What lies before that counts as well: it can be fetched, and its senders may have nothing to send any more.
        """
        mark = self._mark(entry, event, behind)
        if before is not None:
            mark = mark._replace(before={source: seq for source, seq in before.seqs.items() if seq > 0})
        for head in self._heads.values():
            head.appended(mark)

    def advance(self, kept: int, frontier: Frontier) -> None:
        self._heads[ReadLevel.LOCAL].advance(kept, frontier.here if self._service is Service.RTO else None)
        # What uu delivers nobody acknowledges: it is there, or it is not.
        self._heads[ReadLevel.STABLE].advance(kept, frontier.everywhere if self._service is not Service.UU else None)

    def cut(self, level: ReadLevel) -> Cut | None:
        return self._heads[level].cut

    def upto(self, level: ReadLevel) -> int:
        return self._heads[level].upto

    def waits(self, level: ReadLevel) -> bool:
        """Whether there is something that does not count at a level yet."""
        return self._heads[level].waits

    def _mark(self, entry: int, event: Event, behind: OrderCut | None) -> Mark:
        match event:
            case Chunk():
                order = OrderCut(event.last_timestamp, event.source, self._view)
                return Mark(entry, event.first_timestamp, event.last_timestamp, event.source, event.last_seq, order)
            case Install(view=view):
                self._view = view.id
                order = behind or OrderCut(view.id.start, view.id.leader, view.id)
                return Mark(entry, order.timestamp, order.timestamp, None, 0, order, event=event)
            case Gap():
                return Mark(entry, 0, 0, None, 0, None, event=event)
