"""Groups in trouble while applications write to them in transactions, made from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from intergroup_core.config import Config
from intergroup_core.effects import Deliver, Effect
from intergroup_core.sim.checkers import Violation, check
from intergroup_core.sim.checkers.transactions import check_transactions
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.faults import Split
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from intergroup_core.sim.live_member import LiveMember
from intergroup_core.sim.live_plan import slower
from intergroup_core.sim.network import Conditions
from intergroup_core.sim.transacting import Transacting
from intergroup_core.sim.transaction_trace import Told, Visible
from intergroup_core.sim.workload import Workload
from intergroup_core.wire.statements import Decided, Established, Gathering, Proposed, Restated, statements_in

TOGETHER_NS = 6 * SECOND
"""By then the first transaction must be visible: before that nobody knows who the voters are."""
MOST_STRIKES = 6
STRIKE = 0.12
"""Chance that something happens at a moment that matters."""
MOMENTS = (Proposed, Decided, Gathering, Established, Restated)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOutcome:
    """Plain values, so that it crosses processes."""

    seed: int
    told: int
    visible: int
    eras: int
    strikes: int
    virtual_ns: int
    violations: list[Violation | str]


class TransactionScenario:
    """One seed: a handful of sites, one to three applications, and about six seconds of trouble."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        rng = self._rng = Random(f"{seed}/transactions")
        self._sites = rng.choice((3, 3, 3, 4, 5))
        late = rng.choice((0, 0, 1, 2))
        seats = [Seat(name=f"s{index}", busy=0.0, joins_at=index * MILLISECOND) for index in range(self._sites)]
        seats += [Seat(name=f"late{index}", busy=0.0, joins_at=None) for index in range(late)]
        if rng.random() < 0.2:
            seats.append(Seat(name="reader", sender=False, joins_at=2 * MILLISECOND))
        loss = rng.choice((0.0, 0.0, 0.02, 0.1))
        self.cluster = LiveCluster(
            seed=seed,
            seats=seats,
            config=slower(Config.test(), rng),
            conditions=Conditions(
                loss=loss, jitter_ns=rng.choice((0, 5 * MILLISECOND)), reorder=rng.choice((0.0, 0.05))
            ),
            workload=Workload(rate=1),
            wake_ns=rng.choice((200_000, 5 * MILLISECOND)),
        )
        self.transacting = Transacting(
            self.cluster, Random(f"{seed}/sites"), log_ns=rng.choice((0, 5, 60)) * MILLISECOND
        )
        self._apps = [f"app{number}" for number in range(rng.choice((1, 1, 2, 3)))]
        self._strikes = 0
        self._struck: set[tuple[object, ...]] = set()
        self._until = 0

    def play(self) -> TransactionOutcome:
        cluster, group = self.cluster, self.transacting
        cluster.run_until(cluster.agreed, TOGETHER_NS)
        cluster.run_for(SECOND)
        group.start(self._apps[0], self._rng.randrange(self._sites))
        assert cluster.run_until(self._first_told, TOGETHER_NS), "nothing was committed in a quiet group"
        for app in self._apps[1:]:
            group.start(app, self._rng.randrange(self._sites), lasting=self._rng.random() < 0.8)
        self._until = cluster.scheduler.now + self._rng.choice((3, 5, 7)) * SECOND
        group.reached = self._reached
        group.delivered = self._delivered
        for _ in range(self._rng.randrange(5)):
            cluster.scheduler.at(self._some_time(), self._strike)
        for _ in range(self._rng.randrange(3)):
            cluster.scheduler.at(self._some_time(), self._take_over)
        for index in [index for index, seat in enumerate(cluster.seats) if seat.joins_at is None]:
            cluster.scheduler.at(self._some_time(), cluster.join, index)
        cluster.scheduler.at(self._until - SECOND, self._revive)
        cluster.run_for(self._until - cluster.scheduler.now)
        self._quiet()
        return self._outcome()

    def _first_told(self) -> bool:
        return any(isinstance(event, Told) for event in self.transacting.trace.events)

    def _some_time(self) -> int:
        return self._rng.randrange(self.cluster.scheduler.now, self._until)

    # Trouble

    def _reached(self, what: str, member: LiveMember) -> None:
        if self._rng.random() < STRIKE / 2:
            self._strike(member)

    def _delivered(self, effect: Effect, member: LiveMember) -> None:
        if not isinstance(effect, Deliver) or self._strikes >= MOST_STRIKES:
            return
        for message, statement in statements_in(effect.chunk):
            place = (message.source, message.seq)
            if isinstance(statement, MOMENTS) and place not in self._struck:
                self._struck.add(place)
                if self._rng.random() < STRIKE:
                    # Within the time that a message takes, so that some have it and some have not.
                    delay = self._rng.randrange(8 * MILLISECOND)
                    self.cluster.scheduler.after(delay, self._strike, member)

    def _strike(self, member: LiveMember | None = None) -> None:
        cluster, rng = self.cluster, self._rng
        if self._strikes >= MOST_STRIKES or cluster.scheduler.now >= self._until or not cluster.alive:
            return
        self._strikes += 1
        count = len(cluster.seats)
        victim = member.index if member is not None and rng.random() < 0.6 else rng.choice(cluster.alive).index
        back = rng.choice((rng.randrange(50, 900), rng.randrange(900, 3_000))) * MILLISECOND
        note = self.transacting.trace.notes.append
        match rng.choice(
            ("split", "split", "apart", "crash", "crash", "pause", "oneway", "cease", "disk", "take over")
        ):
            case "split":
                order = rng.sample(range(count), count)
                cutting = rng.randrange(1, count)
                parts = (frozenset(order[:cutting]), frozenset(order[cutting:]))
                links = Split(at=0, until=0, parts=parts).links()
                note(f"{cluster.scheduler.now} split {[sorted(part) for part in parts]} for {back}")
                cluster.cut(links)
                cluster.scheduler.after(back, cluster.heal, links)
            case "apart":
                links = {(victim, other) for other in range(count)} | {(other, victim) for other in range(count)}
                note(f"{cluster.scheduler.now} apart {victim} for {back}")
                cluster.cut(links)
                cluster.scheduler.after(back, cluster.heal, links)
            case "oneway":
                links = {(other, victim) for other in range(count)}
                note(f"{cluster.scheduler.now} deaf {victim} for {back}")
                cluster.cut(links)
                cluster.scheduler.after(back, cluster.heal, links)
            case "crash":
                note(f"{cluster.scheduler.now} crash {victim} for {back}")
                cluster.crash(victim)
                cluster.scheduler.after(back, cluster.restart, victim)
            case "pause":
                note(f"{cluster.scheduler.now} pause {victim} for {back}")
                cluster.at_seat(victim, LiveMember.pause)
                cluster.scheduler.after(back, cluster.at_seat, victim, LiveMember.resume)
            case "cease":
                note(f"{cluster.scheduler.now} cease {victim} for {back}")
                self.transacting.cease(victim)
                cluster.scheduler.after(back, cluster.restart, victim)
            case "disk" if not self._lost_disk:
                self._lost_disk = True
                note(f"{cluster.scheduler.now} disk {victim} for {back}")
                cluster.crash(victim)
                self.transacting.lose_disk(victim)
                cluster.scheduler.after(back, cluster.restart, victim)
            case _:
                self._take_over()

    _lost_disk = False

    def _take_over(self) -> None:
        """A new run of an application at some site, while the old one may go on."""
        able = self.cluster.alive
        if able:
            member = self._rng.choice(able)
            app = self._rng.choice(self._apps)
            if sum(run.app == app for run in self.transacting.runs) < 4:
                self.transacting.trace.notes.append(f"{self.cluster.scheduler.now} {app} taken over at {member.index}")
                self.transacting.start(app, member.index)

    def _revive(self) -> None:
        """Applications whose processes are gone go on elsewhere."""
        for app in self._apps:
            if all(run.ended for run in self.transacting.runs if run.app == app) and self.cluster.alive:
                self.transacting.start(app, self._rng.choice(self.cluster.alive).index)

    # The end

    def _quiet(self) -> None:
        """All trouble ends, all who are gone come back, and every transaction under way has to end."""
        cluster = self.cluster
        for member in cluster.alive:
            member.resume()
        for index in range(len(cluster.seats)):
            cluster.restart(index)
        cluster.network.conditions = cluster.network.conditions.quiet()
        cluster.heal_all()
        cluster.run_for(100 * MILLISECOND)
        for index in range(len(cluster.seats)):
            cluster.restart(index)
        self._revive()
        self.transacting.finish()
        cluster.settle()

    def _outcome(self) -> TransactionOutcome:
        events = self.transacting.trace.events
        violations = check(self.cluster.trace) + check_transactions(self.transacting.trace)
        return TransactionOutcome(
            seed=self.seed,
            told=sum(isinstance(event, Told) for event in events),
            visible=sum(isinstance(event, Visible) for event in events),
            eras=max((member.endpoint.ledger.transactions.era for member in self.cluster.alive), default=0),
            strikes=self._strikes,
            virtual_ns=self.cluster.scheduler.now,
            violations=list(violations),
        )


def play_transactions(seed: int) -> TransactionOutcome:
    return TransactionScenario(seed).play()
