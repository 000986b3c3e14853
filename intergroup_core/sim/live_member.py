"""A simulated process whose group membership is live: it joins, leaves, takes gaps, crashes and comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from intergroup_core.effects import Counted, Effect, Gap, Install, Left, Persist
from intergroup_core.errors import Backpressure, LocalProtocolError, NoQuorum
from intergroup_core.ids import MemberId, Service
from intergroup_core.sim.control import SimControl
from intergroup_core.sim.member import SimMember
from intergroup_core.sim.trace import Allowed, CountedChanged, Crashed, Disturbed, GapAnnounced, TracedMember
from intergroup_core.sim.trace import Left as LeftTraced
from intergroup_core.wire.records import Payload
from intergroup_core.wire.statements import Statement

CALM = frozenset({"sender", "receiver", "to sender", "to receiver"})
"""States in which delivery goes on."""
RECEIVING = frozenset({"receiver", "to receiver", "receiver wait", "receiver recovery", "left"})
"""States of members that are not senders, and do not mean to be."""

Hook = tuple[str, Callable[[], None], bool]
"""A state, what to do once it is entered, and whether that comes before what the member then does."""


class LiveMember(SimMember):
    """Keeps the member's current id and its record, and lets tests act the moment it enters a state."""

    def __init__(
        self,
        *,
        wants_to_send: bool,
        named: Callable[[MemberId, LiveMember], None],
        persist: Callable[[bytes], None],
        control: SimControl | None = None,
        site: str,
        quorum: bool,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self._site = site
        self._quorum = quorum
        self._allowed: tuple[str, int] | None = None
        self.wants_to_send = wants_to_send
        self.hooks: list[Hook] = []
        self.refused = 0
        """Sendings that the quorum option forbade."""
        self.pauses: list[int] = []
        """How long delivery stood still before each view that a repair brought, in nanoseconds."""
        self.gaps: list[str] = []
        self.views = 0
        """Installed by this incarnation."""
        self.leaving = False
        self.left = False
        self._named = named
        self._persist = persist
        self.control = control
        self._state = self.endpoint.state
        self._halted_at: int | None = None
        self._kept: list[Effect] = []
        """What the endpoint hastened since it entered another state."""

    @property
    def state(self) -> str:
        return self.endpoint.state

    @property
    def is_paused(self) -> bool:
        return self._paused

    @property
    def means_to_send(self) -> bool:
        """Whether this member should be in the sender group once all is quiet."""
        if self.state == "bootstrap":
            return self.wants_to_send or self.endpoint.unsent_bytes > 0
        return self.state not in RECEIVING

    def start(self) -> None:
        self._trace.members.append(self._traced())
        if self.control is not None:
            self.control.start()
        super().start()

    def _traced(self) -> TracedMember:
        return TracedMember(
            id=self.id, name=self.name, service=self.service, sender=False, counted=False, site=self._site
        )

    def send(self, records: Sequence[bytes]) -> bool:
        if not self.alive:
            return True
        if self._paused:
            return False
        self._tap.taken(self.id, records)
        try:
            effects = self.endpoint.send(records, self.clock.now())
        except Backpressure:
            self._tap.untaken(self.id, len(records))
            return False
        except (NoQuorum, LocalProtocolError):
            self._tap.untaken(self.id, len(records))
            self.refused += 1
            return True
        self._perform(effects)
        self._rearm()
        return True

    def declare(self, statement: Statement) -> bool:
        """Make a statement; False where that is not possible now."""
        return self._offer(lambda: self.endpoint.declare(statement, self.clock.now()))

    def stage(self, payload: Payload, records: int) -> bool:
        """Send a message that is made already; False where that is not possible now."""
        return self._offer(lambda: self.endpoint.send_messages([(payload, records)], self.clock.now()))

    def _offer(self, offer: Callable[[], list[Effect]]) -> bool:
        if not self.alive or self._paused:
            return False
        try:
            effects = offer()
        except (Backpressure, NoQuorum, LocalProtocolError):
            return False
        self._perform(effects)
        self._rearm()
        return True

    def leave(self) -> None:
        if self.alive and not self._paused and self.state != "left":
            self.leaving = True
            if self.application is not None:
                self.application.stop()
            self._perform(self.endpoint.leave(self.clock.now()))
            self._rearm()

    def when(self, state: str, action: Callable[[], None], *, before: bool = False) -> None:
        """Act once the member enters a state: after what it then does, or before what it does from then on."""
        self.hooks.append((state, action, before))

    def _perform_early(self, effects: Sequence[Effect]) -> None:
        if not self.alive:
            return
        if self.endpoint.state != self._state:
            self._kept += effects  # what hangs on the new state comes first
        else:
            super()._perform_early(effects)

    def _perform(self, effects: Any) -> None:
        if self._kept:
            effects, self._kept = [*self._kept, *effects], []
        entered = self.endpoint.state
        if entered == self._state:
            if self.alive:
                super()._perform(effects)
                self._note_permission()
            return
        if self.views and self._state in CALM and entered not in CALM:
            self._halted_at = self._scheduler.now
        self._state = entered
        for hook in [hook for hook in self.hooks if hook[0] == entered and hook[2]]:
            self.hooks.remove(hook)
            hook[1]()
        if not self.alive:
            return
        super()._perform(effects)
        self._note_permission()
        if entered in CALM:
            self._halted_at = None
        for hook in [hook for hook in self.hooks if hook[0] == entered and not hook[2]]:
            self.hooks.remove(hook)
            self._scheduler.after(0, hook[1])

    def _note_permission(self) -> None:
        """Where a quorum is asked for, write down in which view this member may send."""
        if self._quorum and (allowed := self.endpoint.permission) != self._allowed:
            self._allowed = allowed
            self._trace.events.append(Allowed(self._scheduler.now, self.id, *(allowed or ("", 0))))

    def _installed(self, effect: Install) -> None:
        super()._installed(effect)
        self.views += 1
        if self._halted_at is not None:
            self.pauses.append(self._scheduler.now - self._halted_at)
            self._halted_at = None

    def _carry_out(self, effect: Effect) -> None:
        now, events = self._scheduler.now, self._trace.events
        match effect:
            case Gap():
                events.append(GapAnnounced(now, self.id, effect.incarnation, effect.reason, effect.unsure))
                self._tap.renamed(self.id, effect.incarnation)
                self.gaps.append(effect.reason)
                self._halted_at = None
                self.views = 0
                self.id = effect.incarnation
                self._named(self.id, self)
                self._trace.members.append(self._traced())
            case Left():
                events.append(LeftTraced(now, self.id, effect.reason))
                self.left = True
                if self.control is not None:
                    self.control.leave()
                self._stop()
            case Persist():
                self._persist(effect.record)
            case Counted():
                events.append(CountedChanged(now, self.id, effect.counted))

    def crash(self) -> None:
        if self.alive:
            self._trace.events.append(Crashed(self._scheduler.now, self.id))
            self._stop()

    def _rearm(self, *, idle: bool = False) -> None:
        super()._rearm(idle=idle)
        if self.control is not None:
            self.control.rearm()

    def _stop(self) -> None:
        self.alive = False
        if self.control is not None:
            self.control.crash()
        self._network.detach(self.index)
        if self.application is not None:
            self.application.stop()

    def disturbed(self) -> None:
        if self.alive and self.service is not Service.UU:
            self._trace.events.append(Disturbed(self._scheduler.now, self.id))

    def pause(self) -> None:
        if self.alive and not self._paused:
            self.disturbed()
            if self.control is not None:
                self.control.pause()
            super().pause()

    def resume(self) -> None:
        if self._paused:
            self.disturbed()
            if self.control is not None:
                self.control.resume()
            super().resume()

    def refuse_sending(self) -> None:
        self.disturbed()
        super().refuse_sending()

    def accept_sending(self) -> None:
        if self._refused is not None:
            self.disturbed()
            super().accept_sending()
