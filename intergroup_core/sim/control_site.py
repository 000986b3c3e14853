"""One simulated site of a hierarchy: its control process, a clock of its own, a member that only acknowledges."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from intergroup_core.effects import Control, ControlEffect, Listen, Lost
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.ids import Instant, SiteId, Timestamp, timestamp_at
from intergroup_core.wire.exchange import CLOCK_BITS
from intergroup_core.wire.hierarchy import GroupKey, HierarchyMessage, LocalControl

if TYPE_CHECKING:
    from intergroup_core.sim.sites import SimSites

SECOND = 1_000_000_000
KEY = GroupKey(0x1D, 1)
"""The process group whose stability these simulations look at."""
SYSTEM_TTL = 64
WALL_START = 1_800_000_000 * SECOND
_WRAP_NS = 1_000 << CLOCK_BITS


class SimSite:
    """The production class, unchanged, and what is simulated around it."""

    def __init__(self, sites: SimSites, index: int, rng: Random, lag_ns: int) -> None:
        self._sites = sites
        self.index = index
        self.id = SiteId(rng.getrandbits(64) or 1)
        self.lag_ns = lag_ns
        self.process = ControlProcess(
            me=self.id,
            name=f"site-{index}",
            config=sites.config,
            system_ttl=SYSTEM_TTL,
            rng=Random(rng.getrandbits(64)),
        )
        # Its clock in control messages wraps within the first minutes.
        self._offset = _WRAP_NS - rng.randrange(200 * SECOND)
        self._woken_at: int | None = None
        self.started_at = sites.scheduler.now
        self.alive = True
        self.paused = False
        self.component = 0
        """Sites of different components do not hear each other."""
        self.listening = Listen(frozenset(), False)
        self.held_at: int | None = None
        """Where its member stands still, as a sponsor's does for a newcomer (D7)."""
        self._begin = 0
        """What its member needs begins here."""
        self.member = True
        """Whether it has a member in the group."""
        self.stable = 0
        self.gaps = 0
        self.passed_by = 0
        """What others took for stable, beyond what its member had, while it stood still."""
        self.received: list[tuple[HierarchyMessage, int, int]] = []

    def now(self) -> Instant:
        at = self._sites.scheduler.now
        return Instant(at + self._offset, WALL_START + at)

    @property
    def acknowledged(self) -> int:
        """What the member has: everything but the last moments."""
        present = int(timestamp_at(WALL_START + self._sites.scheduler.now - self.lag_ns))
        return max(self._begin, present if self.held_at is None else min(present, self.held_at))

    @property
    def counted(self) -> bool:
        return self.alive and not self.paused and self.member and self.process.counted(KEY, self.now().mono)

    def start(self) -> None:
        self._tell()
        self._carry_out(self.process.start(self.now()))

    def arrive(self, message: HierarchyMessage, nbytes: int, hops: int) -> None:
        if self.paused:
            self.received.append((message, nbytes, hops))
        elif self.alive:
            effects = self.process.receive(message, nbytes, hops, self.now())
            # A sibling's message moves no deadline and teaches nothing of stability: most messages are of that kind.
            if effects or not isinstance(message, LocalControl) or message.coordinator == self.id:
                self._carry_out(effects)

    def wake(self, at: int) -> None:
        if self.alive and not self.paused and at == self._woken_at:
            self._woken_at = None
            self._tell()
            self._carry_out(self.process.tick(self.now()))

    def pause(self) -> None:
        """It stands still, and its member with it."""
        self.paused = True
        self._sites.hold(self)

    def resume(self) -> None:
        """Everything that waited in the socket comes at once, before or after the timers are looked at."""
        if not self.paused:
            return
        self.paused = False
        self._sites.woken(self)
        waiting, self.received = self.received, []
        first = self._sites.rng.random() < 0.5
        self._woken_at = self._sites.scheduler.now
        if first:
            self.wake(self._woken_at)
        for message, nbytes, hops in waiting[-self._sites.SOCKET_MESSAGES :]:
            self.arrive(message, nbytes, hops)
        if not first:
            self._woken_at = self._sites.scheduler.now
            self.wake(self._woken_at)

    def crash(self) -> None:
        self.alive = False
        self._sites.hears(self, Listen(frozenset(), False))

    def leave(self) -> None:
        self._carry_out(self.process.leave(self.now()))
        self.crash()

    def withdraw(self) -> None:
        """Its member goes; the site stays."""
        self.member = False
        self.held_at = None
        self.process.withdraw(KEY)

    def enter(self, at: int) -> None:
        """A new member, which needs everything from a point on."""
        self.member = True
        self.held_at = self._begin = at
        self._tell()

    def miss(self) -> None:
        """What its member needs is gone: it starts anew, and says so (property 16)."""
        self.gaps += 1
        self.lag_ns = 0
        self.held_at = None
        self.passed_by = 0

    def _tell(self) -> None:
        now, pressing = self.now(), self._sites.pressing
        upto = Timestamp(self.acknowledged)
        if self.member:
            self.process.acknowledge(KEY, upto, pressing=pressing, now=now)
        for other in range(1, self._sites.groups):
            self.process.acknowledge(GroupKey(KEY.group + other, 1), upto, pressing=pressing, now=now)

    def _carry_out(self, effects: list[ControlEffect]) -> None:
        for effect in effects:
            match effect:
                case Control():
                    self._sites.carry(self, effect)
                case Listen():
                    self._sites.hears(self, effect)
                case Lost():
                    self._sites.lost += len(effect.sites)
        deadline = self.process.next_deadline()
        if deadline is not None:
            at = max(deadline - self._offset, self._sites.scheduler.now)
            if self._woken_at is None or at < self._woken_at:
                self._woken_at = at
                self._sites.scheduler.at(at, self.wake, at)
        told = self.process.stable(KEY)
        if told is not None and told.upto > self.stable:
            self._sites.learned(self, int(told.upto))
