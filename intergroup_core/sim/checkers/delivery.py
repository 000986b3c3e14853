"""Integrity, no duplication, self delivery (properties 6 to 8)."""

from __future__ import annotations

import numpy as np

from intergroup_core.ids import MemberId, format_member
from intergroup_core.sim.checkers.history import UNKNOWN, History
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.trace import Left


def integrity(history: History) -> Violation | None:
    """6. What is delivered was sent before, unchanged, by the sender named; all services."""
    for stream in history.streams:
        if not len(stream):
            continue
        known = stream.messages != UNKNOWN
        if not known.all():
            at = int(np.argmin(known))
            return Violation(
                property="6 integrity",
                member=stream.member.id,
                detail="delivered what its source never sent",
                events=(history.delivery(stream, at),),
            )
        wrong = history.digest[stream.messages] != stream.digests
        wrong |= history.timestamp[stream.messages] != stream.timestamps
        wrong |= history.position[stream.messages] > stream.positions
        if wrong.any():
            at = int(np.argmax(wrong))
            return Violation(
                property="6 integrity",
                member=stream.member.id,
                detail="delivered other bytes, another timestamp, or before it was sent",
                events=(history.sending(stream.messages[at]), history.delivery(stream, at)),
            )
    return None


def no_duplication(history: History) -> Violation | None:
    """7. A reliable member delivers a message at most once."""
    for stream in history.reliable_streams:
        seen: dict[tuple[int, int], int] = {}
        names = zip(stream.sources.tolist(), stream.seqs.tolist(), strict=True)
        if len(set(names)) == len(stream):
            continue
        for at, name in enumerate(zip(stream.sources.tolist(), stream.seqs.tolist(), strict=True)):
            if name in seen:
                return Violation(
                    property="7 no duplication",
                    member=stream.member.id,
                    detail="delivered the same message twice",
                    events=(history.delivery(stream, seen[name]), history.delivery(stream, at)),
                )
            seen[name] = at
    return None


def self_delivery(history: History) -> Violation | None:
    """8. A sender delivers its own messages unless its incarnation ends.

    Judged at the end of the quiet phase, and where a member leaves. With a fixed membership timestamp order waits
    for every other sender, so there it is judged only while all of them are alive and connected.
    """
    for stream in history.streams:
        member = stream.member.id
        if member not in history.sender_index or not _owes_itself(history, member):
            continue
        if stream.ordered and not history.order_is_live:
            continue
        mine = history.sender_index[member]
        own = np.arange(history.first[mine], history.first[mine + 1])
        missing = own[~np.isin(own, stream.messages)]
        if len(missing):
            return Violation(
                property="8 self delivery",
                member=member,
                detail=f"{format_member(member)} never delivered {len(missing)} of its own messages",
                events=(history.sending(missing[0]),),
            )
    return None


def _owes_itself(history: History, member: MemberId) -> bool:
    """Whether a member lived to the end, or went in good order."""
    if member in history.left:
        left = history.events[history.left[member]]
        return type(left) is Left and left.reason == "left"
    return member in history.connected
