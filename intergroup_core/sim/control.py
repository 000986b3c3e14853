"""Control processes of simulated members: every process is its own site, on the network of its group."""

from __future__ import annotations

from random import Random

from intergroup_core.config import HierarchyConfig
from intergroup_core.effects import Control, ControlEffect, CoordinatorGroup, Listen, LocalGroup, OneSite
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.ids import SiteId
from intergroup_core.sim.clock import MemberClock
from intergroup_core.sim.network import Network
from intergroup_core.sim.scheduler import Scheduler
from intergroup_core.wire.hierarchy import HierarchyMessage

SYSTEM_TTL = 8
MAX_WAITING = 500
"""Messages that wait in the socket of a process that is paused."""


class ControlNetwork:
    """Carries control messages over the links of a simulated network, to those who listen."""

    def __init__(self, scheduler: Scheduler, network: Network) -> None:
        self.scheduler = scheduler
        self._network = network
        self._ports: dict[int, SimControl] = {}
        self.messages = 0
        self.bytes = 0

    def attach(self, port: SimControl) -> None:
        self._ports[port.index] = port

    def carry(self, sender: SimControl, control: Control) -> None:
        self.messages += 1
        self.bytes += len(control.frame)
        for port in list(self._ports.values()):
            if port is sender or not port.hears(control):
                continue
            due = self._network.passage(sender.index, port.index)
            if due is not None:
                self.scheduler.at(due, port.arrive, control.message, len(control.frame))


class SimControl:
    """One control process, with the clock and the pauses of the member beside it."""

    def __init__(
        self, *, index: int, name: str, config: HierarchyConfig, clock: MemberClock, net: ControlNetwork, rng: Random
    ) -> None:
        self.index = index
        self.process = ControlProcess(
            me=SiteId(rng.getrandbits(64) | 1),
            name=name,
            config=config,
            system_ttl=SYSTEM_TTL,
            rng=Random(rng.getrandbits(64)),
        )
        self._clock = clock
        self._net = net
        self._listening = Listen(frozenset(), False)
        self._armed_at: int | None = None
        self._waiting: list[tuple[HierarchyMessage, int]] = []
        self._paused = False
        self._alive = True

    def start(self) -> None:
        self._net.attach(self)
        self._carry_out(self.process.start(self._clock.now()))

    def hears(self, control: Control) -> bool:
        match control.to:
            case CoordinatorGroup():
                return self._alive and self._listening.coordinators
            case LocalGroup(coordinator):
                return self._alive and coordinator in self._listening.local_groups
            case OneSite(site):
                return self._alive and site == self.process.me

    def arrive(self, message: HierarchyMessage, nbytes: int) -> None:
        if not self._alive:
            return
        if self._paused:
            self._waiting = [*self._waiting[-MAX_WAITING:], (message, nbytes)]
            return
        self._carry_out(self.process.receive(message, nbytes, 0, self._clock.now()))

    def rearm(self) -> None:
        """Something may be due earlier than it was."""
        deadline = self.process.next_deadline()
        if deadline is None or not self._alive or self._paused:
            return
        when = max(self._clock.virtual(deadline), self._net.scheduler.now)
        if self._armed_at is None or when < self._armed_at:
            self._armed_at = when
            self._net.scheduler.at(when, self._tick, when)

    def _tick(self, armed_at: int) -> None:
        if self._armed_at != armed_at:
            return
        self._armed_at = None
        if self._alive and not self._paused:
            self._carry_out(self.process.tick(self._clock.now()))

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        if not self._paused:
            return
        self._paused = False
        self._armed_at = None
        if not self._alive:
            return
        self._carry_out(self.process.tick(self._clock.now()))
        waiting, self._waiting = self._waiting, []
        for message, nbytes in waiting:
            self.arrive(message, nbytes)

    def leave(self) -> None:
        if self._alive:
            self._carry_out(self.process.leave(self._clock.now()))
            self._alive = False

    def crash(self) -> None:
        self._alive = False

    def _carry_out(self, effects: list[ControlEffect]) -> None:
        for effect in effects:
            if isinstance(effect, Control):
                self._net.carry(self, effect)
            elif isinstance(effect, Listen):
                self._listening = effect
        self.rearm()
