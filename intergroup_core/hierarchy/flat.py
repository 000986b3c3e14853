"""Flat reports: every member tells all what it has and takes; from that, stability and the send window.

A group of known members needs no more. Stability is the least acknowledged timestamp of the counted members
(T3.5); the window of a sender ends where the slowest of them has no more room (D10).
"""

from __future__ import annotations

from collections.abc import Iterable

from intergroup_core.config import ReportConfig
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.wire.messages import Report

MILLISECOND = 1_000_000
NO_WINDOW = 1 << 62
"""A seq nobody reaches: a sender alone waits for no one."""


class FlatReports:
    """The latest report of every counted member, and when this member owes one itself."""

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
        self._least_of_others = Timestamp(0)
        self._busy_ns = round(config.busy_ms * MILLISECOND)
        self._idle_ns = round(config.idle_ms * MILLISECOND)
        self._sources = max(1, len(activations))
        self._frame_bytes = frame_bytes
        self._prompt_frames = max(1, int(config.room_bytes * config.room_fraction) // frame_bytes)
        self._serial = 0
        self._frames = 0
        self._told_room = -1
        self._due_at = 0
        self.window = self._window()
        """The highest seq this member may send."""

    def room_frames(self, room_bytes: int) -> int:
        """A source's share of the room, in frames: a small frame takes a socket buffer as much as a full one."""
        return room_bytes // self._frame_bytes // self._sources

    def received(self, report: Report) -> bool:
        """Take a counted member's report; whether it was new."""
        if report.member not in self._others:
            return False
        known = self._reports.get(report.member)
        if known is not None and report.serial <= known.serial:
            return False
        self._reports[report.member] = report
        # Most reports move neither minimum, and in a large group looking at everybody each time would be all it does.
        if known is None or known.acknowledged <= self._least_of_others:
            self._least_of_others = self._least()
        if self._sends:
            before, after = self._window_of(known), self._window_of(report)
            if after <= self.window:
                self.window = after
            elif before <= self.window:
                self.window = self._window()
        return True

    def stable(self, acknowledged: int) -> int:
        """What every counted member has, given what this one acknowledges."""
        return min(acknowledged, self._least_of_others) if self._others else acknowledged

    def lowest_contiguous(self, source: MemberId) -> int:
        """The last seq of a source that every other counted member has; without others, anything."""
        return min((self._contiguous(self._reports.get(member), source) for member in self._others), default=NO_WINDOW)

    def slowest(self) -> MemberId | None:
        """The member whose room ends the window first."""
        return min(self._others, key=lambda member: self._window_of(self._reports.get(member)), default=None)

    def _least(self) -> Timestamp:
        reports = self._reports
        if any(member not in reports for member in self._others):
            return Timestamp(0)
        return min((reports[member].acknowledged for member in self._others), default=Timestamp(0))

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

    def data_arrived(self, frames: int, now: int) -> None:
        """Frames came in: report soon, or at once when much of the room is used."""
        self._frames += frames
        self._due_at = min(self._due_at, now if self._frames >= self._prompt_frames else now + self._busy_ns)

    def progressed(self, now: int) -> None:
        """Something worth telling changed."""
        self._due_at = min(self._due_at, now + self._busy_ns)

    def room_changed(self, room_frames: int, now: int) -> None:
        """Room came back to a member that had told of little: its senders wait for this."""
        if room_frames > 2 * self._told_room:
            self._due_at = min(self._due_at, now)

    def next_deadline(self) -> int:
        return self._due_at

    def make(self, acknowledged: int, contiguous: dict[MemberId, int], room_frames: int, now: int) -> Report:
        """This member's report as of now; the next one is due after the idle period."""
        self._serial += 1
        self._frames = 0
        self._told_room = room_frames
        self._due_at = now + self._idle_ns
        return Report(
            member=self._me,
            view_tag=self._view_tag,
            serial=self._serial,
            acknowledged=Timestamp(acknowledged),
            contiguous=tuple(contiguous.items()),
            room_frames=room_frames,
        )
