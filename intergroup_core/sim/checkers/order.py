"""FIFO, reliable FIFO, total order and what makes it up (properties 11 to 13)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from intergroup_core.ids import MemberId, format_member
from intergroup_core.sim.checkers.history import UNKNOWN, History, Ints, Stream
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.trace import Event, Installed, Promised, Sent


def _by_source(stream: Stream) -> tuple[Ints, Ints]:
    """The stream's places grouped by source, and which neighbours in that grouping share one."""
    grouped = np.argsort(stream.sources, kind="stable")
    sources = stream.sources[grouped]
    return grouped, np.flatnonzero((sources[1:] == sources[:-1]) & (sources[1:] != UNKNOWN))


def fifo(history: History) -> Violation | None:
    """11. Messages of one sender arrive in the order sent."""
    for stream in history.reliable_streams:
        grouped, pairs = _by_source(stream)
        before, after = grouped[pairs], grouped[pairs + 1]
        wrong = stream.seqs[after] < stream.seqs[before]
        if wrong.any():
            at = int(np.argmax(wrong))
            return Violation(
                property="11 fifo",
                member=stream.member.id,
                detail=f"a message of {format_member(history.senders[stream.sources[after[at]]])} after a later one",
                events=(history.delivery(stream, before[at]), history.delivery(stream, after[at])),
            )
    return None


def reliable_fifo(history: History) -> Violation | None:
    """12. No gap between two delivered messages of a sender (T property 1.2)."""
    for stream in history.reliable_streams:
        grouped, pairs = _by_source(stream)
        before, after = grouped[pairs], grouped[pairs + 1]
        known = (stream.messages[before] != UNKNOWN) & (stream.messages[after] != UNKNOWN)
        # Messages of one sender are neighbours in the table, so a step of more than one is a hole.
        wrong = known & (stream.messages[after] > stream.messages[before] + 1)
        if wrong.any():
            at = int(np.argmax(wrong))
            missing = stream.messages[before[at]] + 1
            return Violation(
                property="12 reliable fifo",
                member=stream.member.id,
                detail=f"a hole in the messages of {format_member(history.senders[stream.sources[after[at]]])}",
                events=(
                    history.delivery(stream, before[at]),
                    history.sending(missing),
                    history.delivery(stream, after[at]),
                ),
            )
    return None


def total_order(history: History) -> Violation | None:
    """13. Any two messages delivered by two members are delivered in the same order at both (T property 1.3)."""
    streams = sorted(history.ordered_streams, key=len, reverse=True)
    if not streams:
        return None
    # Whoever delivered only what the longest stream holds, in its order, agrees with everybody else who did.
    reference, others = streams[0], []
    for stream in streams[1:]:
        if (found := _disagreement(history, reference, stream)) is not None:
            return found
        if not np.isin(stream.messages, reference.messages).all():
            others.append(stream)
    for one, other in combinations(others, 2):
        if (found := _disagreement(history, one, other)) is not None:
            return found
    return None


def _disagreement(history: History, one: Stream, other: Stream) -> Violation | None:
    place = np.full(history.count, -1, dtype=np.int64)
    known = np.flatnonzero(one.messages != UNKNOWN)[::-1]
    place[one.messages[known]] = known
    common = np.flatnonzero(other.messages != UNKNOWN)
    common = common[place[other.messages[common]] >= 0]
    places = place[other.messages[common]]
    wrong = places[1:] < places[:-1]
    if not wrong.any():
        return None
    at = int(np.argmax(wrong))
    return Violation(
        property="13 total order",
        member=other.member.id,
        detail=f"two messages in the other order than at {format_member(one.member.id)}",
        events=(
            history.delivery(one, places[at + 1]),
            history.delivery(one, places[at]),
            history.delivery(other, common[at]),
            history.delivery(other, common[at + 1]),
        ),
    )


def ascending(history: History) -> Violation | None:
    """13a. Deliveries and views strictly increase in (timestamp, sender) between gaps."""
    for stream in history.ordered_streams:
        earlier, later = stream.timestamps[:-1], stream.timestamps[1:]
        wrong = (later < earlier) | ((later == earlier) & (stream.sources[1:] <= stream.sources[:-1]))
        if wrong.any():
            at = int(np.argmax(wrong))
            return Violation(
                property="13a ascending",
                member=stream.member.id,
                detail="a delivery at or below the one before it",
                events=(history.delivery(stream, at), history.delivery(stream, at + 1)),
            )
    return _views_ascend(history)


def _views_ascend(history: History) -> Violation | None:
    views = [(position, event) for position, event in enumerate(history.events) if type(event) is Installed]
    for stream in history.ordered_streams:
        for position, view in views:
            if view.member != stream.member.id or position < stream.opened:
                continue
            at = int(np.searchsorted(stream.positions, position))
            if at < len(stream) and stream.timestamps[at] <= view.start:
                return _around(history, stream, at, view, "a delivery at or below the start of its view")
            if at and stream.timestamps[at - 1] >= view.start:
                return _around(history, stream, at - 1, view, "a view that starts at or below what came before it")
    return None


def _around(history: History, stream: Stream, at: int, view: Event, detail: str) -> Violation:
    return Violation(
        property="13a ascending",
        member=stream.member.id,
        detail=detail,
        events=(view, history.delivery(stream, at)),
    )


def promises_kept(history: History) -> Violation | None:
    """13b. No sender stamps at or below a promise it made; every frame and keep-alive is one (D2, D3)."""
    promised: dict[MemberId, tuple[int, Event]] = {}
    for event in history.events:
        if type(event) is Sent:
            stamped, promise = event.first_timestamp, event.timestamp
        elif type(event) is Promised:
            # A keep-alive may repeat the promise before it, but never lowers it and is above the last data.
            stamped = promise = event.timestamp
        else:
            continue
        before = promised.get(event.member)
        repeated = before is not None and type(event) is Promised and type(before[1]) is Promised
        if before is not None and (stamped < before[0] or (stamped == before[0] and not repeated)):
            return Violation(
                property="13b promises kept",
                member=event.member,
                detail="stamped at or below a promise",
                events=(before[1], event),
            )
        promised[event.member] = (promise, event)
    return None


def nothing_skipped(history: History) -> Violation | None:
    """13c. Whatever a reliable member skips is announced by a gap.

    By source for both services, the first message of a view included; by timestamp too where that is the order.
    """
    for stream in history.reliable_streams:
        known = stream.messages[stream.messages != UNKNOWN]
        if not len(known):
            continue
        delivered = np.zeros(history.count, dtype=bool)
        delivered[known] = True
        if stream.incarnation:
            # What came before a gap was announced by it.
            delivered |= history.place < history.place[known].min()
        skipped = ~delivered & (history.rank <= _furthest(history, known))
        if stream.ordered:
            skipped |= ~delivered & (history.place < history.place[known].max())
        if skipped.any():
            missing = int(np.flatnonzero(skipped)[np.argmin(history.place[skipped])])
            beyond = np.flatnonzero(
                (stream.messages != UNKNOWN) & (history.place[stream.messages] > history.place[missing])
            )
            return Violation(
                property="13c nothing skipped",
                member=stream.member.id,
                detail="delivered beyond a message that it neither delivered nor announced as a gap",
                events=(history.sending(missing), *(history.delivery(stream, at) for at in beyond[:1])),
            )
    return None


def _furthest(history: History, messages: Ints) -> Ints:
    """For every message, the rank of the last one of its source that is among those given, or -1."""
    last = np.full(len(history.senders), -1, dtype=np.int64)
    np.maximum.at(last, history.source[messages], history.rank[messages])
    return last[history.source]
