"""Flat reports: every member tells all what it has and takes; from that, stability and the send window.

Stability is the least acknowledged timestamp of the counted members (T3.5); the window of a sender ends where the
slowest of them has no more room (D10). Senders are counted because they are in the view. A receiver is counted by
whoever hears its report; senders name in their own reports whom they count and who does not know it yet, so that a
newcomer learns when all of them do (D7). In a large group the hierarchy speaks for receivers, which then do not report.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from intergroup_core.config import ReportConfig
from intergroup_core.hierarchy.relayed import Relayed, Waits
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.ports import Told
from intergroup_core.wire.messages import LiveReport, Place, Report

MILLISECOND = 1_000_000
NO_WINDOW = 1 << 62
"""A seq nobody reaches: a sender alone waits for no one."""


class FlatReports:
    """The latest report of every counted member, and when this member owes one itself."""

    INITIAL_FRAMES = 64
    """Room assumed of a member that has not reported yet."""
    MAX_COUNTED = 20_000
    """Members counted at most; further ones know themselves uncounted."""
    COUNTING_TIMES = 2
    """Idle times of reports for which a new sender goes by what the others take as stable."""
    MAX_PINS = 256
    """Newcomers waited for at a time."""
    MAX_LEASED = 4_096
    """Newcomers remembered that had their lease."""
    MAX_AUDIENCE = 4_096
    """Receivers remembered by name at most."""
    MAX_COUNTS = 64
    """Newly counted members named in one report; the others wait for the next."""
    RELAY_REPORTS = 3
    """Reports, half an idle time apart, in which a receiver says that the hierarchy speaks for it; one may be lost."""
    UNHEEDED_REPORTS = 8
    """Further ones, as far apart, after which a sender that does not go by the hierarchy is taken to be unable to."""
    TURNS = 1_024
    """Parts of half an idle time over which silent receivers spread what one of them has to say."""
    UNSURE_PARTS = 8
    """While a member waits to be counted, or for others to be ready, it reports so many times as often."""

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

    # Members that come and go

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

    def _changed(self) -> None:
        self._least_of_others = self._least()
        self.window = self._window()

    # Members that the hierarchy speaks for

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

    # Reports

    def room_frames(self, room_bytes: int) -> int:
        """A source's share of the room, in frames: a small frame takes a socket buffer as much as a full one."""
        return room_bytes // self._frame_bytes // self._sources

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

    def stable(self, acknowledged: int) -> int:
        """What every counted member has, given what this one acknowledges."""
        if self._others or self._is_unsure or self.relayed:
            acknowledged = min(acknowledged, self._least_of_others)
        return acknowledged if self.goes_by_senders() else min(acknowledged, self.relayed.bound())

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
        if self._is_unsure or self.goes_by_senders():
            return report.live.stable if report.live is not None else 0
        return report.acknowledged

    def dropped_by_senders(self) -> int:
        """What some sender takes as stable, and has perhaps dropped."""
        return max((self._stable_told_by(member) for member in self._senders if member != self._me), default=0)

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
