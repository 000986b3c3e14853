"""Falling silent: in a large group the hierarchy speaks for receivers, which then do not report (decision 0010)."""

from __future__ import annotations

from collections.abc import Callable

from intergroup_core.hierarchy.counting import Counting
from intergroup_core.hierarchy.relayed import Waits
from intergroup_core.ids import MemberId
from intergroup_core.ports import Told
from intergroup_core.wire.messages import Report


class Relaying(Counting):
    """When this member may be silent, and what becomes of those that are."""

    RELAY_REPORTS = 3
    """Reports, half an idle time apart, in which a receiver says that the hierarchy speaks for it; one may be lost."""
    UNHEEDED_REPORTS = 8
    """Further ones, as far apart, after which a sender that does not go by the hierarchy is taken to be unable to."""
    TURNS = 1_024
    """Parts of half an idle time over which silent receivers spread what one of them has to say."""

    def relay(self, may: bool, now: int) -> None:
        """Whether the hierarchy counts this receiver and should speak for it; said before it is done."""
        heeded = self._senders_go_by_hierarchy()
        if heeded:
            self._unheeded = 0
        if not may or self._me in self._senders or self._unheeded > self.UNHEEDED_REPORTS:
            if self._relaying:
                # Senders that heard it wait for reports no longer: whoever reports again has to be counted anew.
                self._confirmed.clear()
            self._relaying = 0
        elif 0 < self._relaying <= self.RELAY_REPORTS and now < self._relayed_at + self._idle_ns // 2:
            pass  # Last words all said at once may all be lost at once; then others would wait for long.
        elif self._relaying < self.RELAY_REPORTS or heeded:
            self._relaying += 1
            self._relayed_at = now
            if self.silent:
                self._confirmed.clear()
        else:
            self._relaying = self.RELAY_REPORTS
            self._relayed_at = now
            self._unheeded += 1

    @property
    def heeded(self) -> bool:
        """Whether every sender waits for this member, by its reports or by the hierarchy, whichever it has heard of."""
        return self.counted or self._senders_go_by_hierarchy()

    def _senders_go_by_hierarchy(self) -> bool:
        """Whether no sender says that it does not.

        One that came when all receivers were silent, or lost what they said last, would wait for none of them; one that
        hears nothing of the hierarchy waits for what it said last, and asks for reports.
        """
        reports = (self._reports.get(member) for member in self._senders)
        return all(report is None or report.live is None or report.live.indirect for report in reports)

    @property
    def relaying(self) -> bool:
        """Whether this member has begun to say that the hierarchy speaks for it."""
        return self._relaying > 0

    @property
    def silent(self) -> bool:
        """Whether this member has said often enough that it does not report any more, and senders have heard it."""
        return self._relaying > self.RELAY_REPORTS

    def hears_senders(self, limit_ns: int, now: int, shares: Callable[[MemberId], bool]) -> bool:
        """Whether every sender is heard and goes by the hierarchy this member is in, without a long break of late.

        Who is cut off from senders is in a hierarchy without them, and two that were apart take a while to meet.
        """
        senders = [member for member in self._senders if member != self._me]
        for member in senders:
            if member in self._heard and shares(member):
                self._met[member] = self._heard[member]
        if any(member not in self._met for member in senders):
            return False
        if any(now - self._met[member] > limit_ns for member in senders):
            self._apart_at = now
        return self._apart_at is None or now - self._apart_at > limit_ns

    def _turn_ns(self) -> int:
        """When a silent receiver speaks up: the first of them suffices, so not all at the same moment."""
        return self._me % self.TURNS * self._idle_ns // (2 * self.TURNS)

    def postpone(self, now: int) -> None:
        """Nothing is reported; look again after the idle period."""
        self._frames = 0
        self._due_at = now + self._idle_ns

    def told(self, told: Told | None, waits: Waits, now: int) -> None:
        """What the hierarchy says of everybody."""
        fewer = self.relayed.told(told, waits.margin)
        if self._sends and self.relayed.listen(waits, now):
            fewer = True
        if fewer:
            self._changed()

    def _falls_silent(self, report: Report, now: int) -> bool:
        if report.serial <= self._last_serial(report.member):
            return False
        if report.member not in self._senders and self.relayed.falls_silent(report, now):
            self._others.pop(report.member, None)
            self._reports.pop(report.member, None)
            self._pins.pop(report.member, None)
            self._changed()
        return True

    def _last_serial(self, member: MemberId) -> int:
        known = self._reports.get(member)
        return known.serial if known is not None else self.relayed.serial_of(member)
