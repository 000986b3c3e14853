"""A simulated process: one endpoint, its clock, its socket and its application."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from intergroup_core.effects import Deliver, Effect, Install, Multicast, Order, SendRoom, Stable, Suspect
from intergroup_core.endpoint import Endpoint
from intergroup_core.errors import Backpressure
from intergroup_core.ids import MemberId, Service
from intergroup_core.sim.clock import MemberClock
from intergroup_core.sim.inbox import Inbox
from intergroup_core.sim.network import Network, Packet
from intergroup_core.sim.scheduler import Scheduler, SimulationStuck
from intergroup_core.sim.slow_log import SlowLog
from intergroup_core.sim.trace import (
    Crashed,
    Delivered,
    Installed,
    Ordered,
    StableDropped,
    Suspected,
    Trace,
    digest_of,
    payload_of,
)
from intergroup_core.sim.wiretap import WireTap
from intergroup_core.sim.workload import Application

SLACK_NS = 100_000
"""The most that a timer fires late."""
READ_EVERY = 16
"""One message in so many is read record by record."""
MAX_IDLE_TICKS = 1_000
"""Ticks in a row after which the endpoint still has a deadline in the past and did nothing."""


TOLD_LATER_NS = 10_000_000
"""After which one that stood still is told again of what its log holds."""


class SimMember:
    """Feeds stimuli to an endpoint, carries out its effects, and writes down what happened."""

    def __init__(
        self,
        *,
        id: MemberId,  # noqa: A002
        name: str,
        service: Service,
        sender: bool,
        endpoint: Endpoint,
        clock: MemberClock,
        scheduler: Scheduler,
        network: Network,
        trace: Trace,
        tap: WireTap,
        rng: Random,
        socket_bytes: int,
        app_queue_bytes: int,
        wake_ns: int,
        index: int | None = None,
        log: SlowLog | None = None,
    ) -> None:
        self.id = id
        self.name = name
        self.service = service
        self.sender = sender
        self.endpoint = endpoint
        self.clock = clock
        self.inbox = Inbox(socket_bytes)
        self.application: Application | None = None
        self.alive = True
        self.connected = True
        """False for one that the group has lost for good, such as by its clock."""
        self.buffered_most = 0
        self.delivered_count = 0
        self._scheduler = scheduler
        self._network = network
        self._trace = trace
        self._tap = tap
        self._random = rng.random
        self._paused = False
        self._draining = False
        self._deadline: int | None = None
        """The endpoint's, in virtual time, as of the last stimulus."""
        self._armed_at: int | None = None
        self._idle_ticks = 0
        self._hastened = False
        """Whether something went while the endpoint was still at work on the present tick."""
        self._app_limit = app_queue_bytes
        self._wake_ns = wake_ns
        self._app_waiting = 0
        self._reading = True
        self._refused: list[Multicast] | None = None
        self._log = log
        self.watch: Callable[[Sequence[Effect]], None] | None = None
        """Sees effects before they are carried out."""
        self.index = network.attach(self, index)

    def start(self) -> None:
        self.endpoint.hasten(self._perform_early)
        self._perform(self.endpoint.start(self.clock.now()))
        self._rearm()

    def send(self, records: Sequence[bytes]) -> bool:
        """Hand records to the endpoint; False where they must wait for room."""
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
        self._perform(effects)
        self._rearm()
        return True

    def arrive(self, packet: Packet) -> None:
        if self.alive and self.inbox.put(packet) and not self._paused and not self._draining:
            self._draining = True
            self._scheduler.after(int(self._random() * self._wake_ns), self._drain)

    def _drain(self) -> None:
        self._draining = False
        if not self.alive or self._paused or not self.inbox:
            return
        self._perform(self.endpoint.receive(self.inbox.take(), self.clock.now()))
        if self.inbox:
            self._draining = True
            self._scheduler.after(0, self._drain)
        self._rearm()

    def _rearm(self, *, idle: bool = False) -> None:
        deadline = self.endpoint.next_deadline()
        self._deadline = None if deadline is None else self.clock.virtual(deadline)
        if self._deadline is not None and self.alive:
            self._arm(self._deadline, idle=idle)

    def _arm(self, when: int, *, idle: bool = False) -> None:
        now = self._scheduler.now
        if when <= now:
            when = now
            self._watch_progress(idle)
        if self._armed_at is None or when < self._armed_at:
            self._armed_at = when
            self._scheduler.at(when + int(self._random() * SLACK_NS), self._tick, when)

    def _tick(self, armed_at: int) -> None:
        if self._armed_at == armed_at:
            self._armed_at = None
        if not self.alive or self._paused or self._deadline is None:
            return
        if self._deadline <= self._scheduler.now:
            self._hastened = False
            effects = self.endpoint.tick(self.clock.now())
            self._perform(effects)
            self._rearm(idle=not effects and not self._hastened)
        else:
            self._arm(self._deadline)

    def _watch_progress(self, idle: bool) -> None:
        self._idle_ticks = self._idle_ticks + 1 if idle else 0
        if self._idle_ticks > MAX_IDLE_TICKS:
            raise SimulationStuck(f"{self.name} has a deadline in the past and {MAX_IDLE_TICKS} ticks changed nothing")

    def _perform_early(self, effects: Sequence[Effect]) -> None:
        """What goes while the endpoint is still at work, whose state is not looked at meanwhile."""
        self._hastened = True
        if self.watch is not None:
            self.watch(effects)
        for effect in effects:
            if isinstance(effect, Multicast):
                self._multicast(effect)
            else:
                self._tell_application()

    def _tell_application(self) -> None:
        if self.application is not None:
            self._scheduler.after(0, self.application.room)

    def _perform(self, effects: Sequence[Effect] | None) -> None:
        now = self._scheduler.now
        if self.watch is not None and effects:
            self.watch(effects)
        for effect in effects or ():
            kind = type(effect)
            if kind is Multicast:
                self._multicast(effect)  # type: ignore[arg-type]
            elif kind is Deliver or kind is Order:
                self._deliver(effect)  # type: ignore[arg-type]
            elif kind is Stable:
                self._trace.events.append(StableDropped(now, self.id, effect.upto))  # type: ignore[union-attr]
            elif isinstance(effect, Install):
                self._installed(effect)
            elif isinstance(effect, Suspect):
                self._trace.events.append(Suspected(now, self.id, effect.member, effect.reason))
            elif isinstance(effect, SendRoom):
                self._tell_application()
            else:
                self._carry_out(effect)
        buffered = self.endpoint.buffered_bytes
        if buffered > self.buffered_most:
            self.buffered_most = buffered

    def _installed(self, effect: Install) -> None:
        view = effect.view
        self._trace.events.append(
            Installed(
                self._scheduler.now,
                self.id,
                str(view.id),
                view.id.start,
                view.members,
                effect.transitional,
                effect.joined,
                tuple((gone.member, gone.reason) for gone in effect.departed),
                effect.branches,
            )
        )

    def _carry_out(self, effect: Effect) -> None:
        """Effects that only changing membership has."""

    def _multicast(self, given: Multicast) -> None:
        if len(given.data) <= given.burst or not given.burst:
            self._emit(given)
            return
        for start in range(0, len(given.data), given.burst):
            self._emit(Multicast(given.data[start : start + given.burst], given.segment))

    def _emit(self, burst: Multicast) -> None:
        self._tap.emitted(self._scheduler.now, self.id, burst.data, burst.segment)
        if self._refused is None:
            self._network.multicast(self.index, burst.data, burst.segment)
            return
        # The caller may reuse the burst's memory once it is handed over.
        self._refused.append(Multicast(bytes(burst.data), burst.segment))
        if len(self._refused) == 1:
            self.endpoint.congested(self.clock.now())

    def _deliver(self, effect: Deliver | Order) -> None:
        now, events, me = self._scheduler.now, self._trace.events, self.id
        kind = Delivered if type(effect) is Deliver else Ordered
        chunk = effect.chunk
        for message in chunk.messages():
            # Taking records apart is slow and its own code: every so often is enough.
            read = message.batch() if message.seq % READ_EVERY == 0 and message.label() is None else None
            whole = message.payload.tobytes() if read is None else payload_of(read.to_list())
            events.append(kind(now, me, message.source, message.seq, message.timestamp, digest_of(whole)))
        if kind is Ordered:
            return
        if self._log is not None:
            self._log.append(chunk, self._appended)
        self.delivered_count += chunk.count
        if not self._reading:
            self._app_waiting += chunk.nbytes
            self._scheduler.after(0, self._tell_room)
        if self.application is not None and chunk.source != me:
            self.application.delivered()

    def _appended(self) -> None:
        """The log holds one delivery more; a process that stands still is told later."""
        if self._paused:
            self._scheduler.after(TOLD_LATER_NS, self._appended)
        elif self.alive:
            self._perform(self.endpoint.appended(1, self.clock.now()))
            self._rearm()

    def _tell_room(self) -> None:
        if self.alive and not self._paused:
            free = max(0, self._app_limit - self._app_waiting)
            self._perform(self.endpoint.room(free, self.clock.now()))
            self._rearm()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        if not self._paused:
            return
        self._paused = False
        self._armed_at = None
        if self.alive:
            self._scheduler.after(0, self._drain)
            self._rearm()
            if self.application is not None:
                self._scheduler.after(0, self.application.room)

    def stop_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self._app_waiting = 0
            self._tell_room()

    def refuse_sending(self) -> None:
        """The network takes nothing more from this member, which notices as soon as it sends."""
        if self.alive and self._refused is None:
            self._refused = []

    def accept_sending(self) -> None:
        if self._refused is None:
            return
        waiting, self._refused = self._refused, None
        if not self.alive or not waiting:
            return
        for burst in waiting:
            self._network.multicast(self.index, burst.data, burst.segment)
        self._perform(self.endpoint.writable(self.clock.now()))
        self._rearm()

    def crash(self) -> None:
        if self.alive:
            self.alive = False
            self._trace.events.append(Crashed(self._scheduler.now, self.id))
            if self.application is not None:
                self.application.stop()
