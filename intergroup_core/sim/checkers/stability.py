"""Stability is true (property 16)."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from intergroup_core.ids import MemberId
from intergroup_core.sim.checkers.course import BEFORE_ANY, Course, Ints
from intergroup_core.sim.checkers.history import NEVER, UNKNOWN, Flags, History, Stream
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.trace import CountedChanged, Crashed, Disturbed, GapAnnounced, Left, StableDropped, Suspected

LEFT_OUT = frozenset({"failed", "blocked"})
"""Why a view goes on without a sender that did not want to go."""


class _Counted:
    """When each member counts: for ever where membership is fixed, else as it says itself.

    One that was paused or cut off, or given up by somebody that did not hear it, cannot know whether others still
    count it, so it does not until it says so anew.
    """

    def __init__(self, history: History) -> None:
        self._fixed = {member.id: member.counted for member in history.members.values()}
        self._live = history.live
        changes: dict[MemberId, list[tuple[int, bool]]] = defaultdict(list)
        gone: set[MemberId] = set()
        for position, event in enumerate(history.events):
            if isinstance(event, CountedChanged):
                changes[event.member].append((position, event.counted and event.member not in gone))
            elif isinstance(event, Suspected):
                changes[event.suspect].append((position, False))
            elif isinstance(event, (Left, GapAnnounced, Crashed, Disturbed)):
                changes[event.member].append((position, False))
                if not isinstance(event, Disturbed):
                    gone.add(event.member)
        self._positions = {member: np.array([at for at, _ in found]) for member, found in changes.items()}
        self._says = {member: np.array([False, *(said for _, said in found)]) for member, found in changes.items()}

    def at(self, member: MemberId, positions: Ints) -> Flags:
        if not self._live or member not in self._says:
            return np.full(len(positions), self._fixed[member], dtype=bool)
        found: Flags = self._says[member][np.searchsorted(self._positions[member], positions)]
        return found


class _Dropped:
    """The messages one member delivered, and where in the trace it dropped each as stable."""

    def __init__(self, history: History, stream: Stream, drops: list[tuple[int, int]]) -> None:
        known = stream.messages != UNKNOWN
        self.stream = stream
        self.messages = stream.messages[known]
        self.ordinals = stream.ordinals[known]
        places = np.array([position for position, _ in drops], dtype=np.int64)
        reached = np.maximum.accumulate(np.array([upto for _, upto in drops], dtype=np.int64))
        self.at = np.append(places, NEVER)[np.searchsorted(reached, history.timestamp[self.messages])]


def stability_is_true(history: History) -> Violation | None:
    """16. A message dropped as stable had been locally stable at every member then counted.

    A sender counts while it is in every view from the message's to the one in which it is dropped; any other
    member while it says so, for what belongs to views that it had installed by then and both went through together. One
    that was made a sender meanwhile and left out again, perhaps before it knew of either, counts no longer (H3).
    """
    drops: dict[MemberId, list[tuple[int, int]]] = defaultdict(list)
    for position, event in enumerate(history.events):
        if type(event) is StableDropped:
            drops[event.member].append((position, event.upto))
    counted = _Counted(history)
    for stream in _orders(history):
        if stream.member.id not in drops or not len(stream):
            continue
        dropped = _Dropped(history, stream, drops[stream.member.id])
        for other in history.reliable_streams:
            late = np.flatnonzero(_delivered_at(history, other)[dropped.messages] > dropped.at)
            if len(late):
                late = late[_was_counted(history, dropped, other, late, counted)]
            if len(late):
                first = int(late[np.argmin(dropped.at[late])])
                return Violation(
                    property="16 stability is true",
                    member=other.member.id,
                    detail="a message was dropped as stable before this counted member had delivered it",
                    events=(history.sending(dropped.messages[first]), history.events[int(dropped.at[first])]),
                )
    return None


def _orders(history: History) -> list[Stream]:
    """What each member goes by when it drops: its timestamp order, or the only reliable order it has."""
    found: dict[MemberId, Stream] = {}
    for stream in history.reliable_streams:
        if stream.ordered or stream.member.id not in found:
            found[stream.member.id] = stream
    return list(found.values())


def _delivered_at(history: History, stream: Stream) -> Ints:
    """Where in the trace each message was first delivered."""
    found = np.full(history.count, NEVER, dtype=np.int64)
    known = np.flatnonzero(stream.messages != UNKNOWN)[::-1]
    found[stream.messages[known]] = stream.positions[known]
    return found


def _was_counted(history: History, dropped: _Dropped, other: Stream, late: Ints, counted: _Counted) -> Flags:
    """Which of the messages the other member should have had, given what both knew."""
    if not history.live:
        return counted.at(other.member.id, dropped.at[late])
    here, there = dropped.stream.course, other.course
    if not len(here) or not len(there):
        return np.zeros(len(late), dtype=bool)
    ordinals = dropped.ordinals[late]
    elsewhere = np.where(ordinals == BEFORE_ANY, BEFORE_ANY, there.ordinals[here.views[ordinals]])
    owed: Flags = (elsewhere != BEFORE_ANY) & ~history.before_cut(other)[dropped.messages[late]]
    after_here, after_there = _following(here.views, ordinals), _following(there.views, elsewhere)
    # Whoever went on before it was dropped had, by property 10, all that its next view owes it.
    gone = np.append(there.positions, NEVER)[np.where(elsewhere == BEFORE_ANY, -1, elsewhere + 1)] < dropped.at[late]
    owed &= (after_here == after_there) | (after_there == UNKNOWN) | ((after_here == UNKNOWN) & ~gone)
    if not owed.any():
        return owed
    says = counted.at(other.member.id, dropped.at[late]) & (there.positions[elsewhere] < dropped.at[late])
    index = history.sender_index.get(other.member.id)
    if index is not None:
        sends = np.array([other.member.id in view.members for view in here.events], dtype=bool)[ordinals]
        along = here.parted[ordinals, index] > here.ordinal_at(dropped.at[late])
        says = np.where(sends, along, says)
    owed &= says & ~_left_out(here, other.member.id, ordinals, here.ordinal_at(dropped.at[late]))
    return owed


def _left_out(course: Course, member: MemberId, since: Ints, upto: Ints) -> Flags:
    """Whether a view after one and up to another says that the member failed."""
    told = [dict(view.departed).get(member) for view in course.events]
    gone = np.array([ordinal for ordinal, reason in enumerate(told) if reason in LEFT_OUT], dtype=np.int64)
    found: Flags = np.append(gone, NEVER)[np.searchsorted(gone, since, side="right")] <= upto
    return found


def _following(views: Ints, ordinals: Ints) -> Ints:
    """The number of the view after each, or -1."""
    return np.append(views, UNKNOWN)[np.where(ordinals == BEFORE_ANY, len(views), ordinals + 1)]
