"""Thousands of sites in virtual time: control processes alone, each with a member that only acknowledges.

The production class is driven unchanged. Messages travel as objects next to their frames: to decode every copy again
would only cost time, and smaller simulations do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from intergroup_core.config import Config, HierarchyConfig
from intergroup_core.effects import Control, ControlEffect, CoordinatorGroup, Listen, LocalGroup, Lost, OneSite
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.hierarchy.states import ControlState
from intergroup_core.ids import Instant, SiteId, Timestamp, timestamp_at
from intergroup_core.sim.scheduler import Scheduler
from intergroup_core.sim.terrain import Terrain
from intergroup_core.wire.hierarchy import GroupKey, HierarchyMessage

SECOND = 1_000_000_000
KEY = GroupKey(0x1D, 1)
"""The one process group of these simulations."""
SYSTEM_TTL = 64
WALL_START = 1_800_000_000 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Violated:
    """A message could have been dropped that a live, counted member still needed (property 16)."""

    at: int
    site: int
    needs: int
    """The member that needed it."""
    stable: int
    acknowledged: int


@dataclass(slots=True)
class Traffic:
    """What went over the network since it was last looked at."""

    messages: int = 0
    bytes: int = 0
    arrivals: int = 0
    largest: int = 0


class SimSite:
    """One site: a control process, a clock of its own, and a member that lags behind the present."""

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
        self._offset = rng.randrange(1_000 * SECOND)
        self._woken_at: int | None = None
        self.alive = True
        self.paused = False
        self.listening = Listen(frozenset(), False)
        self.held_at: int | None = None
        """Where its member stands still, as a sponsor's does for a newcomer (D7)."""
        self.stable = 0
        self.gaps = 0
        self.received: list[tuple[HierarchyMessage, int, int]] = []

    def now(self) -> Instant:
        at = self._sites.scheduler.now
        return Instant(at + self._offset, WALL_START + at)

    @property
    def acknowledged(self) -> int:
        """What the member has: everything but the last moments."""
        present = int(timestamp_at(WALL_START + self._sites.scheduler.now - self.lag_ns))
        return present if self.held_at is None else min(present, self.held_at)

    @property
    def counted(self) -> bool:
        return self.alive and not self.paused and self.process.counted(KEY, self.now().mono)

    def start(self) -> None:
        self._tell()
        self._carry_out(self.process.start(self.now()))

    def arrive(self, message: HierarchyMessage, nbytes: int, hops: int) -> None:
        if not self.alive:
            return
        if self.paused:
            self.received.append((message, nbytes, hops))
            return
        self._carry_out(self.process.receive(message, nbytes, hops, self.now()))

    def wake(self, at: int) -> None:
        if self.alive and not self.paused and at == self._woken_at:
            self._woken_at = None
            self._tell()
            self._carry_out(self.process.tick(self.now()))

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        """Everything that waited in the socket comes at once."""
        self.paused = False
        waiting, self.received = self.received, []
        self._woken_at = self._sites.scheduler.now
        self.wake(self._woken_at)
        for message, nbytes, hops in waiting[-self._sites.SOCKET_MESSAGES :]:
            self.arrive(message, nbytes, hops)

    def crash(self) -> None:
        self.alive = False
        self._sites.hears(self, Listen(frozenset(), False))

    def leave(self) -> None:
        self._carry_out(self.process.leave(self.now()))
        self.crash()

    def _tell(self) -> None:
        upto = Timestamp(self.acknowledged)
        self.process.acknowledge(KEY, upto, pressing=self._sites.pressing, now=self.now())

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


