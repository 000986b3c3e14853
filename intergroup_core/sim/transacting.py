"""Sites of a simulated group that hold its log, and applications that write through them, each in its transactions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from random import Random

from intergroup_core.agent.held import Spans
from intergroup_core.effects import Deliver, Effect, Install
from intergroup_core.sim.live_cluster import LiveCluster
from intergroup_core.sim.live_member import LiveMember
from intergroup_core.sim.query import Run
from intergroup_core.sim.transaction_trace import Place, Told, TransactionTrace, Unended
from intergroup_core.sim.witness import Witness
from intergroup_core.transaction.transactions import is_majority
from intergroup_core.wire.labels import key_of
from intergroup_core.wire.statements import Holding

MILLISECOND = 1_000_000
SECOND = 1_000_000_000
DAY = 86_400
SAY_AGAIN_NS = 400 * MILLISECOND


class Transacting:
    """Follows every process of a cluster; runs of applications are started, taken over and ended through it."""

    def __init__(self, cluster: LiveCluster, rng: Random, *, log_ns: int = 5 * MILLISECOND) -> None:
        self.cluster = cluster
        self.scheduler = cluster.scheduler
        self.trace = TransactionTrace()
        self.runs: list[Run] = []
        self.reached: Callable[[str, LiveMember], None] = lambda what, member: None
        """Told of what applications do, for those who choose their moment."""
        self.delivered: Callable[[Effect, LiveMember], None] = lambda effect, member: None
        self._rng = rng
        self._log_ns = log_ns
        self._witnesses: dict[int, Witness] = {}
        self._keys = {index: index + 1 for index in range(len(cluster.seats))}
        self._fresh = len(cluster.seats) + 1
        self._older: dict[int, list[Spans]] = {}
        self._apps: dict[bytes, str] = {}
        self._done: dict[str, int] = {}
        self._ceased: set[LiveMember] = set()
        cluster.on_join = self._joined

    # Sites

    def _joined(self, member: LiveMember) -> None:
        index = member.index
        before = self._witnesses.get(index)
        if before is not None:
            before.end()
            self._older[index] = before.spans()
        witness = Witness(
            self.cluster,
            member,
            self.trace,
            self._apps,
            Random(self._rng.getrandbits(64)),
            key=self._keys[index],
            log_ns=self._log_ns,
            older=self._older.get(index, ()),
        )
        self._witnesses[index] = witness
        follow = witness.watch

        def watch(effects: Sequence[Effect]) -> None:
            follow(effects)
            for effect in effects:
                if isinstance(effect, Deliver):
                    for run in self.runs:
                        run.delivered(member, effect.chunk)
                if isinstance(effect, Deliver | Install):
                    self.delivered(effect, member)

        member.watch = watch
        self.scheduler.after(0, self._say_holding, member)

    def _say_holding(self, member: LiveMember) -> None:
        """Again and again until it is known: what was said may be lost with an incarnation."""
        if not member.alive or member.leaving or member in self._ceased:
            return
        key = self._keys[member.index]
        word = member.endpoint.ledger.holders.word_on(key)
        unheard = word is None or not word.holds or bool(member.endpoint.ledger.unstated)
        if member.views and self.cluster.seats[member.index].sender and unheard:
            member.declare(Holding(key, member.name, True, DAY))
        self.scheduler.after(SAY_AGAIN_NS, self._say_holding, member)

    def cease(self, index: int) -> None:
        """A site lets go of its log in order, and its process leaves."""
        member = self.cluster[index]
        if member.alive and not member.is_paused and not member.leaving:
            self._ceased.add(member)
            member.declare(Holding(self._keys[index], member.name, False, DAY))
            self.cluster.leave(index)

    def lose_disk(self, index: int) -> None:
        """Nothing is left of a site whose process is gone: what starts there is another site."""
        if not self.cluster[index].alive:
            name = self.cluster.seats[index].name
            self.cluster.ledgers.pop(name, None)
            self.cluster.store.pop(name, None)
            self._keys[index] = self._fresh
            self._fresh += 1
            self._witnesses[index].end()
            del self._witnesses[index]
            self._older.pop(index, None)

    def question(
        self, asker: LiveMember, place: Place, sites: Collection[int], answered: Callable[[int], None]
    ) -> None:
        """Ask sites whether they have a message; whoever has it and can be reached answers."""
        for index, witness in self._witnesses.items():
            if witness.key not in sites:
                continue
            if index == asker.index:
                if witness.has(place):
                    answered(witness.key)
                continue
            arrives = self.cluster.network.passage(asker.index, index)
            if arrives is not None:
                self.scheduler.at(arrives, self._answer, witness, asker, place, answered)

    def _answer(self, witness: Witness, asker: LiveMember, place: Place, answered: Callable[[int], None]) -> None:
        if not witness.has(place) or not asker.alive:
            return
        arrives = self.cluster.network.passage(witness.member.index, asker.index)
        if arrives is not None:
            self.scheduler.at(arrives, answered, witness.key)

    # Applications

    def knows(self, member: LiveMember) -> bool:
        """Whether a site has ever been in the group that has committed something.

        One that has nothing on its disk and meets nobody begins a group of its own, with voters of its own. It cannot
        know better, so no application is started there.
        """
        return not self._done or bool(member.endpoint.ledger.transactions.voters)

    def executor(self, rng: Random) -> LiveMember | None:
        """A process through which a task may send."""
        able = [member for member in self.cluster.alive if member.endpoint.is_sender and not member.is_paused]
        return rng.choice(able) if able else None

    def start(self, app: str, index: int, *, lasting: bool = True, stops_after: int | None = None) -> Run | None:
        """A new run of an application at a seat; it goes on behind the last version that it was told is done."""
        member = self.cluster[index]
        if not member.alive:
            return None
        self._apps[key_of(app)] = app
        number = sum(run.app == app for run in self.runs)
        rng = Random(f"{self.cluster.seed}/run/{app}/{number}")
        run = Run(self, app, number, member, self._done.get(app, -1) + 1, rng, lasting=lasting)
        run.stops_after = stops_after
        self.runs.append(run)
        run.start()
        return run

    def told(self, run: Run) -> None:
        known = run.member.endpoint.ledger.transactions
        self._done[run.app] = max(run.version, self._done.get(run.app, -1))
        self.trace.events.append(Told(self.scheduler.now, run.member.name, (run.app, run.version), known.era))

    # The end

    def finish(self, limit_ns: int = 20 * SECOND) -> None:
        """After all trouble: every run ends with the version it is at, or it is written down that it does not."""
        end = self.scheduler.now + limit_ns
        for run in self.runs:
            run.stops_after = run.version
        while any(not run.ended for run in self.runs) and self.scheduler.now < end:
            self.cluster.run_for(50 * MILLISECOND)
        for run in self.runs:
            if not run.ended and self._majority_is_there(run.member):
                self.trace.events.append(Unended(self.scheduler.now, run.member.name, (run.app, run.version)))
            run.stop()
        for witness in self._witnesses.values():
            if witness.member.alive:
                witness.end()

    def _majority_is_there(self, member: LiveMember) -> bool:
        ledger = member.endpoint.ledger
        known = ledger.transactions
        there = {witness.key for witness in self._witnesses.values() if witness.member.alive}
        now = int(member.endpoint.acknowledged)
        return all(is_majority(there, each) for each in known.electorates(now, ledger.holders))
