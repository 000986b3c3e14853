"""FIFO, reliable FIFO, total order and what makes it up (properties 11 to 13)."""

from __future__ import annotations

import numpy as np

from intergroup_core.ids import MemberId, format_member
from intergroup_core.sim.checkers.course import BEFORE_ANY, Ints, view_key
from intergroup_core.sim.checkers.history import NEVER, UNKNOWN, Flags, History, Stream
from intergroup_core.sim.checkers.synchrony import delivered_in
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.trace import Event, Promised, Sent


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
    """12. No gap between two delivered messages of a sender while it is in every view in between (T property 1.2)."""
    for stream in history.reliable_streams:
        grouped, pairs = _by_source(stream)
        before, after = grouped[pairs], grouped[pairs + 1]
        known = (stream.messages[before] != UNKNOWN) & (stream.messages[after] != UNKNOWN)
        # Messages of one sender are neighbours in the table, so a step of more than one is a hole.
        wrong = known & (stream.messages[after] > stream.messages[before] + 1)
        wrong &= (stream.ordinals[before] == stream.ordinals[after]) | _came_along(history, stream, before, after)
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


def _came_along(history: History, stream: Stream, before: Ints, after: Ints) -> Flags:
    """For pairs of deliveries of one source each: whether it was in every view in between."""
    if not len(stream.course):
        return np.zeros(len(before), dtype=bool)
    return stream.course.parted[stream.ordinals[before], stream.sources[before]] > stream.ordinals[after]


def total_order(history: History) -> Violation | None:
    """13. Any two messages delivered by two members are delivered in the same order at both (T property 1.3)."""
    # Streams that follow the order by timestamp and sender agree with each other; only the rest need comparing.
    streams = history.ordered_streams
    strays = [stream for stream in streams if not _follows_timestamps(history, stream)]
    for stray in strays:
        for stream in streams:
            if stream is not stray and (found := _disagreement(history, stream, stray)) is not None:
                return found
    return None


def _follows_timestamps(history: History, stream: Stream) -> bool:
    places = history.place[stream.messages[stream.messages != UNKNOWN]]
    return bool((places[1:] > places[:-1]).all())


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
    for stream in history.ordered_streams:
        course = stream.course
        if not len(stream) or not len(course):
            continue
        at = np.searchsorted(stream.positions, course.positions)
        inside = np.minimum(at, len(stream) - 1)
        after = (at < len(stream)) & (stream.timestamps[inside] <= course.starts)
        before = (at > 0) & (stream.timestamps[at - 1] >= course.starts)
        for ordinal in np.flatnonzero(after | before):
            view = course.events[ordinal]
            # A view by an ordered message has that message's place, so ties are broken as between messages.
            place = view_key(view.view)
            key = (place.start, place.leader)
            if after[ordinal] and _key(history, stream, at[ordinal]) <= key:
                return _around(history, stream, int(at[ordinal]), view, "a delivery at or below the start of its view")
            if before[ordinal] and _key(history, stream, at[ordinal] - 1) >= key:
                detail = "a view that starts at or below what came before it"
                return _around(history, stream, int(at[ordinal]) - 1, view, detail)
    return None


def _key(history: History, stream: Stream, at: int) -> tuple[int, int]:
    source = int(stream.sources[at])
    return int(stream.timestamps[at]), history.senders[source] if source != UNKNOWN else UNKNOWN


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

    By source for both services, the first message that a view owes included; by timestamp too where that is the
    order. What two members owe each other when they go on to the same view is property 10's.
    """
    for stream in history.reliable_streams:
        known = stream.messages[stream.messages != UNKNOWN]
        if not len(known) or not len(stream.course):
            continue
        absent = ~history.before_cut(stream)
        absent[known] = False
        skipped = absent & _skipped_by_source(history, stream)
        if stream.ordered:
            skipped |= absent & _skipped_by_timestamp(history, stream)
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


def _skipped_by_source(history: History, stream: Stream) -> Flags:
    """Messages before a delivered one of their sender, which came along from their view to that one's."""
    known = np.flatnonzero(stream.messages != UNKNOWN)
    following = np.full(history.count, NEVER, dtype=np.int64)
    """For every message, the ordinal of the view in which the next delivered one of its sender was delivered."""
    following[stream.messages[known][::-1]] = stream.ordinals[known][::-1]
    # The table has each sender's messages together: look from the end of each for the next one delivered.
    delivered = np.where(following < NEVER, np.arange(history.count), history.count)
    upcoming = np.minimum.accumulate(delivered[::-1])[::-1]
    exists = upcoming < history.first[history.source + 1]
    until = following[np.where(exists, upcoming, 0)]
    home = stream.course.ordinals[history.home]
    owed: Flags = exists & (history.home != UNKNOWN) & (home != BEFORE_ANY)
    parted = stream.course.parted[np.maximum(home, 0), history.source]
    owed &= (home >= until) | (parted > until)
    return owed


def _skipped_by_timestamp(history: History, stream: Stream) -> Flags:
    """In the last view of a member, all that belongs to it and lies below what the member delivered there.

    Where nobody delivered a message, it belongs to the view it was sent in if its sender never came out of that. One
    that took a gap may have delivered the end of the view first, as somebody did that went on: then it lacks what
    that one lacks.
    """
    nothing = np.zeros(history.count, dtype=bool)
    last = len(stream.course) - 1
    there = delivered_in(stream, last)
    if not len(there):
        return nothing
    view = int(stream.course.views[last])
    stayed = np.array([_ended_in(history, sender, view) for sender in history.senders], dtype=bool)
    belongs: Flags = (history.home == view) & (history.ordered_somewhere | stayed[history.source])
    belongs &= history.place < history.place[there].max()
    if stream.member.id in history.gapped:
        belongs[there] = False
        for other in history.ordered_streams:
            ordinal = int(other.course.ordinals[view])
            if BEFORE_ANY < ordinal < len(other.course) - 1:
                theirs = delivered_in(other, ordinal)
                if np.isin(there, theirs).all() and not belongs[theirs].any():
                    return nothing
    return belongs


def _ended_in(history: History, sender: MemberId, view: int) -> bool:
    course = history.courses.get(sender)
    return course is not None and len(course) > 0 and int(course.views[-1]) == view
