"""Causal order, with and without holes (properties 14 and 15).

A sending depends on what its sender sent and delivered before it. As a sender's messages depend on each other in
their order, one number per sender, the furthest of its messages depended on, says it all.
"""

from __future__ import annotations

import numpy as np

from intergroup_core.ids import MemberId, Service
from intergroup_core.sim.checkers.course import BEFORE_ANY, Ints
from intergroup_core.sim.checkers.history import UNKNOWN, History, Stream
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.trace import Delivered, Ordered, Sent


def dependencies(history: History, *, ordered_only: bool) -> Ints:
    """For every message and sender, the rank of the furthest message it depends on, or -1.

    With `ordered_only`, what an application got by another service does not count, as D6 has it for holes.
    """
    found = history.dependencies.get(ordered_only)
    if found is None:
        found = history.dependencies[ordered_only] = _trace_dependencies(history, ordered_only)
    return found


def _trace_dependencies(history: History, ordered_only: bool) -> Ints:
    senders = len(history.senders)
    needs = np.full((history.count, senders), -1, dtype=np.int64)
    rows: list[list[int] | None] = [None] * history.count
    past: dict[MemberId, list[int]] = {sender: [-1] * senders for sender in history.senders}
    services = {member.id: member.service for member in history.members.values()}
    ranks, sources = history.rank.tolist(), history.source.tolist()
    for position, event in enumerate(history.events):
        message = history.message_at[position]
        if message == UNKNOWN or event.member not in past:
            continue
        kind = type(event)
        known = past[event.member]
        if kind is Sent:
            rows[message] = known[:]
            known[sources[message]] = max(known[sources[message]], ranks[message])
        elif kind is Ordered or (
            kind is Delivered and not (ordered_only and services[event.member] is not Service.RTO)
        ):
            row = rows[message]
            if row is not None:
                known[:] = map(max, known, row)
            if ranks[message] > known[sources[message]]:
                known[sources[message]] = ranks[message]
    for message, row in enumerate(rows):
        if row is not None:
            needs[message] = row
    return needs


def _first_break(history: History, stream: Stream, needs: Ints) -> tuple[int, int] | None:
    """The first delivery that comes before one of something it depends on, and that something."""
    places = np.full(history.count, -1, dtype=np.int64)
    """Where in the stream each message was first delivered."""
    known = np.flatnonzero(stream.messages != UNKNOWN)
    places[stream.messages[known[::-1]]] = known[::-1]
    wanted = needs[stream.messages[known]]
    worst: tuple[int, int] | None = None
    for sender in range(len(history.senders)):
        first, end = history.first[sender], history.first[sender + 1]
        depends = np.flatnonzero(wanted[:, sender] >= 0)
        if first == end or not len(depends):
            continue
        latest = np.maximum.accumulate(places[first:end])[wanted[depends, sender]]
        broken = latest > known[depends]
        if broken.any():
            at = int(np.argmax(broken))
            delivery = int(known[depends[at]])
            if worst is None or delivery < worst[0]:
                late = places[first : first + wanted[depends[at], sender] + 1] > delivery
                worst = delivery, int(first + np.argmax(late))
    return worst


def _first_missing(history: History, stream: Stream, needs: Ints) -> tuple[int, int] | None:
    """A delivery without something it depends on, whose sender came along from that one's view to this one."""
    known = np.flatnonzero(stream.messages != UNKNOWN)
    if not len(known) or not len(stream.course):
        return None
    absent = ~history.before_cut(stream)
    absent[stream.messages[known]] = False
    home = np.where(history.home == UNKNOWN, BEFORE_ANY, stream.course.ordinals[history.home])
    missing = np.flatnonzero(absent & (home != BEFORE_ANY))
    if not len(missing):
        return None
    until = stream.course.parted[home[missing], history.source[missing]]
    ordinals, wanted = stream.ordinals[known], needs[stream.messages[known]]
    # Of the messages of one sender that are owed equally long, the first is what most depend on.
    groups = np.unique(np.stack((history.source[missing], until)), axis=1).T
    for sender, bound in groups.tolist():
        first = int(missing[(history.source[missing] == sender) & (until == bound)][0])
        broken = (wanted[:, sender] >= history.rank[first]) & (ordinals < bound)
        if broken.any():
            return int(known[np.argmax(broken)]), first
    return None


def causal_order(history: History) -> Violation | None:
    """14. If sending m happened before sending m', nobody delivers m' before m."""
    needs = dependencies(history, ordered_only=False)
    for stream in history.ordered_streams:
        found = _first_break(history, stream, needs)
        if found is not None:
            at, missed = found
            late = int(np.flatnonzero(stream.messages == missed)[0])
            return Violation(
                property="14 causal order",
                member=stream.member.id,
                detail="delivered a message before one that its sending depended on",
                events=(history.sending(missed), history.delivery(stream, at), history.delivery(stream, late)),
            )
    return None


def reliable_causal(history: History) -> Violation | None:
    """15. No causal predecessor is missing while its sender is in every view in between (T property 1.4).

    Timestamp-ordered deliveries count as causes.
    """
    # Where every sender's application reads in timestamp order, both properties have the same causes.
    mixed = any(
        history.members[sender].service is not Service.RTO for sender in history.senders if sender in history.members
    )
    needs = dependencies(history, ordered_only=mixed)
    for stream in history.ordered_streams:
        found = _first_missing(history, stream, needs) or _first_break(history, stream, needs)
        if found is not None:
            at, missed = found
            return Violation(
                property="15 reliable causal",
                member=stream.member.id,
                detail="delivered a message without one that its sending depended on",
                events=(history.sending(missed), history.delivery(stream, at)),
            )
    return None
