"""What befalls a simulated hierarchy: crashes, pauses, partitions, departures, newcomers, links that go one way."""

from __future__ import annotations

from collections.abc import Callable

from intergroup_core.hierarchy.states import ControlState
from intergroup_core.sim.control_site import SECOND, SimSite
from intergroup_core.sim.sites import SimSites

MILLISECOND = 1_000_000
BETWEEN = (ControlState.TO_CHILD, ControlState.TO_COORDINATOR)


class Upheavals:
    """Draws troubles from the simulation's own randomness, one after another, until a time."""

    MOST_DEAD = 0.6
    """No more of the sites are taken away than this part."""

    def __init__(self, sites: SimSites, kinds: tuple[str, ...], until: int) -> None:
        self._sites = sites
        self._until = until
        self._rng = sites.rng
        self._most = round(self.MOST_DEAD * len(sites.sites))
        self._room = len(sites.sites)
        self._gone = 0
        self._split = False
        fault, grace = sites.config.fault_ms * MILLISECOND, sites.config.grace_ms * MILLISECOND
        self._fault, self._long = round(fault), round(fault + grace)
        self._makers = [MAKERS[kind] for kind in kinds]
        if self._makers:
            self._next()

    def _next(self) -> None:
        """About two in the time in which a hierarchy gets over one."""
        if self._sites.scheduler.now < self._until:
            self._rng.choice(self._makers)(self)
            self._sites.scheduler.after(self._rng.randrange(self._long), self._next)

    # Kinds of trouble

    def crash(self) -> None:
        self._take(self._some(), SimSite.crash)

    def leave(self) -> None:
        self._take(self._some(), SimSite.leave)

    def coordinators(self) -> None:
        """Coordinators fail one after another, some with their heirs."""
        for step in range(self._rng.randrange(1, 4)):
            self._sites.scheduler.after(step * self._rng.randrange(1, self._fault), self._behead)

    def _behead(self) -> None:
        leaders = self._sites.coordinators()
        if not leaders:
            return
        leader = self._rng.choice(leaders)
        children = [
            site for site in self._sites.alive() if site.process.coordinator == leader.id and site is not leader
        ]
        self._take(leader, SimSite.crash)
        if children and self._rng.random() < 0.5:
            self._take(min(children, key=lambda site: site.id), SimSite.crash)

    def third(self) -> None:
        """A third of all at once."""
        alive = self._sites.alive()
        for site in self._rng.sample(alive, len(alive) // 3):
            self._take(site, SimSite.crash)

    def moving(self) -> None:
        """One in the middle of a change fails."""
        between = [site for site in self._sites.alive() if site.process.state in BETWEEN]
        if between:
            self._take(self._rng.choice(between), SimSite.crash)
        elif self._sites.scheduler.now < self._until:
            self._sites.scheduler.after(self._fault // 10, self.moving)

    def pause(self) -> None:
        """Sites stand still, some for longer than others wait."""
        for _ in range(self._rng.randrange(1, 4)):
            self._pause(self._some())
        leaders = self._sites.coordinators()
        if leaders:
            self._pause(self._rng.choice(leaders))

    def _pause(self, site: SimSite) -> None:
        if not site.paused:
            site.pause()
            self._sites.scheduler.after(self._rng.randrange(2 * self._long), site.resume)

    def partition(self) -> None:
        if self._split:
            return
        self._split = True
        self._sites.split(self._rng.choice((2, 2, 3)))
        self._sites.scheduler.after(self._rng.randrange(3 * self._long), self._heal)

    def _heal(self) -> None:
        self._sites.heal()
        self._split = False

    def oneway(self) -> None:
        """Some do not hear some others, who hear them."""
        alive = self._sites.alive()
        for _ in range(self._rng.randrange(1, 6) if len(alive) > 1 else 0):
            one, other = self._rng.sample(alive, 2)
            link = (one.index, other.index)
            self._sites.deaf.add(link)
            self._sites.scheduler.after(self._rng.randrange(2 * self._long), self._sites.deaf.discard, link)

    def hold(self) -> None:
        """Members fall behind for a while."""
        for _ in range(self._rng.randrange(1, 4)):
            self._sites.hold(self._some(), self._rng.randrange(3 * self._long) / SECOND)

    def join(self) -> None:
        """A newcomer with a sponsor, or a member that comes back where it was."""
        sponsor = self._some()
        lag, lease = self._rng.randrange(2 * SECOND), 2 * self._long
        back = [site for site in self._sites.alive() if not site.member]
        if sponsor.paused or sponsor.held_at is not None or not sponsor.member:
            return
        if back:
            self._sites.rejoin(self._rng.choice(back), sponsor, lease_ns=lease)
        elif len(self._sites.sites) < 2 * self._room:
            self._sites.join(sponsor, lag_ns=lag, lease_ns=lease)

    def withdraw(self) -> None:
        """A member leaves the group, and its site stays; one member remains."""
        site = self._some()
        members = sum(other.member for other in self._sites.alive())
        if site.held_at is None and members > 1:
            site.withdraw()

    def _some(self) -> SimSite:
        return self._rng.choice(self._sites.alive())

    def _take(self, site: SimSite, how: Callable[[SimSite], None]) -> None:
        if site.alive and self._gone < self._most:
            self._gone += 1
            site.paused = False
            how(site)


MAKERS: dict[str, Callable[[Upheavals], None]] = {
    "crash": Upheavals.crash,
    "coordinators": Upheavals.coordinators,
    "third": Upheavals.third,
    "moving": Upheavals.moving,
    "pause": Upheavals.pause,
    "partition": Upheavals.partition,
    "oneway": Upheavals.oneway,
    "leave": Upheavals.leave,
    "join": Upheavals.join,
    "withdraw": Upheavals.withdraw,
    "hold": Upheavals.hold,
}
"""By the names under which `intergroup sim --sites N --faults` knows them."""
