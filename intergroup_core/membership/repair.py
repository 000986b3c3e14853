"""The membership repair algorithm (T5.4): from a suspicion to the next view.

    CONSENSUS        who is considered and who of them failed
    GATHER_CUT       give what is on its way a moment, then say what is here
    GATHER_RECOVERY  wait for what the others have
    RECOVERY         get everything up to the cut
    GATHER_READY     the leader waits until all have it
    WAIT_FOR_CHANGE  the others wait for the leader's word

Nothing is delivered and nothing stamped between the first suspicion and the new view, so going back to consensus
needs no roll-back: what was recovered stays undelivered until the change arrives.
"""

from __future__ import annotations

from collections.abc import Iterable

from intergroup_core.ids import Instant, MemberId, Timestamp, ViewId
from intergroup_core.membership.consensus import Consensus, Verdict
from intergroup_core.membership.cut import Ending, ending_of
from intergroup_core.membership.quorum import QuorumRecord, next_number
from intergroup_core.membership.standing import Standing
from intergroup_core.membership.states import State
from intergroup_core.wire.membership import Cut, Entry, Join, MembershipChange, Peer, ReadyToCommit, RecoveryInfo


class Repair:
    """One execution, with as many attempts as it takes."""

    MAX_DOUBLINGS = 3
    """A message is repeated at doubling intervals, up to eight times the first."""
    CALM_RESTARTS = 2
    """Restarts in a row that are not held back (M9)."""
    MAX_ATTEMPTS = 1_024
    """Attempts of others that are kept in mind; what is said of further ones comes again."""
    MAX_BACKOFF = 16
    """Times the configured pause that a restart waits at most."""

    def __init__(
        self, standing: Standing, procs: Iterable[MemberId], *, leaving: bool, serial: int, now: Instant
    ) -> None:
        self._standing = standing
        self._config = standing.config
        self.consensus = Consensus(standing.me, standing.epoch, procs)
        self.state = State.CONSENSUS
        self.steps: list[tuple[State, str]] = []
        """States entered, and why, that nobody has taken note of yet."""
        self.leaving = leaving
        self.serial = serial
        """Of the last Join said: later ones have greater serials."""
        self.blocked: set[MemberId] = set()
        self.spoke: set[MemberId] = set()
        """Whoever said anything about membership meanwhile."""
        self.restarts = 0
        self._infos: dict[int, dict[MemberId, RecoveryInfo]] = {}
        self._readies: dict[int, dict[MemberId, ReadyToCommit]] = {}
        self._own_infos: dict[int, RecoveryInfo] = {}
        self._attempt = 0
        self._ending: Ending | None = None
        self._repeats = 0
        self._repeat_at = now.mono
        self._held_until = 0
        self._cut_at: int | None = None
        self._look_at = now.mono
        self._answer_at = 0

    # What is told from outside

    def heard_join(self, join: Join, now: Instant) -> str | None:
        """A Join; the reason where consensus starts again because of it."""
        consensus = self.consensus
        if self.state is State.CONSENSUS:
            verdict = consensus.heard(join)
            if verdict is Verdict.CHANGED:
                self._say_soon(now)
            elif verdict is Verdict.ANSWER:
                self._answer(now)
            self._check_consensus(now)
            return None
        if join.member not in consensus.members:
            return None  # outsiders wait for the next repair, so that this one ends (M9)
        if consensus.agrees(join):
            self._answer(now)
            return None
        behind = consensus.procs.issuperset(join.procs) and consensus.fails.issuperset(join.fails)
        same_epoch = consensus.epochs.get(join.member) == join.epoch
        if behind and same_epoch and consensus.me not in join.fails:
            self._answer(now)
            return None
        consensus.heard(join)
        reason = "excluded" if consensus.me in join.fails else "join"
        self._restart(reason, now)
        return reason

    def failed(self, process: MemberId, reason: str, now: Instant) -> bool:
        """A member counts as failed from now on; whether that changed anything."""
        if not self.consensus.fail(process):
            return False
        self._restart(reason, now)
        return True

    def foreign(self, process: MemberId, now: Instant) -> None:
        """Somebody of another view; only consensus still takes it in."""
        if self.state is State.CONSENSUS and self.consensus.considers(process):
            self._say_soon(now)

    def heard_info(self, info: RecoveryInfo, now: Instant) -> None:
        if info.member not in self.consensus.members or not self._has_room_for(info.attempt):
            return
        self._infos.setdefault(info.attempt, {})[info.member] = info
        if self.state is State.GATHER_RECOVERY:
            self._check_infos(now)
        elif self.state in (State.CONSENSUS, State.GATHER_CUT) or info.attempt != self._attempt:
            return
        else:
            self._answer(now)  # it repeats itself because it misses somebody's

    def heard_ready(self, ready: ReadyToCommit, now: Instant) -> None:
        if ready.member in self.consensus.members and self._has_room_for(ready.attempt):
            self._readies.setdefault(ready.attempt, {})[ready.member] = ready

    def _has_room_for(self, attempt: int) -> bool:
        known = attempt in self._infos or attempt in self._readies or attempt == self._attempt
        return known or len(self._infos) + len(self._readies) < self.MAX_ATTEMPTS

    # Going on

    def _say_soon(self, now: Instant) -> None:
        self._repeats = 0
        self._repeat_at = max(self._held_until, now.mono)

    def _answer(self, now: Instant) -> None:
        """Say the present phase's words again soon, for somebody lacks them; not for every one that asks."""
        if now.mono >= self._answer_at:
            self._answer_at = now.mono + self._standing.ns(self._config.repeat_ms)
            self._say_join()
            if self.state is not State.CONSENSUS:
                self._say_phase()

    def _move(self, state: State, reason: str) -> None:
        self.state = state
        self.steps.append((state, reason))

    def _restart(self, reason: str, now: Instant) -> None:
        """Back to consensus; after a few restarts in a row with a growing pause (M9)."""
        self.restarts += 1
        self._move(State.CONSENSUS, reason)
        self._cut_at = None
        self._ending = None
        self._repeats = 0
        held = self.restarts - self.CALM_RESTARTS
        if held > 0:
            pause = self._standing.ns(self._config.backoff_ms) * min(held, self.MAX_BACKOFF)
            self._held_until = now.mono + round(pause * self._standing.rng.uniform(0.5, 1.0))
        self._repeat_at = max(self._held_until, now.mono)
        self._standing.watch(self.consensus.members, now)
        self._check_consensus(now)

    def _check_consensus(self, now: Instant) -> None:
        if self.state is not State.CONSENSUS or now.mono < self._held_until or not self.consensus.reached():
            return
        if self._repeats == 0:
            self._say_join()  # the others wait for these very sets from this member
        self._attempt = self.consensus.attempt()
        self._move(State.GATHER_CUT, "agreed")
        path, config = self._standing.path, self._config
        asks = path is not None and path.asks_receivers(self._survivors())
        wait = max(config.receivers_wait_ms, config.cut_wait_ms) if asks else config.cut_wait_ms
        self._cut_at = now.mono + self._standing.ns(wait)
        self._look_at = now.mono if asks else self._cut_at
        self._repeats = 0
        self._repeat_at = self._cut_at

    def _look_for_more(self, now: Instant) -> None:
        """What a receiver has and no sender can be had from it before the senders compare what they have (H4)."""
        if self._cut_at is None or not self._look_at <= now.mono < self._cut_at:
            return
        self._look_at = min(self._cut_at, now.mono + max(1, self._standing.ns(self._config.cut_wait_ms)))
        if self._standing.path is not None:
            self._standing.path.fetch_from_receivers(self._survivors(), now)

    def _say_info(self, now: Instant) -> None:
        """What is said of an attempt is said once for all: others may work with the first version of it."""
        self._move(State.GATHER_RECOVERY, "time")
        self._cut_at = None
        standing, consensus = self._standing, self.consensus
        if self._attempt not in self._own_infos:
            path = standing.path
            self._own_infos[self._attempt] = RecoveryInfo(
                member=consensus.me,
                attempt=self._attempt,
                epoch=standing.epoch,
                last_seq=path.last_seq if path is not None else 0,
                clock=standing.clock(),
                leaving=self.leaving,
                changed=path.changed if path is not None else Timestamp(0),
                failed=path.reach(self._survivors()) if path is not None else (),
                record=standing.quorum.record.to_bytes(),
            )
        self._infos.setdefault(self._attempt, {})[consensus.me] = self._own_infos[self._attempt]
        self._repeats = 0
        self._repeat_at = now.mono
        self._check_infos(now)

    def _survivors(self) -> set[MemberId]:
        """Those of the proposed membership that come from this member's epoch."""
        own = self._standing.epoch
        return {process for process in self.consensus.members if self.consensus.epochs.get(process) == own}

    def _check_infos(self, now: Instant) -> None:
        infos = self._infos.get(self._attempt, {})
        if not infos.keys() >= self.consensus.members:
            return
        self._move(State.RECOVERY, "information complete")
        path = self._standing.path
        if path is not None and self._standing.epoch is not None:
            self._ending = ending_of(infos[process] for process in self._survivors())
            path.want(self._ending.targets, now)
        self._standing.observe(max(info.clock for info in infos.values()))
        self.check_recovered(now)

    def check_recovered(self, now: Instant) -> None:
        """Whether everything up to the cut is here; then say so."""
        path = self._standing.path
        if self.state is not State.RECOVERY or (self._ending is not None and path and not path.has_reached()):
            return
        consensus, standing = self.consensus, self._standing
        cut: Cut | None = None
        if self._ending is not None and path is not None and standing.epoch is not None:
            ending = self._ending
            changes, last = path.kept(ending.bound, ending.failed, ending.changed)
            cut = Cut(epoch=standing.epoch, changes=changes, last=last)
        infos = self._infos[self._attempt]
        if self._ending is not None and path is not None:
            path.learn(self._ending.promises, self._survivors())
        number = next_number(self._records())
        standing.quorum.attempting(self._attempt, number, standing.sites(self._next_peers()))
        standing.persist()
        first = infos[consensus.me].last_seq + 1
        ready = ReadyToCommit(member=consensus.me, attempt=self._attempt, first_seq=first, cut=cut)
        self._readies.setdefault(self._attempt, {})[consensus.me] = ready
        self._move(State.GATHER_READY if self.leader() == consensus.me else State.WAIT_FOR_CHANGE, "recovered")
        self._repeats = 0
        self._repeat_at = now.mono

    def said_ready_for(self, attempt: int) -> bool:
        """Whether this member is bound to install the view of an attempt when it learns of it (M12)."""
        return self.consensus.me in self._readies.get(attempt, {})

    def leader(self) -> MemberId:
        """The lowest id that stays; where nobody does, the lowest of all."""
        infos = self._infos.get(self._attempt, {})
        staying = [process for process in self.consensus.members if process in infos and not infos[process].leaving]
        return min(staying or self.consensus.members)

    def _records(self) -> list[QuorumRecord]:
        infos = self._infos[self._attempt].values()
        return [record for info in infos if (record := QuorumRecord.from_bytes(info.record)) is not None]

    def _next_peers(self) -> list[Peer]:
        infos = self._infos[self._attempt]
        staying = sorted(process for process in self.consensus.members if not infos[process].leaving)
        return [self.consensus.peers[process] for process in staying]

    def change(self, now: Instant) -> MembershipChange | None:
        """At the leader, once all are ready: the next view."""
        if self.state is not State.GATHER_READY:
            return None
        readies = self._readies.get(self._attempt, {})
        if not readies.keys() >= self.consensus.members:
            return None
        infos, standing = self._infos[self._attempt], self._standing
        peers = self._next_peers()
        entries = tuple(
            Entry(peer=peer, first_seq=readies[peer.id].first_seq, old=infos[peer.id].epoch) for peer in peers
        )
        cuts: dict[ViewId, Cut] = {}
        for process in sorted(self.consensus.members):
            if (cut := readies[process].cut) is not None:
                cuts.setdefault(cut.epoch, cut)
        standing.observe(max(info.clock for info in infos.values()))
        start = standing.stamp(now)
        self._move(State.WAIT_FOR_CHANGE, "all ready")
        return MembershipChange(
            member=self.consensus.me,
            attempt=self._attempt,
            view=ViewId(start, self.consensus.me, readies[self.consensus.me].first_seq),
            entries=entries,
            cuts=tuple(cuts.values()),
            left=tuple(sorted(process for process in self.consensus.members if infos[process].leaving)),
            blocked=tuple(sorted(self.blocked)),
            primary=standing.quorum.decide(self._records(), standing.sites(peers)),
            number=next_number(self._records()),
            again=False,
        )

    # Time

    def next_deadline(self) -> int:
        return self._repeat_at if self._cut_at is None else min(self._repeat_at, self._cut_at, self._look_at)

    def tick(self, now: Instant) -> None:
        if self.state is State.GATHER_CUT and self._cut_at is not None:
            self._look_for_more(now)
            if now.mono >= self._cut_at:
                self._say_info(now)
        if now.mono < self._repeat_at:
            return
        interval = self._standing.ns(self._config.repeat_ms) << min(self._repeats, self.MAX_DOUBLINGS)
        if self.state is State.CONSENSUS:
            self._say_join()
        else:
            self._say_phase()
        self._repeats += 1
        self._repeat_at = now.mono + interval
        self._check_consensus(now)

    def _say_join(self) -> None:
        self.serial += 1
        me, consensus = self._standing.me, self.consensus
        self._standing.say(
            Join(
                member=me.id,
                name=me.name,
                site=me.site,
                serial=self.serial,
                epoch=self._standing.epoch,
                procs=tuple(sorted(consensus.procs)),
                fails=tuple(sorted(consensus.fails)),
            )
        )

    def _say_phase(self) -> None:
        """The words of the present phase and of the one before, which somebody may still lack."""
        if self.state in (State.GATHER_CUT, State.GATHER_RECOVERY):
            self._say_join()
        if self.state is not State.GATHER_CUT and (info := self._own_infos.get(self._attempt)) is not None:
            self._standing.say(info)
        ready = self._readies.get(self._attempt, {}).get(self.consensus.me)
        if ready is not None and self.state in (State.GATHER_READY, State.WAIT_FOR_CHANGE):
            self._standing.say(ready)
