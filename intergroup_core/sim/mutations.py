"""Bugs planted on purpose, one at a time, to see that the checkers catch them.

Each replaces one method of a production class while its context lasts. They stand in for mistakes that somebody
could make in that very place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from intergroup_core.delivery.assembly import Assembly
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.delivery.outbox import Outbox
from intergroup_core.delivery.rso import ReliableSourceOrdered
from intergroup_core.delivery.rto import ReliableTimestampOrdered
from intergroup_core.delivery.sender import Sender
from intergroup_core.delivery.uu import UnreliableUnordered
from intergroup_core.hierarchy.flat import FlatReports
from intergroup_core.ids import MAX_TIMESTAMP, Timestamp, timestamp_span
from intergroup_core.multicast.buffer import MessageBuffer
from intergroup_core.multicast.reception import Reception
from intergroup_core.multicast.reliable import ReliableMulticast
from intergroup_core.multicast.requests import RequestScheduler
from intergroup_core.wire import chunk as chunk_module
from intergroup_core.wire import parse as parse_module
from intergroup_core.wire.checksum import seal_frames
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.frames import FrameMaker

SOME_TIME = timestamp_span(50_000_000)
"""Fifty milliseconds, as a difference of timestamps."""

Wrong = Callable[..., Any]
Planting = tuple[object, str, Callable[[Wrong], Wrong]]

PLANTINGS: dict[str, Planting] = {}
"""Every planted bug: what it replaces, and how."""


Plant = Callable[[Callable[[Wrong], Wrong]], Callable[[Wrong], Wrong]]


def registry(plantings: dict[str, Planting]) -> Callable[[object, str], Plant]:
    """Makes the decorator that enters bugs into a table."""

    def bug(owner: object, attribute: str) -> Plant:
        def register(make: Callable[[Wrong], Wrong]) -> Callable[[Wrong], Wrong]:
            plantings[make.__name__] = (owner, attribute, make)
            return make

        return register

    return bug


_bug = registry(PLANTINGS)


@contextmanager
def planted(name: str, plantings: dict[str, Planting] = PLANTINGS) -> Iterator[None]:
    """The production code with one bug in it."""
    owner, attribute, make = plantings[name]
    right = getattr(owner, attribute)
    setattr(owner, attribute, make(right))
    try:
        yield
    finally:
        setattr(owner, attribute, right)


# Activation and gaps


@_bug(ReliableMulticast, "__init__")
def activation_is_taken_as_delivered(right: Wrong) -> Wrong:
    def wrong(self: Any, me: Any, *rest: Any, **named: Any) -> None:
        right(self, me, *rest, **named)
        for source, reception in self.receptions.items():
            if source != me:
                reception.contiguous += 1
                reception.highest += 1

    return wrong


@_bug(ReliableSourceOrdered, "add")
def rso_starts_after_its_activation(right: Wrong) -> Wrong:
    return lambda self, source, promise, activation: right(self, source, promise, activation + 1)


@_bug(ReliableMulticast, "_missing")
def gap_is_ignored(right: Wrong) -> Wrong:
    return lambda self, source, first, last, now: None


@_bug(ReliableMulticast, "_missing")
def request_range_is_truncated(right: Wrong) -> Wrong:
    return lambda self, source, first, last, now: right(self, source, first, max(first, last - 1), now)


@_bug(ReliableMulticast, "exists")
def keepalive_seq_is_ignored(right: Wrong) -> Wrong:
    return lambda self, source, seq, now: None


@_bug(Reception, "store")
def hole_is_stepped_over(right: Wrong) -> Wrong:
    def wrong(self: Any, run: Any) -> Any:
        if len(self._later) >= 2:
            self.contiguous = max(self.contiguous, min(run.seq, self._later[0].seq) - 1)
        return right(self, run)

    return wrong


@_bug(RequestScheduler, "tick")
def request_is_never_repeated(right: Wrong) -> Wrong:
    def wrong(self: Any, now: int) -> Any:
        due = right(self, now)
        for span in due.spans:
            self.arrived(span.source, span.first, span.last, now)
        return due

    return wrong


@_bug(RequestScheduler, "overheard")
def overheard_request_ends_ones_own(right: Wrong) -> Wrong:
    def wrong(self: Any, requester: Any, source: Any, first: int, last: int, now: int) -> None:
        if self.waiting(source):
            self.arrived(source, first, last, now)

    return wrong


# Repairs and the buffer


@_bug(ReliableMulticast, "arrived")
def repair_is_delivered_again(right: Wrong) -> Wrong:
    def wrong(self: Any, run: Any, now: int) -> Any:
        again = run.repaired and run.last_seq <= self.receptions[run.source].contiguous
        return right(self, run, now) or ([run] if again else [])

    return wrong


@_bug(FrameMaker, "repairs")
def repair_has_the_wrong_seq(right: Wrong) -> Wrong:
    def wrong(self: Any, stored: Any, exchange: Any) -> Any:
        frames = stored.copy()
        frames[:, 0] &= np.uint64(0xFFFFFFFF00000000)
        frames[:, 4] += np.uint64(1)
        seal_frames(frames)
        return right(self, frames, exchange)

    return wrong


@_bug(MessageBuffer, "held")
def neighbour_is_repaired_instead(right: Wrong) -> Wrong:
    return lambda self, source, first, last: right(self, source, first + 1, last + 1)


@_bug(MessageBuffer, "drop_stable")
def buffer_is_dropped_too_early(right: Wrong) -> Wrong:
    return lambda self, stable: right(self, stable + 4 * SOME_TIME)


# Fragments, runs and records


@_bug(Assembly, "add")
def fragment_is_skipped(right: Wrong) -> Wrong:
    def wrong(self: Any, run: Any) -> Any:
        if run.ends and len(self.partial) > 1:
            del self.partial[1]
        return right(self, run)

    return wrong


@_bug(chunk_module, "_join")
def fragments_are_joined_in_the_wrong_order(right: Wrong) -> Wrong:
    return lambda head, *rest: right(head[::-1], *rest)


@_bug(Chunk, "cut")
def run_is_split_one_too_late(right: Wrong) -> Wrong:
    def wrong(self: Any, bound: int) -> Any:
        inside = sum(self.run.timestamp + end <= bound for end in self.run.ends)
        if inside + 1 < len(self.run.ends):
            bound = self.run.timestamp + self.run.ends[inside]
        return right(self, bound)

    return wrong


@_bug(UnreliableUnordered, "arrived")
def uu_glues_halves_of_messages(right: Wrong) -> Wrong:
    def wrong(self: Any, run: Any) -> None:
        if run.source in self._sources and not run.repaired:
            self._sources[run.source] = (run.seq, self._sources[run.source][1])
        right(self, run)

    return wrong


@_bug(Outbox, "offer")
def records_change_places(right: Wrong) -> Wrong:
    return lambda self, records: right(self, list(records)[::-1])


@_bug(parse_module, "scan_frames")
def checksum_of_runs_is_not_verified(right: Wrong) -> Wrong:
    return lambda frames: (np.ones(len(frames), dtype=bool), *right(frames)[1:])


@_bug(parse_module, "check_frames")
def checksum_of_few_frames_is_not_verified(right: Wrong) -> Wrong:
    return lambda frames: np.ones(len(frames), dtype=bool)


@_bug(parse_module, "check_frame")
def checksum_of_frames_is_not_verified(right: Wrong) -> Wrong:
    return lambda frame, stated: True


# Timestamps and promises


@_bug(HybridClock, "observe")
def clock_does_not_observe(right: Wrong) -> Wrong:
    return lambda self, timestamp: None


@_bug(Sender, "keepalive_frame")
def keepalive_does_not_raise_the_clock(right: Wrong) -> Wrong:
    def wrong(self: Any, now: Any) -> Any:
        before = self._clock.last
        made = right(self, now)
        self._clock.last = before
        return made

    return wrong


@_bug(HybridClock, "stamp")
def fragments_share_a_timestamp(right: Wrong) -> Wrong:
    def wrong(self: Any, count: int, now: Any) -> Any:
        first = right(self, count, now)
        self.last = first
        return first

    return wrong


@_bug(ReliableTimestampOrdered, "promised")
def promise_is_taken_too_high(right: Wrong) -> Wrong:
    return lambda self, source, timestamp: right(self, source, timestamp + SOME_TIME)


@_bug(Reception, "keepalive")
def promise_holds_over_missing_frames(right: Wrong) -> Wrong:
    def wrong(self: Any, seq: int, timestamp: int) -> bool:
        right(self, seq, timestamp)
        self.promise = max(self.promise, timestamp)
        return True

    return wrong


@_bug(ReliableTimestampOrdered, "_limit")
def tie_break_is_lost(right: Wrong) -> Wrong:
    def wrong(self: Any, least: Any, first: int) -> int:
        bounds = [
            other.queue[0].first_timestamp if other.queue else other.promise
            for other in self._sources.values()
            if other is not least
        ]
        return min(bounds, default=int(MAX_TIMESTAMP))

    return wrong


@_bug(ReliableTimestampOrdered, "_limit")
def silent_sources_are_not_waited_for(right: Wrong) -> Wrong:
    def wrong(self: Any, least: Any, first: int) -> int:
        others = [other for other in self._sources.values() if other is not least and other.queue]
        return min((other.queue[0].first_timestamp for other in others), default=int(MAX_TIMESTAMP))

    return wrong


@_bug(ReliableTimestampOrdered, "ordered")
def own_messages_are_not_ordered(right: Wrong) -> Wrong:
    return lambda self, run: None if run.source == self._me else right(self, run)


@_bug(ReliableTimestampOrdered, "take")
def split_run_keeps_what_was_delivered(right: Wrong) -> Wrong:
    def wrong(self: Any) -> Any:
        heads = {source.id: source.queue[0] for source in self._sources.values() if source.queue}
        taken = right(self)
        for source in self._sources.values():
            head = heads.get(source.id)
            if head is not None and source.queue and source.queue[0].last_seq == head.last_seq:
                source.queue[0] = head
        return taken

    return wrong


# Acknowledgments and stability


@_bug(ReliableTimestampOrdered, "acknowledged")
def undelivered_messages_are_acknowledged(right: Wrong) -> Wrong:
    return lambda self, own: own


@_bug(ReliableSourceOrdered, "acknowledged")
def rso_acknowledges_its_clock(right: Wrong) -> Wrong:
    return lambda self, own: own


@_bug(FlatReports, "_least")
def silent_member_is_left_out_of_stability(right: Wrong) -> Wrong:
    def wrong(self: Any) -> Timestamp:
        known = sorted(report.acknowledged for report in self._reports.values())
        return Timestamp(known[1] if len(known) > 1 else 0)

    return wrong


@_bug(FlatReports, "make")
def report_acknowledges_the_future(right: Wrong) -> Wrong:
    return lambda self, acknowledged, *rest: right(self, acknowledged + SOME_TIME, *rest)
