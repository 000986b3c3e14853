"""Same view delivery and virtual synchrony (properties 9 and 10), on every timestamp order, internal ones too."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np

from intergroup_core.ids import format_member
from intergroup_core.sim.checkers.course import BEFORE_ANY, Ints
from intergroup_core.sim.checkers.history import UNKNOWN, History, Stream
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.trace import Event


def same_view_delivery(history: History) -> Violation | None:
    """9. Two members that deliver a message deliver it in the same view."""
    found = np.full(history.count, UNKNOWN, dtype=np.int64)
    for stream in history.ordered_streams:
        known = np.flatnonzero((stream.messages != UNKNOWN) & (stream.ordinals != BEFORE_ANY))
        messages, views = stream.messages[known], stream.course.views[stream.ordinals[known]]
        wrong = (found[messages] != UNKNOWN) & (found[messages] != views)
        if wrong.any():
            at = int(np.argmax(wrong))
            message = int(messages[at])
            other = _delivered_in(history, message, int(found[message]))
            return Violation(
                property="9 same view delivery",
                member=stream.member.id,
                detail=f"in another view than at {format_member(other.member.id)}",
                events=(*_in_its_view(history, other, message), *_in_its_view(history, stream, message)),
            )
        found[messages] = views
    return None


def _delivered_in(history: History, message: int, view: int) -> Stream:
    return next(
        stream
        for stream in history.ordered_streams
        for at in np.flatnonzero(stream.messages == message)
        if stream.course.views[stream.ordinals[at]] == view
    )


def _in_its_view(history: History, stream: Stream, message: int) -> tuple[Event, Event]:
    at = int(np.flatnonzero(stream.messages == message)[0])
    return stream.course.events[int(stream.ordinals[at])], history.delivery(stream, at)


def delivered_in(stream: Stream, ordinal: int) -> Ints:
    """What a stream delivered in one of its member's views."""
    first, end = np.searchsorted(stream.ordinals, (ordinal, ordinal + 1))
    messages = stream.messages[first:end]
    found: Ints = messages[messages != UNKNOWN]
    return found


def virtual_synchrony(history: History) -> Violation | None:
    """10. Two members that go from view V to the same next view W delivered the same messages in V.

    One that bootstrapped in V is held to what follows its cut.
    """
    together: dict[tuple[int, int], list[tuple[Stream, int]]] = defaultdict(list)
    for stream in history.ordered_streams:
        views = stream.course.views.tolist()
        for ordinal, (view, following) in enumerate(pairwise(views)):
            together[view, following].append((stream, ordinal))
    for group in together.values():
        parts = [(stream, ordinal, delivered_in(stream, ordinal)) for stream, ordinal in group]
        everything = np.unique(np.concatenate([messages for _, _, messages in parts]))
        for stream, ordinal, messages in parts:
            if len(messages) >= len(everything):
                continue
            missing = everything[~np.isin(everything, messages)]
            if ordinal == 0:
                missing = missing[~history.before_cut(stream)[missing]]
            if len(missing):
                first = int(missing[np.argmin(history.place[missing])])
                other = next(one for one, _, held in parts if first in held)
                return Violation(
                    property="10 virtual synchrony",
                    member=stream.member.id,
                    detail=f"{len(missing)} messages less than {format_member(other.member.id)} "
                    "delivered between the same two views",
                    events=(
                        *stream.course.events[ordinal : ordinal + 2],
                        history.sending(first),
                        history.delivery(other, np.flatnonzero(other.messages == first)[0]),
                    ),
                )
    return None
