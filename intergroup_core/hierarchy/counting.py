"""Who is waited for: senders, receivers that were heard, and newcomers for as long as their lease goes (D7)."""

from __future__ import annotations

from collections.abc import Collection

from intergroup_core.hierarchy.minima import Minima
from intergroup_core.ids import MemberId, Timestamp


class Counting(Minima):
    """Members that come and go."""

    MAX_COUNTED = 20_000
    """Members counted at most; further ones know themselves uncounted."""
    COUNTING_TIMES = 2
    """Idle times of reports for which a new sender goes by what the others take as stable."""
    MAX_PINS = 256
    """Newcomers waited for at a time."""
    MAX_LEASED = 4_096
    """Newcomers remembered that had their lease."""
    MAX_COUNTS = 64
    """Newly counted members named in one report; the others wait for the next."""

    def enter(self, view_tag: int, senders: Collection[MemberId], activation: int | None, now: int) -> None:
        """A view: its senders are counted, and receivers that were; `activation` is this member's own, if it sends."""
        if self._live and activation is not None and not self._sends:
            # It has not counted anybody while it only received: others know better for a while.
            self._unsure_until = now + self.COUNTING_TIMES * self._idle_ns
            self._frozen = self._least_of_others
        self._live = True
        if view_tag != self._view_tag:
            self._confirmed.clear()
            self.relayed.enter(now)
        self._view_tag = view_tag
        if senders or self.goes_by_senders():
            self._last_senders = frozenset() if senders else self._senders
        before, self._senders = self._senders, frozenset(senders)
        gone = before - self._senders
        self._met = {member: at for member, at in self._met.items() if member in self._senders}
        if gone and not senders:
            # Nobody is left to go by: what the hierarchy said until now may leave out whom only senders counted.
            self.relayed.enter(now)
        self._sources = max(1, len(senders))
        self._sends = activation is not None
        if activation is not None:
            self._activation = activation
        for member in senders:
            if member != self._me and member not in self._others:
                self._others[member] = None
                self._reports.pop(member, None)
            if before and member not in before:
                self._met[member] = now  # it has a while to find its place
        if self.goes_by_senders():
            for member in self._counted_receivers():
                del self._others[member]
                self._reports.pop(member, None)
        for member in gone & self._others.keys():
            # A sender that left is a receiver as long as it is heard; one that failed is soon forgotten.
            self._heard.setdefault(member, now)
            self._audience.setdefault(member, now)
        self._changed()
        self._due_at = min(self._due_at, now)

    def count(self, member: MemberId, now: int) -> None:
        """Wait for a member's acknowledgments from now on."""
        if member == self._me or member in self._others or len(self._others) >= self.MAX_COUNTED:
            return
        if member in self.relayed:
            return
        if self.goes_by_senders() and member not in self._senders:
            return
        self._others[member] = None
        self._heard[member] = now
        self._due_at = min(self._due_at, now)
        self._changed()

    def uncount(self, member: MemberId) -> None:
        """Do not wait for a member any more."""
        if member in self._others:
            del self._others[member]
            self._reports.pop(member, None)
            self._changed()
        if self.relayed.forget(member):
            self._changed()
        self._heard.pop(member, None)
        self._pins.pop(member, None)
        self._leave_audience(member)

    def _leave_audience(self, member: MemberId) -> None:
        self._audience.pop(member, None)
        self.names.pop(member, None)

    def forget_silent(self, limit_ns: int, now: int) -> list[MemberId]:
        """Receivers not heard for too long are not waited for; they know themselves uncounted by what they miss."""
        silent = [
            member
            for member in self._others
            if member not in self._senders and now - self._heard.setdefault(member, now) > limit_ns
        ]
        for member in silent:
            self.uncount(member)
        for member in [member for member, at in self._audience.items() if now - at > limit_ns]:
            self._leave_audience(member)
        return silent

    def pin(self, member: MemberId, acknowledged: int, until: int) -> None:
        """Acknowledge no further for a newcomer's sake, until it knows itself counted or the time is over (D7).

        One lease each: a newcomer that is heard and does not hear must not hold everybody back for ever.
        """
        if member == self._me or (member not in self._leased and len(self._pins) < self.MAX_PINS):
            self._pins[member] = (acknowledged, until)
        elif member in self._pins and self._pins[member][0] < acknowledged:
            self._pins[member] = (acknowledged, self._pins[member][1])
        if member != self._me and member not in self._leased:
            self._leased[member] = None
            if len(self._leased) > self.MAX_LEASED:
                self._leased.pop(next(iter(self._leased)))

    def pinned(self, acknowledged: int, now: int) -> int:
        """What this member may acknowledge, given who still starts from an earlier point."""
        if self._unsure_until and self._is_unsure is not (now < self._unsure_until):
            self._is_unsure = now < self._unsure_until
            self._changed()
        if self._pins:
            self._pins = {member: pin for member, pin in self._pins.items() if now < pin[1]}
            acknowledged = min(acknowledged, *(pin[0] for pin in self._pins.values())) if self._pins else acknowledged
        return acknowledged

    @property
    def receivers(self) -> list[MemberId]:
        """Members that were heard a short while ago and do not send."""
        return [member for member in self._audience if member not in self._senders]

    def _counted_receivers(self) -> list[MemberId]:
        return [member for member in self._others if member not in self._senders]

    @property
    def counted(self) -> bool:
        """Whether every sender of the view counts this member."""
        return self._me in self._senders or self._senders <= self._confirmed

    def _counts(self) -> tuple[MemberId, ...]:
        """Whom this member counts and who does not know that yet."""
        if not self._live:
            return ()
        unsure = [member for member in self._counted_receivers() if not self._knows_itself_counted(member)]
        return tuple(unsure[: self.MAX_COUNTS])

    def _knows_itself_counted(self, member: MemberId) -> bool:
        known = self._reports.get(member)
        return known is None or known.live is None or known.live.counted

    def ready(self, change: int, now: int) -> None:
        """Everything up to an ordered membership message is here: the others wait to hear that (M13)."""
        if change > self._ready:
            self._ready = Timestamp(change)
            self._due_at = min(self._due_at, now)

    def all_ready(self, change: int) -> bool:
        """Whether every sender of the view has said so."""
        if self._applied_anywhere >= change:
            return True  # one of them may be gone by now
        return all(self._ready_of(member) >= change for member in self._senders if member != self._me)

    def applied(self, change: int) -> None:
        """An ordered membership message took effect here."""
        self._applied = Timestamp(change)

    def _ready_of(self, member: MemberId) -> int:
        known = self._reports.get(member)
        return known.live.ready if known is not None and known.live is not None else 0