@dataclass
class SimSites:
    """A hierarchy under test: sites that start, lag, crash, pause, and a network that loses and partitions."""

    SOCKET_MESSAGES = 2_000
    """What a paused site's socket holds."""

    terrain: Terrain
    seed: int
    config: HierarchyConfig = field(default_factory=lambda: Config.wan().hierarchy)
    loss: float = 0.0
    pressing: bool = False

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        self.scheduler = Scheduler()
        self.sites: list[SimSite] = []
        self._by_id: dict[SiteId, SimSite] = {}
        self._coordinators: dict[int, SimSite] = {}
        self._local_groups: dict[SiteId, dict[int, SimSite]] = {}
        self.traffic = Traffic()
        self.components: dict[int, int] = {}
        """By index: sites of different components do not hear each other."""
        self.laggards: list[SimSite] = []
        self.violations: list[Violated] = []
        self.lost = 0
        self._joining: list[tuple[SimSite, SimSite, int]] = []

    # Sites

    def add(self, *, lag_ns: int = 0) -> SimSite:
        """A site at the next place, started now."""
        site = SimSite(self, len(self.sites), self.rng, lag_ns)
        self.sites.append(site)
        self._by_id[site.id] = site
        if lag_ns:
            self.laggards.append(site)
        site.start()
        return site

    def join(self, sponsor: SimSite, *, lag_ns: int, lease_ns: int) -> SimSite:
        """A newcomer that starts where its sponsor is, who acknowledges no further until the newcomer is counted."""
        sponsor.held_at = sponsor.acknowledged
        site = self.add(lag_ns=lag_ns)
        site.held_at = sponsor.held_at
        if site not in self.laggards:
            self.laggards.append(site)
        self._joining.append((site, sponsor, self.scheduler.now + lease_ns))
        self.scheduler.after(SECOND // 10, self._look_after_joining)
        return site

    def _look_after_joining(self) -> None:
        waiting = []
        for site, sponsor, until in self._joining:
            if site.counted or self.scheduler.now >= until or not site.alive:
                sponsor.held_at = None
                site.held_at = None
            else:
                waiting.append((site, sponsor, until))
        self._joining = waiting
        if waiting:
            self.scheduler.after(SECOND // 10, self._look_after_joining)

    def alive(self) -> list[SimSite]:
        return [site for site in self.sites if site.alive]

    def run(self, seconds: float) -> None:
        self.scheduler.run_until(self.scheduler.now + round(seconds * SECOND))

    # The network

    def hears(self, site: SimSite, listening: Listen) -> None:
        for group in site.listening.local_groups - listening.local_groups:
            self._local_groups[group].pop(site.index, None)
        for group in listening.local_groups - site.listening.local_groups:
            self._local_groups.setdefault(group, {})[site.index] = site
        if listening.coordinators:
            self._coordinators[site.index] = site
        else:
            self._coordinators.pop(site.index, None)
        site.listening = listening

    def carry(self, sender: SimSite, control: Control) -> None:
        nbytes = len(control.frame)
        self.traffic.messages += 1
        self.traffic.bytes += nbytes
        self.traffic.largest = max(self.traffic.largest, nbytes)
        match control.to:
            case CoordinatorGroup():
                receivers = list(self._coordinators.values())
            case LocalGroup(coordinator):
                receivers = list(self._local_groups.get(coordinator, {}).values())
            case OneSite(site):
                receivers = [self._by_id[site]] if site in self._by_id else []
        terrain, scheduler, here = self.terrain, self.scheduler, sender.index
        component = self.components.get(here, 0)
        for receiver in receivers:
            there = receiver.index
            if there == here or self.components.get(there, 0) != component:
                continue
            hops = terrain.hops(here, there)
            if hops >= control.ttl or (self.loss and self.rng.random() < self.loss):
                continue
            self.traffic.arrivals += 1
            scheduler.at(scheduler.now + terrain.delay_ns(here, there), receiver.arrive, control.message, nbytes, hops)

    # What is promised

    def learned(self, site: SimSite, stable: int) -> None:
        """A site knows more to be stable: no live member that is counted may still need any of it (property 16)."""
        site.stable = stable
        if site.stable > site.acknowledged and not site.counted:
            # It was away for too long: its member starts anew, and says so.
            site.gaps += 1
            site.lag_ns = 0
            site.held_at = None
        component = self.components.get(site.index, 0)
        for other in self.laggards:
            if self.components.get(other.index, 0) != component or other.acknowledged >= site.stable:
                continue
            if other.counted:
                self.violations.append(
                    Violated(
                        at=self.scheduler.now,
                        site=site.index,
                        needs=other.index,
                        stable=site.stable,
                        acknowledged=other.acknowledged,
                    )
                )

    # What it looks like

    def coordinators(self) -> list[SimSite]:
        return [site for site in self.alive() if site.process.state is ControlState.COORDINATOR]

    def settled(self) -> bool:
        """Whether every live site has a place, under a coordinator that is one, and all know of each other."""
        by_component: dict[int, int] = {}
        for site in self.coordinators():
            component = self.components.get(site.index, 0)
            by_component[component] = by_component.get(component, 0) + 1
        for site in self.alive():
            coordinator = self._by_id.get(site.process.coordinator or SiteId(0))
            if coordinator is None or not coordinator.alive:
                return False
            if coordinator.process.state is not ControlState.COORDINATOR:
                return False
            if site.process.coordinators != by_component.get(self.components.get(site.index, 0), 0):
                return False
            if site.process.state not in (ControlState.COORDINATOR, ControlState.CHILD):
                return False
        return True

    def settle(self, limit_s: float, step_s: float = 1.0) -> float | None:
        """Run until settled, and stays so for a while; the seconds it took, None where it did not within a limit."""
        begin, since = self.scheduler.now, None
        while self.scheduler.now - begin < limit_s * SECOND:
            if not self.settled():
                since = None
            elif since is None:
                since = self.scheduler.now
            elif self.scheduler.now - since >= 3 * SECOND:
                return (since - begin) / SECOND
            self.run(step_s)
        return None

    def stability_latencies(self) -> list[float]:
        """Seconds by which each live site's knowledge of what is stable is behind what all have by now."""
        everybody = min(site.acknowledged for site in self.alive())
        return [(everybody - site.stable) / 4_096 / 1e6 for site in self.alive()]

    def distance_errors(self, pairs: int) -> list[float]:
        """Relative errors of what sites think of their distance to random others; infinite where they know nothing."""
        alive = self.alive()
        errors = []
        for _ in range(pairs):
            one, other = self.rng.sample(alive, 2)
            true_us = self.terrain.delay_ns(one.index, other.index) / 1_000
            thought = one.process.distance_us(other.id, other.process.coordinator)
            errors.append(abs(thought - true_us) / true_us if thought is not None else float("inf"))
        return errors
