"""Stability is true (property 16)."""

from __future__ import annotations

from intergroup_core.ids import MemberId, Service
from intergroup_core.sim.checkers.history import UNKNOWN, History
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.trace import Delivered, Ordered, StableDropped


class _Progress:
    """How far one counted member has every source."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._ahead: set[int] = set()
        self.next = history.first[:-1].tolist()
        """Per sender, the index of its first message not delivered here."""
        self._ends = history.first[1:].tolist()
        self._timestamps = history.timestamp.tolist()
        self._sources = history.source.tolist()
        self.lowest = [self._stamp(sender) for sender in range(len(self.next))]

    def _stamp(self, sender: int) -> int:
        index = self.next[sender]
        return self._timestamps[index] if index < self._ends[sender] else 1 << 63

    def delivered(self, message: int) -> None:
        sender = self._sources[message]
        if message != self.next[sender]:
            self._ahead.add(message)
            return
        self.next[sender] += 1
        while self._ahead and self.next[sender] in self._ahead:
            self._ahead.discard(self.next[sender])
            self.next[sender] += 1
        self.lowest[sender] = self._stamp(sender)


def stability_is_true(history: History) -> Violation | None:
    """16. A message dropped as stable had been locally stable at every member then counted.

    Membership is fixed, so the counted are the same throughout, crashed ones included. A sender is counted by its
    timestamp order and, where it has one, by its application's reliable stream.
    """
    progress: dict[tuple[MemberId, bool], _Progress] = {
        (stream.member.id, stream.internal): _Progress(history)
        for stream in history.reliable_streams
        if stream.member.counted and stream.incarnation == 0
    }
    uncounted = {member.id for member in history.members.values() if not member.counted}
    unreliable = {member.id for member in history.members.values() if member.service is Service.UU}
    for position, event in enumerate(history.events):
        kind = type(event)
        if kind is Delivered or kind is Ordered:
            message = history.message_at[position]
            skipped = event.member in uncounted or (kind is Delivered and event.member in unreliable)
            if message != UNKNOWN and not skipped:
                progress[event.member, kind is Ordered].delivered(message)
        elif kind is StableDropped:
            assert isinstance(event, StableDropped)
            for (member, _), reached in progress.items():
                if min(reached.lowest, default=1 << 63) <= event.upto:
                    sender = reached.lowest.index(min(reached.lowest))
                    return Violation(
                        property="16 stability is true",
                        member=member,
                        detail="a message was dropped as stable before this counted member had delivered it",
                        events=(history.sending(reached.next[sender]), event),
                    )
    return None
