"""What all members have and take: the least of what their reports say."""

from __future__ import annotations

from collections.abc import Iterable

from intergroup_core.config import ReportConfig
from intergroup_core.hierarchy.relayed import Relayed
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.wire.messages import Place, Report

MILLISECOND = 1_000_000
NO_WINDOW = 1 << 62
"""A seq nobody reaches: a sender alone waits for no one."""


class Minima:
    """The latest report of every counted member, and what follows from all of them together."""

    INITIAL_FRAMES = 64
    """Room assumed of a member that has not reported yet."""

    def __init__(
        self,
        me: MemberId,
        view_tag: int,
        counted: Iterable[MemberId],
        activations: dict[MemberId, int],
        config: ReportConfig,
        frame_bytes: int,
    ) -> None:
        self._me = me
        self._view_tag = view_tag
        self._activation = activations.get(me, 1)
        self._sends = me in activations
        self._others = dict.fromkeys(member for member in counted if member != me)
        self._reports: dict[MemberId, Report] = {}
        self._heard: dict[MemberId, int] = {}
        self._senders: frozenset[MemberId] = frozenset()
        self._last_senders: frozenset[MemberId] = frozenset()
        """Where no sender is left, those by whom a receiver went: they still know whom they counted."""
        self._confirmed: set[MemberId] = set()
        self._pins: dict[MemberId, tuple[int, int]] = {}
        self._leased: dict[MemberId, None] = {}
        self._live = False
        self._ready = Timestamp(0)
        self._applied = Timestamp(0)
        self._applied_anywhere = 0
        self._unsure_until = 0
        self._is_unsure = False
        self._frozen = Timestamp(0)
        self._relaying = 0
        self._relayed_at = 0
        self._unheeded = 0
        self._met: dict[MemberId, int] = {}
        """When each sender was last heard, as one that goes by the same hierarchy."""
        self._apart_at: int | None = None
        self.relayed = Relayed(self.INITIAL_FRAMES)
        self.place: Place | None = None
        """Where this member's site is in the hierarchy."""
        self._audience: dict[MemberId, int] = {}
        self.name = ""
        """What this member calls itself in some of its reports."""
        self.names: dict[MemberId, str] = {}
        self._least_of_others = Timestamp(0)
        self._busy_ns = round(config.busy_ms * MILLISECOND)
        self._idle_ns = round(config.idle_ms * MILLISECOND)
        self._sources = max(1, len(activations))
        self._frame_bytes = frame_bytes
        self._prompt_frames = max(1, int(config.room_bytes * config.room_fraction) // frame_bytes)
        self._serial = 0
        self._frames = 0
        self._told_room = -1
        self._named_at = 0
        self._due_at = 0
        self.window = self._window()
        """The highest seq this member may send."""

    def room_frames(self, room_bytes: int) -> int:
        """A source's share of the room, in frames: a small frame takes a socket buffer as much as a full one."""
        return room_bytes // self._frame_bytes // self._sources

    def stable(self, acknowledged: int) -> int:
        """What every counted member has, given what this one acknowledges."""
        # Asked at every stimulus: the usual case compares once and calls nothing.
        if acknowledged > self._least_of_others and (self._others or self._is_unsure or self.relayed):
            acknowledged = self._least_of_others
        if not self.relayed.any or self.goes_by_senders():
            return acknowledged
        return min(acknowledged, self.relayed.bound())

    def lowest_contiguous(self, source: MemberId) -> int:
        """The last seq of a source that every other counted member has; without others, anything."""
        return min((self._contiguous(self._reports.get(member), source) for member in self._others), default=NO_WINDOW)

    def slowest(self) -> MemberId | None:
        """The member whose room ends the window first."""
        return min(self._others, key=lambda member: self._window_of(self._reports.get(member)), default=None)

    def _least(self) -> Timestamp:
        """What all others have, as far as this member can tell."""
        reports = self._reports
        if self._is_unsure:
            told = [self._stable_told_by(member) for member in self._senders if member != self._me]
            return Timestamp(max(self._frozen, min(told, default=0)))
        heard = (self._senders if self.goes_by_senders() else self._others.keys()) - {self._me}
        if any(member not in reports for member in heard):
            return Timestamp(0)
        told = [self._told_by(reports[member]) for member in heard]
        if not self.goes_by_senders():
            told += self.relayed.acknowledged()
        return Timestamp(min(told, default=0))

    def goes_by_senders(self) -> bool:
        """A receiver may not have heard of every other one: only senders know whom they count."""
        return self._live and bool(self._senders) and self._me not in self._senders

    def _told_by(self, report: Report) -> int:
        if self._is_unsure or self.goes_by_senders() or report.member in self._last_senders:
            return report.live.stable if report.live is not None else 0
        return report.acknowledged

    def dropped_by_senders(self) -> int:
        """What some sender takes as stable, and has perhaps dropped."""
        most = 0
        for member in self._senders:
            report = self._reports.get(member)  # nobody has one of its own
            if report is not None and report.live is not None and report.live.stable > most:
                most = report.live.stable
        return most

    def _stable_told_by(self, member: MemberId) -> int:
        report = self._reports.get(member)
        return report.live.stable if report is not None and report.live is not None else 0

    def _contiguous(self, report: Report | None, source: MemberId) -> int:
        """How far a member has a source; a member that does not follow it holds nobody back."""
        if report is None:
            return self._activation - 1
        for known, seq in report.contiguous:
            if known == source:
                return seq
        return NO_WINDOW

    def _window_of(self, report: Report | None) -> int:
        room = report.room_frames if report is not None else self.INITIAL_FRAMES
        return self._contiguous(report, self._me) + room

    def _window(self) -> int:
        reports = self._reports
        return min((self._window_of(reports.get(member)) for member in self._others), default=NO_WINDOW)

    def _changed(self) -> None:
        self._least_of_others = self._least()
        self.window = self._window()
