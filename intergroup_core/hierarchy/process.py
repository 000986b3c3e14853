"""The control process of a site (T2): its place in the hierarchy and what it says and hears there.

One machine with the states of T2.6.2, drawn in docs/protocol.md. It knows nothing of process groups but their
acknowledgments and cuts, which the site's members hand it and which come back as those of the whole system.
"""

from __future__ import annotations

from intergroup_core.effects import ControlEffect, LocalGroup, Lost, OneSite
from intergroup_core.hierarchy.deciding import Deciding
from intergroup_core.hierarchy.places import Timer
from intergroup_core.hierarchy.states import ControlState
from intergroup_core.ids import Instant
from intergroup_core.timers import Timers
from intergroup_core.wire.exchange import clock_at
from intergroup_core.wire.hierarchy import (
    CoordinatorControl,
    CoordinatorLeave,
    GlobalControl,
    HierarchyMessage,
    LocalControl,
    RingAnswer,
    RingQuery,
    SiteLeave,
)

_TAKING = (ControlState.COORDINATOR, ControlState.TO_COORDINATOR)


class ControlProcess(Deciding):
    """Stimuli in, effects out, like every engine."""

    FULL = 1.5
    """Children, as a factor of the target, up to which a coordinator takes those that come: several may have been told
    at once that there is room."""

    # Stimuli

    def start(self, now: Instant) -> list[ControlEffect]:
        """Look for a place: near, or as a coordinator (T2.6.1)."""
        self._now = now.mono
        self._begin_search(starting=True, wide=False, now=now.mono)
        self._timers.arm(Timer.CHECK, now.mono + self._check_ns)
        return self._settle(now.mono)

    def leave(self, now: Instant) -> list[ControlEffect]:
        """Go for good: nobody waits for this site from now on."""
        for attachment in self._attachments:
            self._farewell(attachment.coordinator, now.mono)
        if self._lead is not None:
            self._voice.say(CoordinatorLeave(site=self.me, clock=clock_at(now.mono)), LocalGroup(self.me))
            self._farewell(self.me, now.mono)
        for _ in range(self.FAREWELLS):
            # All at once, for there is no later.
            self._say_farewells(now.mono)
        self.state = ControlState.LEFT
        self._attach(None)
        self._lead = self._search = None
        self._timers = Timers()
        return self._settle(now.mono)

    def receive(self, message: HierarchyMessage, nbytes: int, hops: int | None, now: Instant) -> list[ControlEffect]:
        """A checked message; `hops` says how many routers it crossed, where that is known."""
        if message.site == self.me or self.state is ControlState.LEFT:
            return []
        at = now.mono
        self._notice_pause(at)
        match message:
            case LocalControl() if message.coordinator != self.me:
                self._receive_sibling(message, nbytes, hops, at)
                return []  # most messages are of this kind, and nothing is to be done about them
            case LocalControl():
                self._receive_local(message, nbytes, hops, at)
            case CoordinatorControl():
                self._receive_coordinator(message, nbytes, hops, at)
            case GlobalControl():
                self._receive_global(message, nbytes, hops, at)
            case RingQuery():
                self._receive_query(message, at)
            case RingAnswer():
                self._receive_answer(message, hops, at)
            case CoordinatorLeave():
                self._coordinator_leaves(message.site, message.clock, at)
            case SiteLeave():
                self._site_leaves(message, at)
        return self._settle(at)

    def tick(self, now: Instant) -> list[ControlEffect]:
        """Time has passed."""
        if self.state is ControlState.LEFT:
            return []
        at = now.mono
        self._notice_pause(at)
        for timer in self._timers.pop_due(at):
            match timer:
                case Timer.LOCAL:
                    self._send_local(at)
                case Timer.GLOBAL:
                    self._send_global(at)
                case Timer.CHECK:
                    self._check(at)
                case Timer.CHANGE:
                    self._second_look(at)
                case Timer.SEARCH:
                    self._go_on_searching(at)
                case Timer.FAREWELL:
                    self._say_farewells(at)
        return self._settle(at)

    def next_deadline(self) -> int | None:
        return self._timers.next_deadline()

    def _settle(self, now: int) -> list[ControlEffect]:
        self._listen()
        if self._lead is not None and self._lead.news:
            self._lead.news = False
            self._hurry(now)
        effects = list(self._effects)
        self._effects.clear()
        return effects

    # Receiving

    def _receive_local(self, message: LocalControl, nbytes: int, hops: int | None, now: int) -> None:
        lead = self._lead
        if lead is None:
            # It does not know that this site is no coordinator any more.
            self._voice.say(CoordinatorLeave(site=self.me, clock=clock_at(now)), OneSite(message.site))
            return
        full = len(lead.children) >= self.FULL * self._config.local_target
        lead.receive_child(message, hops, now, accepting=self.state is not ControlState.TO_CHILD and not full)
        if message.site in lead.children:
            self._local.heard(nbytes)
        elif full:
            self._voice.say(CoordinatorLeave(site=self.me, clock=clock_at(now)), OneSite(message.site))

    def _receive_sibling(self, message: LocalControl, nbytes: int, hops: int | None, now: int) -> None:
        for attachment in self._attachments:
            if attachment.coordinator == message.coordinator:
                attachment.receive_sibling(message, hops, now)
                self._local.heard(nbytes)

    def _receive_coordinator(self, message: CoordinatorControl, nbytes: int, hops: int | None, now: int) -> None:
        for attachment in self._attachments:
            if attachment.coordinator == message.site:
                before = attachment.system
                attachment.receive_coordinator(message, hops, now)
                self._local.heard(nbytes)
                if attachment.system is not before:
                    self._learn(attachment.system)
        if self._next is not None:
            self._finish_move(now)

    def _receive_global(self, message: GlobalControl, nbytes: int, hops: int | None, now: int) -> None:
        if self._lead is None:
            if self._search is not None:
                self._rumoured.add(message.site)
                self._heard_coordinators = max(self._heard_coordinators or 0, message.coordinators)
            return
        self._lead.receive_fellow(message, hops, now)
        self._global.heard(nbytes)
        if self.state is ControlState.TO_COORDINATOR:
            self._finish_promotion(now)

    def _receive_query(self, query: RingQuery, now: int) -> None:
        if self._search is not None:
            self._search.overheard(query)
        lead = self._lead
        if lead is None or query.leaving == self.me:
            return
        takes = self.state in _TAKING and len(lead.children) < self.OVERFULL * self._config.local_target
        if takes:
            lead.joined = True
        answer = RingAnswer(
            site=self.me,
            seeker=query.site,
            attempt=query.attempt,
            query_clock=query.clock,
            held=0,
            ttl=self._system_ttl,
            children=len(lead.children),
            coordinators=lead.coordinators,
            takes=takes,
        )
        self._voice.say(answer, OneSite(query.site))

    def _receive_answer(self, answer: RingAnswer, hops: int | None, now: int) -> None:
        if self._search is None or answer.seeker != self.me:
            return
        self._rumoured.add(answer.site)
        self._heard_coordinators = max(self._heard_coordinators or 0, answer.coordinators)
        self._search.answered(answer, hops, now)

    # Sending

    def _send_local(self, now: int) -> None:
        nbytes, members = 0, 1
        for attachment in self._attachments:
            nbytes += self._voice.local(attachment, self._own, self._cuts, now)
            members = max(members, attachment.children + 1)
        if self._lead is not None and len(self._lead.children):
            nbytes += self._voice.coordinator(self._lead, self._cuts, now)
            members = max(members, len(self._lead.children) + 1)
        self._local_sent_at = now
        self._timers.arm(Timer.LOCAL, now + self._local.after(nbytes, members))

    def _send_global(self, now: int) -> None:
        if self._lead is None:
            return
        nbytes = self._voice.global_(self._lead, self._cuts, now)
        self._global_sent_at = now
        self._timers.arm(Timer.GLOBAL, now + self._global.after(nbytes, self._lead.coordinators))

    def _site_leaves(self, message: SiteLeave, now: int) -> None:
        if message.coordinator == message.site:
            if self._lead is not None:
                until = now + self._fault_ns(self._global) + self._grace_ns
                self._lead.fellow_left(message.site, message.clock, now, keep_until=until if message.orphans else None)
            self._coordinator_leaves(message.site, message.clock, now)
        elif self._lead is not None and message.coordinator == self.me:
            self._lead.child_left(message.site, message.clock, now)
            self._finish_move(now)

    # Faults and self-determination

    @property
    def _check_ns(self) -> int:
        return self._interval_ns // 2

    def _notice_pause(self, now: int) -> None:
        """A process that stood still has missed what happened, and blames nobody for it."""
        stood, slept = now - self._now, self._slept(now)
        self._now = now
        if not slept:
            return
        for attachment in self._attachments:
            attachment.excuse(stood)
        if self._lead is not None:
            self._lead.stood_still(stood, now)

    def _check(self, now: int) -> None:
        self._timers.arm(Timer.CHECK, now + self._check_ns)
        self._check_lead(now)
        self._check_attachments(now)
        if self.state is ControlState.TO_COORDINATOR:
            self._finish_promotion(now)
        self._finish_move(now)
        self._determine(now)

    def _check_lead(self, now: int) -> None:
        lead = self._lead
        if lead is None:
            return
        lost = lead.forget_silent(self._fault_ns(self._local), self._fault_ns(self._global), self._grace_ns, now)
        if lost:
            self._effects.append(Lost(tuple(lost)))
        if self.state is ControlState.TO_CHILD and self._next is not None:
            # Figure 2.4: said until all children have gone.
            self._voice.say(CoordinatorLeave(site=self.me, clock=clock_at(now)), LocalGroup(self.me))

    def _check_attachments(self, now: int) -> None:
        limit = self._fault_ns(self._local)
        if self._next is not None and self._next.forget_silent(limit, now):
            self._give_up_move(now)
        attached = self._attached
        if attached is None or not attached.forget_silent(limit, now):
            return
        self._effects.append(Lost((attached.coordinator,)))
        if self._next is not None:
            self._attach(self._next)
            return
        self._lost_coordinator(attached, now)
