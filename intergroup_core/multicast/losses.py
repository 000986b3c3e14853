"""One loss as its requests see it, and what a source's earlier losses taught."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from intergroup_core.config import RepairConfig
from intergroup_core.ids import MemberId
from intergroup_core.multicast.adaptation import AnswerTime, RequestAdaptation

REMEMBERED = 64
"""Answered requests per source in which late duplicates are still recognised; beyond it the oldest is forgotten."""
LATE_DISTANCES = 3
"""How long after the answer a request still counts as a duplicate."""


@dataclass(eq=False, slots=True)
class Loss:
    """One notice; its tickets may be many once parts of it have arrived.

    Promises use the timer parameters but do not teach them: most come by themselves.
    """

    source: MemberId
    noticed: int
    distance: int
    frames: int
    missing: int
    promise: bool = False
    timed: bool = False
    sent: bool = False
    raised: int = 0
    """When more was last asked of a promise."""
    silent_since: int = field(init=False)
    """Patience counts from here: a source that is behind is not one that has fallen silent."""

    def __post_init__(self) -> None:
        self.silent_since = self.noticed

    def waited(self, now_ns: int) -> float:
        """In distances."""
        return (now_ns - self.noticed) / self.distance

    def is_untimed(self) -> bool:
        """True once: a loss has one delay, whatever its parts go through."""
        untimed, self.timed = not self.timed and not self.promise, True
        return untimed


@dataclass(eq=False, slots=True)
class Ticket:
    """What is missing with one timer.

    For a promise `last` is the timestamp wanted now, and `first` the least wanted that has not come.
    """

    loss: Loss
    first: int
    last: int
    attempt: int = 0
    """Requests for it so far, sent or heard: the i of 3^i."""
    due: int = 0
    deaf_until: int = 0
    """Requests heard before this time are the ones it has backed off for already (SRM's ignore-backoff)."""
    asked: int = 0

    def part(self, first: int, last: int) -> Ticket:
        return replace(self, first=first, last=last)


@dataclass(eq=False, slots=True)
class _Answered:
    """What was asked for and came; requests for it are late duplicates for a while."""

    loss: Loss
    first: int
    last: int
    until: int


class Experience:
    """What one source's losses were like."""

    __slots__ = ("_answered", "answer", "window")

    def __init__(self, config: RepairConfig) -> None:
        self.window = RequestAdaptation(config)
        self.answer = AnswerTime(config)
        self._answered: deque[_Answered] = deque(maxlen=REMEMBERED)

    def remember(self, ticket: Ticket, now_ns: int) -> None:
        """What this ticket asked for has come."""
        until = now_ns + LATE_DISTANCES * ticket.loss.distance
        newest = self._answered[-1] if self._answered else None
        if newest is not None and newest.loss is ticket.loss and newest.last + 1 == ticket.first:
            newest.last, newest.until = ticket.last, until
        else:
            self._answered.append(_Answered(ticket.loss, ticket.first, ticket.last, until))

    def answered_of(self, first: int, last: int, now_ns: int) -> list[tuple[Loss, int]]:
        """Losses answered a moment ago, and how many of these frames they were about."""
        return [
            (old.loss, min(last, old.last) - max(first, old.first) + 1)
            for old in self._answered
            if now_ns < old.until and old.first <= last and first <= old.last
        ]
