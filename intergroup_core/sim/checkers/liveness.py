"""After the network is quiet: everything arrives and buffers drain (properties 21 and 22).

With a fixed membership timestamp order waits for ever for a sender that is gone, and stability for a counted
member that is gone. So rto streams are judged only where every sender is alive and connected at the end, buffers
only where every counted member is too; rso streams for the sources that are.
"""

from __future__ import annotations

import numpy as np

from intergroup_core.ids import format_member
from intergroup_core.sim.checkers.history import History, Stream
from intergroup_core.sim.checkers.violation import Violation


def delivery_liveness(history: History) -> Violation | None:
    """21. Everything sent by live connected senders is delivered at every live connected rso and rto member."""
    reachable = np.array([sender in history.connected for sender in history.senders], dtype=bool)
    for stream in _last_incarnations(history):
        if stream.member.id not in history.connected or (stream.ordered and not history.order_is_live):
            continue
        owed = reachable[history.source] if history.count else np.zeros(0, dtype=bool)
        if stream.incarnation:
            owed &= history.position > stream.opened
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


def _last_incarnations(history: History) -> list[Stream]:
    last = {(stream.member.id, stream.internal): stream for stream in history.reliable_streams}
    return list(last.values())


def buffers_drain(history: History) -> Violation | None:
    """22. Message buffers and send queues return to empty."""
    counted = {member.id for member in history.members.values() if member.counted}
    if not history.order_is_live or not counted <= history.connected:
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
