"""Thousands of sites in virtual time: control processes alone, each with a member that only acknowledges.

The production class is driven unchanged. Messages travel as objects next to their frames: to decode every copy again
would only cost time, and smaller simulations do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from intergroup_core.config import Config, HierarchyConfig
from intergroup_core.effects import Control, CoordinatorGroup, Listen, LocalGroup, OneSite
from intergroup_core.hierarchy.states import ControlState
from intergroup_core.ids import SiteId
from intergroup_core.sim.control_site import SECOND, SimSite
from intergroup_core.sim.scheduler import Scheduler
from intergroup_core.sim.terrain import Terrain
from intergroup_core.wire.hierarchy import HierarchyMessage

MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Violated:
    """A message could have been dropped that a live, counted member still needed (property 16)."""

    at: int
    site: int
    needs: int
    """The member that needed it."""
    stable: int
    acknowledged: int

    def __str__(self) -> str:
        behind = (self.stable - self.acknowledged) / 4_096 / 1e6
        return (
            f"at {self.at / SECOND:.3f} s site {self.site} takes for stable what site {self.needs}, alive and counted, "
            f"still needs: {behind:.3f} s of messages"
        )


@dataclass(slots=True)
class Traffic:
    """What went over the network since it was last looked at."""

    messages: int = 0
    bytes: int = 0
    arrivals: int = 0
    largest: int = 0
    by_group: Counter[SiteId] = field(default_factory=Counter)
    """Bytes by local group; those of the coordinator group under 0."""


@dataclass
class SimSites:
    """A hierarchy under test: sites that start, lag, crash, pause, and a network that loses and partitions."""

    SOCKET_MESSAGES = 2_000
    """What a paused site's socket holds."""
    LATE_NS = 400 * MILLISECOND
    """By how much a message that is overtaken comes late, at most; a duplicate too."""

    terrain: Terrain
    seed: int
    config: HierarchyConfig = field(default_factory=lambda: Config.wan().hierarchy)
    loss: float = 0.0
    dup: float = 0.0
    reorder: float = 0.0
    pressing: bool = False
    groups: int = 1
    """Process groups that every site has a member in."""
    progress: Callable[[str], None] | None = None
    """Told once a virtual second how far it is."""

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        self.scheduler = Scheduler()
        self.sites: list[SimSite] = []
        self.by_id: dict[SiteId, SimSite] = {}
        self._coordinators: dict[int, SimSite] = {}
        self._local_groups: dict[SiteId, dict[int, SimSite]] = {}
        self.traffic = Traffic()
        self.deaf: set[tuple[int, int]] = set()
        """Pairs of which the second does not hear the first."""
        self._apart: dict[int, int] = {}
        self._merged_at = 0
        self.laggards: list[SimSite] = []
        self.violations: list[Violated] = []
        self.lost = 0
        self._joining: list[tuple[SimSite, SimSite, int]] = []

    # Sites

    def add(self, *, lag_ns: int = 0, start: bool = True) -> SimSite:
        """A site at the next place, started now."""
        site = SimSite(self, len(self.sites), self.rng, lag_ns)
        self.sites.append(site)
        self.by_id[site.id] = site
        if lag_ns:
            self.laggards.append(site)
        if start:
            site.start()
        return site

    def join(self, sponsor: SimSite, *, lag_ns: int, lease_ns: int) -> SimSite:
        """A newcomer that starts where its sponsor is, who acknowledges no further until the newcomer is counted."""
        site = self.add(lag_ns=lag_ns, start=False)
        site.component = sponsor.component
        self._sponsored(site, sponsor, lease_ns)
        site.start()
        return site

    def rejoin(self, site: SimSite, sponsor: SimSite, *, lease_ns: int) -> None:
        """The same, for a site whose member has left the group."""
        self._sponsored(site, sponsor, lease_ns)

    def _sponsored(self, site: SimSite, sponsor: SimSite, lease_ns: int) -> None:
        sponsor.held_at = sponsor.acknowledged
        site.enter(sponsor.held_at)
        self._watch(site, sponsor)
        self._joining.append((site, sponsor, self.scheduler.now + lease_ns))
        self.scheduler.after(SECOND // 10, self._look_after_joining)

    def hold(self, site: SimSite, seconds: float | None = None) -> None:
        """Its member acknowledges no further, for a while or until it is released."""
        if site.held_at is None:
            self._watch(site)
            site.held_at = site.acknowledged
            if seconds is not None:
                self._release_after(site, seconds)

    def _release_after(self, site: SimSite, seconds: float) -> None:
        """A member that is behind takes its time."""
        self.scheduler.after(round(seconds * SECOND), self._release, site, site.held_at)

    def _release(self, site: SimSite, held: int) -> None:
        if site.held_at == held and not site.paused:
            site.held_at = None

    def woken(self, site: SimSite) -> None:
        """Nothing may be gone that a site needs which takes itself for counted after it stood still."""
        if site.passed_by and site.counted:
            self._violated(site, site, site.passed_by)
        elif site.passed_by:
            site.miss()
        self._release_after(site, self.rng.uniform(0, self.config.grace_ms / 1_000))

    def _watch(self, *sites: SimSite) -> None:
        self.laggards.extend(site for site in sites if site not in self.laggards)

    def _look_after_joining(self) -> None:
        waiting = []
        for site, sponsor, until in self._joining:
            if site.counted or self.scheduler.now >= until or not site.alive or not sponsor.alive:
                sponsor.held_at = None
                self._release_after(site, self.rng.uniform(0, self.config.grace_ms / 1_000))
            else:
                waiting.append((site, sponsor, until))
        self._joining = waiting
        if waiting:
            self.scheduler.after(SECOND // 10, self._look_after_joining)

    def alive(self) -> list[SimSite]:
        return [site for site in self.sites if site.alive]

    def run(self, seconds: float) -> None:
        end = self.scheduler.now + round(seconds * SECOND)
        while self.progress is not None and self.scheduler.now + SECOND < end:
            self.scheduler.run_until(self.scheduler.now + SECOND)
            self._tell(self.progress)
        self.scheduler.run_until(end)
        if self.progress is not None:
            self._tell(self.progress)

    def _tell(self, progress: Callable[[str], None]) -> None:
        progress(
            f"{self.scheduler.now / SECOND:.0f} virtual s: {len(self.alive())} sites, {len(self.coordinators())} "
            f"coordinators, {self.scheduler.events_run:,} events"
        )

    # The network

    def split(self, parts: int) -> None:
        """Every site falls into one of so many components."""
        for site in self.sites:
            site.component = self.rng.randrange(parts)

    def heal(self) -> None:
        """One component again. What the others had dropped meanwhile was in another branch of the epoch."""
        self._apart = {site.index: site.component for site in self.sites}
        self._merged_at = self.scheduler.now + round(self.config.fault_ms * MILLISECOND)
        for site in self.sites:
            site.component = 0

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
        traffic = self.traffic
        traffic.messages += 1
        traffic.bytes += nbytes
        if nbytes > traffic.largest:
            traffic.largest = nbytes
        match control.to:
            case CoordinatorGroup():
                receivers = list(self._coordinators.values())
                traffic.by_group[SiteId(0)] += nbytes
            case LocalGroup(coordinator):
                traffic.by_group[coordinator] += nbytes
                receivers = list(self._local_groups.get(coordinator, {}).values())
            case OneSite(site):
                receivers = [self.by_id[site]] if site in self.by_id else []
        way, at, here = self.terrain.way, self.scheduler.at, sender.index
        now, component = self.scheduler.now, sender.component
        ttl, message = control.ttl, control.message
        ideal = not (self.loss or self.dup or self.reorder or self.deaf)
        for receiver in receivers:
            if receiver is sender or receiver.component != component:
                continue
            delay, hops = way(here, receiver.index)
            if hops >= ttl:
                continue
            if ideal:
                traffic.arrivals += 1
                at(now + delay, receiver.arrive, message, nbytes, hops)
            else:
                self._carry_badly(here, receiver, delay, message, nbytes, hops)

    def _carry_badly(
        self, here: int, receiver: SimSite, delay: int, message: HierarchyMessage, nbytes: int, hops: int
    ) -> None:
        rng = self.rng
        if rng.random() < self.loss or (here, receiver.index) in self.deaf:
            return
        copies = 2 if rng.random() < self.dup else 1
        for copy in range(copies):
            late = rng.randrange(self.LATE_NS) if copy or rng.random() < self.reorder else 0
            self.traffic.arrivals += 1
            self.scheduler.after(delay + late, receiver.arrive, message, nbytes, hops)

    # What is promised

    def learned(self, site: SimSite, stable: int) -> None:
        """A site knows more to be stable: no live member that is counted may still need any of it (property 16)."""
        site.stable = stable
        for other in self.laggards:
            if other.component != site.component or not other.member or other.acknowledged >= stable:
                continue
            if not other.alive:
                continue
            if other.paused and not self._were_apart(site, other):
                other.passed_by = stable
            elif not other.counted or self._were_apart(site, other):
                # It knows that it is not counted; once it finds that what it needs is gone, it says so.
                if not self._pinned(other):
                    other.miss()
            else:
                self._violated(site, other, stable)

    def _violated(self, site: SimSite, needs: SimSite, stable: int) -> None:
        self.violations.append(
            Violated(
                at=self.scheduler.now,
                site=site.index,
                needs=needs.index,
                stable=stable,
                acknowledged=needs.acknowledged,
            )
        )

    def _pinned(self, site: SimSite) -> bool:
        return any(site is newcomer for newcomer, _, _ in self._joining)

    def _were_apart(self, one: SimSite, other: SimSite) -> bool:
        if self.scheduler.now > self._merged_at:
            return False
        return self._apart.get(one.index, 0) != self._apart.get(other.index, 0)

    # What it looks like

    def coordinators(self) -> list[SimSite]:
        return [site for site in self.alive() if site.process.state is ControlState.COORDINATOR]

    def settled(self) -> bool:
        """Whether every live site has a place, under a coordinator that is one, and all know of each other."""
        by_component: dict[int, int] = {}
        for site in self.coordinators():
            by_component[site.component] = by_component.get(site.component, 0) + 1
        for site in self.alive():
            coordinator = self.by_id.get(site.process.coordinator or SiteId(0))
            if coordinator is None or not coordinator.alive:
                return False
            if coordinator.process.state is not ControlState.COORDINATOR:
                return False
            if site.process.coordinators != by_component.get(site.component, 0):
                return False
            if site.process.state not in (ControlState.COORDINATOR, ControlState.CHILD):
                return False
        return True

    def settle(self, limit_s: float, step_s: float = 1.0, calm_s: float = 3.0) -> float | None:
        """Run until settled, and stays so for a while; the seconds it took, None where it did not within a limit."""
        begin, since = self.scheduler.now, None
        while self.scheduler.now - begin < limit_s * SECOND:
            if not self.settled():
                since = None
            elif since is None:
                since = self.scheduler.now
            elif self.scheduler.now - since >= calm_s * SECOND:
                return (since - begin) / SECOND
            self.run(step_s)
        return None

    def stability_latencies(self) -> list[float]:
        """Seconds by which each live site's knowledge of what is stable is behind what all have by now."""
        everybody = min((site.acknowledged for site in self.alive() if site.member), default=0)
        return [(everybody - site.stable) / 4_096 / 1e6 for site in self.alive() if site.member]

    def distance_errors(self, pairs: int) -> list[float]:
        """Relative errors of what sites think of their distance to random others; infinite where they know nothing."""
        alive = self.alive()
        errors = []
        for _ in range(pairs):
            one, other = self.rng.sample(alive, 2)
            true_us = self.terrain.way(one.index, other.index)[0] / 1_000
            thought = one.process.distance_us(other.id, other.process.coordinator)
            errors.append(abs(thought - true_us) / true_us if thought is not None else float("inf"))
        return errors
