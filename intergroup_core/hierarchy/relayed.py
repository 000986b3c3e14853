"""Members that do not report themselves because the hierarchy speaks for them, as those see it who wait for them.

A receiver that falls silent says so first. What it acknowledged last holds everybody back until the hierarchy has
spoken again: then it has spoken of that receiver too, for nobody falls silent before every coordinator counts it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.ports import Told
from intergroup_core.wire.messages import Report

NO_BOUND = 1 << 62
"""A seq or a timestamp nobody reaches."""


class Waits(NamedTuple):
    """How long things take in the hierarchy, in nanoseconds."""

    margin: int
    """What is said so long after a member fell silent was said of that member too."""
    patience: int
    """A hierarchy that has said nothing for so long may never speak again; one whose coordinator died does."""
    notice: int
    """Every receiver that hears a sender reports to it again so long after that was asked of them; who does not hear
    it knows itself uncounted by then."""


class _Silent(NamedTuple):
    acknowledged: int
    since: int
    serial: int


class Relayed:
    """Who said that it falls silent, and what the hierarchy said of all."""

    MAX_MEMBERS = 20_000
    """Members remembered until the hierarchy has spoken; further ones are waited for as if they reported."""

    def __init__(self, initial_frames: int) -> None:
        self._initial_frames = initial_frames
        self._silent: dict[MemberId, _Silent] = {}
        self._told: Told | None = None
        self._told_after = 0
        self._spoken_at: int | None = None
        self._lost_at: int | None = None
        self._given_up = False
        self.any = False
        """Whether there are members that do not report themselves."""

    def __contains__(self, member: MemberId) -> bool:
        return member in self._silent

    def __bool__(self) -> bool:
        return bool(self._silent)

    def serial_of(self, member: MemberId) -> int:
        """Of the last report heard from one that fell silent."""
        silent = self._silent.get(member)
        return silent.serial if silent is not None else 0

    def falls_silent(self, report: Report, now: int) -> bool:
        """A member says so; False where there are too many to remember."""
        known = self._silent.get(report.member)
        if known is None and len(self._silent) >= self.MAX_MEMBERS:
            return False
        since = now if known is None else known.since
        self._silent[report.member] = _Silent(report.acknowledged, since, report.serial)
        self.any = True
        return True

    def forget(self, member: MemberId) -> bool:
        """It reports again, or is gone; whether it was silent."""
        return self._silent.pop(member, None) is not None

    def enter(self, now: int) -> None:
        """A new epoch, of which the hierarchy has said nothing yet."""
        self._told, self._told_after = None, now

    def told(self, told: Told | None, margin_ns: int) -> bool:
        """What the hierarchy says; it may be older than what came a moment before. Whether fewer are waited for."""
        if told is not None:
            self._spoken_at = max(told.at, self._spoken_at or told.at)
        if told is None or told is self._told or told.at < self._told_after + margin_ns:
            return False
        self._told = told
        spoken_for = [member for member, silent in self._silent.items() if silent.since + margin_ns <= told.at]
        for member in spoken_for:
            del self._silent[member]
        return bool(spoken_for)

    def listen(self, waits: Waits, now: int) -> bool:
        """A sender that hears nothing of the hierarchy asks for reports, and then goes by those; whether it just began.

        Nobody is silent by then, for receivers are silent only while every sender goes by the hierarchy.
        """
        if self._spoken_at is None:
            self._spoken_at = now
        if now - self._spoken_at <= waits.patience:
            self._lost_at, self._given_up = None, False
            return False
        if self._lost_at is None:
            self._lost_at = now
        if self._given_up or now - self._lost_at <= waits.notice:
            return False
        self._given_up = True
        self._silent.clear()
        return True

    @property
    def lost(self) -> bool:
        """Whether this member has not heard of the hierarchy for too long, and wants reports."""
        return self._lost_at is not None

    @property
    def binds(self) -> bool:
        """Whether what the hierarchy says holds this member back."""
        return self.any and not self._given_up

    def acknowledged(self) -> Iterator[int]:
        """What those had that the hierarchy has not spoken of since."""
        return (silent.acknowledged for silent in self._silent.values())

    def bound(self) -> int:
        """What all have of whom only the hierarchy knows."""
        if not self.binds:
            return NO_BOUND
        return self._told.upto if self._told is not None else Timestamp(0)

    def window(self, stable_seq: int) -> int:
        """Where a sender must stop for their sake, given its last stable frame (D10)."""
        if not self.binds:
            return NO_BOUND
        return stable_seq + (self._told.room if self._told is not None else self._initial_frames)
