"""Up to where a stream may be planned: what is kept here, and at the level asked for also elsewhere (18a)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from types import MappingProxyType
from typing import NamedTuple

from intergroup_core.agent.levels import LOCAL, STABLE, Wanted
from intergroup_core.effects import Gap, Install
from intergroup_core.errors import LocalProtocolError
from intergroup_core.ids import COUNTER_BITS, MemberId, Service, ViewId
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.standings import Passed
from intergroup_core.runtime.inbox import Event
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.keeping import MAX_SPANS, Span

MAX_TAIL = 4_096
"""Entries kept in mind for readers who come later and want so many sites to have them; older ones count as held."""
MAX_WAITING = 65_536
"""Entries that may wait for sites at a level that counts these; beyond it nobody asks for that level any more."""

LATELY_SECONDS = 60.0
"""Who has not asked for so long does not read any more."""
MAX_LEVELS = 16

Has = Callable[[MemberId, int, int], bool]
"""Whether enough sites have a sender's message, by its seq and timestamp."""


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
    begins: bool = False
    """Whether it stands for all that lies before the log."""


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

    def copy(self) -> Head:
        """Another one that stands here and has the same before it."""
        other = copy(self)
        other._waiting = deque(self._waiting)
        other._passed = deepcopy(self._passed)
        return other

    def advance(
        self, kept: int, upto: int | None, has: Has | None = None, everywhere: int = 0, promised: int = 0
    ) -> None:
        """Entries below are kept; of these what is at or below a timestamp counts, and what enough sites have.

        No site is asked for what lies before the log: it counts once everybody has it. Without a timestamp all that is
        kept counts, and senders may have promised that nothing more comes up to one.
        """
        if upto is not None and self._orderly:
            # Of the microsecond it lies in there may be more to come.
            upto = (upto >> COUNTER_BITS << COUNTER_BITS) - 1
        while self._waiting:
            mark = self._waiting[0]
            if mark.entry >= kept or (upto is not None and mark.timestamp > upto):
                break
            if has is not None and not _is_had(mark, has, everywhere):
                break
            self._enter(self._waiting.popleft())
        self._upto = upto if upto is not None else promised

    def shorten(self, most: int) -> None:
        """Let the oldest count without being asked for, so that no more wait."""
        while len(self._waiting) > most:
            self._enter(self._waiting.popleft())

    def _enter(self, mark: Mark) -> None:
        self._entry = mark.entry + 1
        self._order = mark.order or self._order
        if self._service is Service.RSO:
            self._pass(mark)
        if not self._is_followed_within(mark.timestamp):
            self._whole = self._order

    def spans(self, kept: int) -> list[Span]:
        """What waits and is kept here, of each sender from its first to its last message."""
        found: dict[MemberId, tuple[int, int]] = {}
        for mark in self._waiting:
            if mark.entry >= kept:
                break
            if mark.source is not None and (mark.source in found or len(found) < MAX_SPANS):
                first, _ = found.get(mark.source, (mark.seq, mark.seq))
                found[mark.source] = first, mark.seq
        return [(source, first, last) for source, (first, last) in found.items()]

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
    def waits(self) -> int:
        """How many entries do not count yet."""
        return len(self._waiting)

    @property
    def upto(self) -> int:
        """At or below this timestamp nothing more will come behind the head; 0 in `uu`, where nobody promises that."""
        if not self._waiting:
            return self._upto
        # Only in rto does what waits first come before all else that waits; a gap has no time of its own.
        timed = (mark.first for mark in self._waiting if mark.first)
        least = self._waiting[0].first if self._orderly else min(timed, default=self._upto)
        return min(self._upto, (least >> COUNTER_BITS << COUNTER_BITS) - 1)

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


def _is_had(mark: Mark, has: Has, everywhere: int) -> bool:
    if mark.begins:
        return mark.timestamp <= everywhere
    return mark.source is None or has(mark.source, mark.seq, mark.timestamp)


class Heads:
    """The head of one stream at every level that somebody asks for."""

    def __init__(self, service: Service, log: int) -> None:
        self._heads = {LOCAL: Head(service, log), STABLE: Head(service, log)}
        self._counted: dict[Wanted, Head] = {}
        self._tail = Head(service, log)
        """Where heads begin that count sites."""
        self._asked: dict[Wanted, float] = {}
        self._overrun: set[Wanted] = set()
        """Levels whose head would have to pass over what nobody was asked for."""
        self._service = service
        self._view: ViewId | None = None

    def appended(
        self, entry: int, event: Event, behind: OrderCut | None = None, before: SourceCut | None = None
    ) -> None:
        """An entry was made; one that only carries a view says behind what the log begins.

        What lies before that counts as well: it can be fetched, and its senders may have nothing to send any more.
        """
        mark = self._mark(entry, event, behind)
        if behind is not None or before is not None:
            mark = mark._replace(begins=True)
        if before is not None:
            mark = mark._replace(before={source: seq for source, seq in before.seqs.items() if seq > 0})
        for head in (*self._heads.values(), self._tail, *self._counted.values()):
            head.appended(mark)
        self._tail.shorten(MAX_TAIL)
        for level in [level for level, head in self._counted.items() if head.waits > MAX_WAITING]:
            if time.monotonic() - self._asked[level] < LATELY_SECONDS:
                self._overrun.add(level)
            del self._counted[level]

    def advance(self, kept: int, frontier: Frontier) -> None:
        if self._service is Service.UU:
            # What uu delivers nobody acknowledges: it is there, or it is not.
            for head in self._heads.values():
                head.advance(kept, None)
            return
        local = frontier.here if self._service is Service.RTO else None
        self._heads[LOCAL].advance(kept, local, promised=frontier.here)
        self._heads[STABLE].advance(kept, frontier.everywhere)

    def count(self, level: Wanted, kept: int, frontier: Frontier, has: Has) -> None:
        """Go on at a level that counts sites, as far as enough of them have everything."""
        self._head(level).advance(kept, frontier.here, has, frontier.everywhere)

    def _head(self, level: Wanted) -> Head:
        if not level.counts_sites:
            return self._heads[level]
        self._asked[level] = time.monotonic()
        if level in self._overrun:
            raise LocalProtocolError(
                f"too few log-holding sites have the last {MAX_WAITING} entries, and what lacks at read level {level} "
                "is not remembered beyond that: read at another level, or end this site's agent when they are back"
            )
        if level not in self._counted:
            if len(self._counted) >= MAX_LEVELS:
                raise LocalProtocolError(f"readers here ask for {MAX_LEVELS} levels that count sites; use one of these")
            self._counted[level] = self._tail.copy()
        return self._counted[level]

    def spans(self, level: Wanted, kept: int) -> list[Span]:
        """What sites must have for the head to go on at a level."""
        return self._head(level).spans(kept)

    def cut(self, level: Wanted) -> Cut | None:
        return self._head(level).cut

    def upto(self, level: Wanted) -> int:
        return self._head(level).upto

    def waits(self, level: Wanted) -> bool:
        """Whether there is something that does not count at a level yet."""
        return self._head(level).waits > 0

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
