"""After the network is quiet: one view, everything arrives, buffers drain (properties 20 to 22).

With a fixed membership timestamp order waits for ever for a sender that is gone, and stability for a counted
member that is gone. So there rto streams are judged only where every sender is alive and connected at the end, buffers
only where every counted member is too; rso streams for the sources that are.
"""

from __future__ import annotations

import numpy as np

from intergroup_core.ids import Service, format_member
from intergroup_core.sim.checkers.course import BEFORE_ANY
from intergroup_core.sim.checkers.history import UNKNOWN, Flags, History, Stream
from intergroup_core.sim.checkers.violation import Violation

IN_GOOD_ORDER = frozenset({"left", "silence"})
"""Departures after which everything the sender sent is still delivered."""


def membership_precision(history: History) -> Violation | None:
    """20. Connected live senders end in one view of exactly themselves, and receivers follow it."""
    if not history.live:
        return None
    senders = frozenset(member for member in history.connected if history.ended[member].sender)
    agreed: str | None = None
    for member in sorted(history.connected, key=lambda member: (member not in senders, member)):
        course = history.courses[member]
        follows = history.members[member].service is not Service.UU or member in senders
        if not senders or not follows:
            continue
        last = course.events[-1] if len(course) else None
        if last is None or set(last.members) != senders or last.view != (agreed or last.view):
            return Violation(
                property="20 membership precision",
                member=member,
                detail=f"the last view is not that of the {len(senders)} senders that are alive and connected: "
                + ", ".join(map(format_member, sorted(senders))),
                events=(*((last,) if last is not None else ()), history.ended[member]),
            )
        agreed = last.view
    return None


def delivery_liveness(history: History) -> Violation | None:
    """21. Everything sent by live connected senders is delivered at every live connected rso and rto member.

    Where membership changes that is: what belongs to a view that the member installed, from a sender that came
    along with it from there to the end, or left in good order.
    """
    for stream in history.reliable_streams:
        if stream.member.id not in history.connected or (stream.ordered and not history.order_is_live):
            continue
        owed = (_owed(history, stream) if history.live else _reachable(history)) & ~history.before_cut(stream)
        owed[stream.messages[stream.messages >= 0]] = False
        missing = np.flatnonzero(owed)
        if len(missing):
            first = missing[np.argmin(history.position[missing])]
            source = format_member(history.senders[history.source[first]])
            return Violation(
                property="21 delivery liveness",
                member=stream.member.id,
                detail=f"{len(missing)} messages never delivered{' internally' if stream.internal else ''}, "
                f"the first of {source}",
                events=(history.sending(first),),
            )
    return None


def _reachable(history: History) -> Flags:
    reachable = np.array([sender in history.connected for sender in history.senders], dtype=bool)
    return reachable[history.source] if history.count else np.zeros(0, dtype=bool)


def _owed(history: History, stream: Stream) -> Flags:
    course = stream.course
    if not len(course) or not history.count:
        return np.zeros(history.count, dtype=bool)
    home = np.where(history.home == UNKNOWN, BEFORE_ANY, course.ordinals[history.home])
    until = stream.course.parted[np.maximum(home, 0), history.source]
    in_order = np.zeros((len(course) + 1, len(history.senders)), dtype=bool)
    """By ordinal and sender, whether the sender was there until then and went in good order, or is there still."""
    in_order[-1] = [sender in history.connected for sender in history.senders]
    for ordinal, view in enumerate(course.events):
        for gone, reason in view.departed:
            if gone in history.sender_index:
                in_order[ordinal, history.sender_index[gone]] = reason in IN_GOOD_ORDER
    found: Flags = (home != BEFORE_ANY) & in_order[until, history.source]
    return found


def buffers_drain(history: History) -> Violation | None:
    """22. Message buffers and send queues return to empty."""
    counted = {member.id for member in history.members.values() if member.counted}
    if not history.live and (not history.order_is_live or not counted <= history.connected):
        return None
    for member, end in history.ended.items():
        if member in history.connected and (end.buffered or end.unsent):
            return Violation(
                property="22 buffers drain",
                member=member,
                detail=f"{end.buffered} bytes buffered and {end.unsent} unsent at the end",
                events=(end,),
            )
    return None
