"""Flat reports: every member tells all what it has and takes; from that, stability and the send window.

Stability is the least acknowledged timestamp of the counted members (T3.5); the window of a sender ends where the
slowest of them has no more room (D10). Senders are counted because they are in the view. A receiver is counted by
whoever hears its report; senders name in their own reports whom they count and who does not know it yet, so that a
newcomer learns when all of them do (D7). In a large group the hierarchy speaks for receivers, which then do not report.
"""

from __future__ import annotations

from intergroup_core.hierarchy.relaying import Relaying
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.wire.messages import LiveReport, Report


class FlatReports(Relaying):
    """Takes the reports of others, and says when this member owes one itself."""

    MAX_AUDIENCE = 4_096
    """Receivers remembered by name at most."""
    UNSURE_PARTS = 8
    """While a member waits to be counted, or for others to be ready, it reports so many times as often."""

    def received(self, report: Report, now: int = 0) -> bool:
        """Take a counted member's report; whether it was new."""
        live = report.live
        if live is not None:
            knew = self.relayed.any
            self._overheard(report.member, live, now, current=report.view_tag == self._view_tag)
            if self._sends and (live.relayed or self.relayed.any) and not knew:
                self._due_at = min(self._due_at, now + self._busy_ns)  # receivers wait to hear that it knows
            if live.relayed and not self.goes_by_senders() and not self.relayed.lost:
                return self._falls_silent(report, now)
            if report.member in self.relayed and report.serial > self._last_serial(report.member):
                self.relayed.forget(report.member)
                self._others[report.member] = None
        if report.member not in self._others:
            return False
        known = self._reports.get(report.member)
        if known is not None and report.serial <= known.serial:
            return False
        self._reports[report.member] = report
        self._heard[report.member] = now
        if self.silent and not self._senders_go_by_hierarchy():
            self._due_at = min(self._due_at, now + self._turn_ns())
        if live is not None and self._me in live.counts:
            self._confirmed.add(report.member)
        if live is not None and live.counted:
            self._pins.pop(report.member, None)
        elif self._live and report.member not in self._senders and self._sends:
            self._due_at = min(self._due_at, now + self._busy_ns)  # it waits to be told that it is counted
        # Most reports move neither minimum, and in a large group looking at everybody each time would be all it does.
        if known is None or self._told_by(known) <= self._least_of_others:
            self._least_of_others = self._least()
        if self._sends:
            before, after = self._window_of(known), self._window_of(report)
            if after <= self.window:
                self.window = after
            elif before <= self.window:
                self.window = self._window()
        return True

    def _overheard(self, member: MemberId, live: LiveReport, now: int, *, current: bool) -> None:
        """What is worth knowing of anybody: that it is there, its name, and which changes took effect."""
        self.relayed.any |= live.indirect
        if current:
            self._applied_anywhere = max(self._applied_anywhere, live.applied)
        if member not in self._senders and (member in self._audience or len(self._audience) < self.MAX_AUDIENCE):
            self._audience[member] = now
        if live.name and (member in self._audience or member in self._senders):
            self.names[member] = live.name

    def data_arrived(self, frames: int, now: int) -> None:
        """Frames came in: report soon, or at once when much of the room is used."""
        if self.silent:
            return
        self._frames += frames
        self._due_at = min(self._due_at, now if self._frames >= self._prompt_frames else now + self._busy_ns)

    def progressed(self, now: int) -> None:
        """Something worth telling changed."""
        if self.silent:
            return
        self._due_at = min(self._due_at, now + self._busy_ns)

    def room_changed(self, room_frames: int, now: int) -> None:
        """Room came back to a member that had told of little: its senders wait for this."""
        if room_frames > 2 * self._told_room:
            self._due_at = min(self._due_at, now)

    def next_deadline(self) -> int:
        """When a report is due, or a pin ends and there may be something to tell."""
        due = min(self._due_at, self._unsure_until) if self._is_unsure else self._due_at
        return min(due, *(until for _, until in self._pins.values())) if self._pins else due

    def make(
        self, acknowledged: int, contiguous: dict[MemberId, int], room_frames: int, now: int, stable: int = 0
    ) -> Report:
        """This member's report as of now; the next one is due after the idle period."""
        self._serial += 1
        # A busy member's reports are many: its name and place are in one of them per idle period.
        named = self._frames == 0 or now - self._named_at >= self._idle_ns
        self._named_at = now if named else self._named_at
        self._frames = 0
        self._told_room = room_frames
        unsure = self._live and (self._relaying or not (self.counted and self.all_ready(self._ready)))
        self._due_at = now + (self._idle_ns // self.UNSURE_PARTS if unsure else self._idle_ns)
        return Report(
            member=self._me,
            view_tag=self._view_tag,
            serial=self._serial,
            acknowledged=Timestamp(acknowledged),
            contiguous=tuple(contiguous.items()),
            room_frames=room_frames,
            live=self._live_part(stable, named=named),
        )

    def _live_part(self, stable: int, *, named: bool) -> LiveReport | None:
        if not self._live:
            return None
        return LiveReport(
            counted=self.counted,
            counts=self._counts(),
            ready=self._ready,
            applied=self._applied,
            stable=Timestamp(stable),
            name=self.name if named else "",
            relayed=self._relaying > 0,
            indirect=self.relayed.any and not self.relayed.lost,
            place=self.place if named else None,
        )
