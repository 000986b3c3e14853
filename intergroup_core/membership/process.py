"""The process group membership protocol (T5.3): one machine per member, drawn in docs/protocol.md."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from random import Random

from intergroup_core.config import MembershipConfig
from intergroup_core.counters import Counters
from intergroup_core.effects import Effect, Left
from intergroup_core.ids import Instant, MemberId, Timestamp, View, ViewId
from intergroup_core.membership.blocks import BlockSet
from intergroup_core.membership.bootstrap import Newcomer, Sponsor
from intergroup_core.membership.detector import FaultDetector
from intergroup_core.membership.quorum import Quorum
from intergroup_core.membership.repair import Repair
from intergroup_core.membership.standing import Standing
from intergroup_core.membership.states import (
    RECEIVER_REPAIR,
    REPAIR,
    Changed,
    Failed,
    Foreign,
    State,
    ToReceiver,
    ToSender,
    Unanswered,
)
from intergroup_core.membership.stream import Stream
from intergroup_core.timers import earliest
from intergroup_core.wire.membership import (
    Add,
    AddRequest,
    FailureBlock,
    Farewell,
    Join,
    Leave,
    MembershipChange,
    MembershipMessage,
    Peer,
    ReadyToCommit,
    RecoveryInfo,
    Solicitation,
    Sponsorship,
    ViewRequest,
)

Stimulus = MembershipMessage | Failed | Foreign | Unanswered | ToSender | ToReceiver | Changed

Begin = Callable[[Mapping[MemberId, int], Mapping[MemberId, int], int, ViewId, frozenset[MemberId], Instant], Stream]
"""Makes the way of data: activations, promises, position, epoch, who is counted."""


class Membership:
    """Moves one member between the states of T5.3 and keeps its view.

    What may be late or repeated is ignored on purpose and counted; what cannot be is an assertion.
    """

    MAX_SERIALS = 4_096
    """Members whose last serial is remembered; the oldest are forgotten."""
    ALL_GONE_REPEATS = 8
    """Repetitions for which a receiver without live senders asks for a change before it starts anew."""

    def __init__(
        self,
        *,
        me: Peer,
        config: MembershipConfig,
        clock_bound_ns: int,
        quorum: Quorum,
        counters: Counters,
        rng: Random,
        say: Callable[[MembershipMessage], None],
        emit: Callable[[Effect], None],
        clock: Callable[[], Timestamp],
        observe: Callable[[int], None],
        stamp: Callable[[Instant], Timestamp],
        begin: Begin,
        reborn: Callable[[str, Instant], Peer],
        has_unsent: Callable[[], bool],
    ) -> None:
        self.standing = Standing(
            me=me,
            config=config,
            counters=counters,
            rng=rng,
            quorum=quorum,
            detector=FaultDetector(config),
            blocks=BlockSet(config),
            say=say,
            emit=emit,
            clock=clock,
            observe=observe,
            stamp=stamp,
        )
        self._config = config
        self._counters = counters
        self._begin = begin
        self._reborn = reborn
        self._has_unsent = has_unsent
        self._sponsor = Sponsor(self.standing, clock_bound_ns)
        self._newcomer: Newcomer | None = None
        self._repair: Repair | None = None
        self._following: MembershipChange | None = None
        self._wants_to_send = False
        self._leaving: str | None = None
        """Why this member goes for good, once it does."""
        self._leave_sent = False
        self._linger_until: int | None = None
        self._serials: dict[MemberId, int] = {}
        self._serial = 0
        self._asked: dict[MemberId, int] = {}
        self._ask_attempt = 0
        self._ask_at = 0
        self._foreign_since: int | None = None
        self._change_request_at = 0
        self._help_at = 0
        self._silent_since = 0
        self._finishing = False
        self._floor = 0
        """What an earlier incarnation delivered last: this one begins above it."""
        self.state = State.BOOTSTRAP

    # Stimuli

    def start(self, *, sender: bool, now: Instant) -> None:
        self._wants_to_send = sender
        self._newcomer = Newcomer(self.standing, now)
        self.tick(now)

    def want_to_send(self, now: Instant) -> None:
        self._silent_since = now.mono
        if not self._wants_to_send:
            self._wants_to_send = True
            self._handle(ToSender(), now)

    def leave(self, reason: str, now: Instant) -> None:
        """Go for good, once what was accepted has been sent."""
        if self._leaving is None:
            self._leaving = reason
            self.tick(now)

    def heard(self, source: MemberId, now: Instant) -> None:
        """A sound frame of this epoch. In a repair it proves nothing: one that takes no part may not hear of it."""
        if self._repair is None:
            self.standing.detector.heard(source, now.mono)

    def stranger(self, source: MemberId, tag: int, timestamp: int, now: Instant) -> bool:
        """A frame of another epoch, or of a source not known in this one; whether it may be wanted later (M0, M10)."""
        standing = self.standing
        if standing.epoch is None:
            if self._newcomer is not None:
                self._newcomer.hurry(now)
            return False
        if tag == standing.epoch.tag:
            return True  # a new sender whose Add is still on its way
        if standing.history.knows(tag) or timestamp <= standing.epoch.start:
            self._counters.drop("view")
            return False
        self._handle(Foreign(source, tag), now)
        return True

    def stood_still(self, now: Instant) -> bool:
        """Whether this member itself was paused until now."""
        return self.standing.detector.stood_still(now.mono)

    def receive(self, message: MembershipMessage, now: Instant) -> None:
        if message.member == self.standing.me.id or self.state is State.LEFT:
            return
        if isinstance(message, (Join, RecoveryInfo, ReadyToCommit, MembershipChange)):
            self.standing.detector.heard(message.member, now.mono)
            self.standing.blocks.spoke(message.member)
            if self._repair is not None:
                self._repair.spoke.add(message.member)
        if isinstance(message, (Join, FailureBlock)):
            if message.serial <= self._serials.get(message.member, 0):
                self._counters.membership_ignored += 1
                return
            self._serials.pop(message.member, None)
            self._serials[message.member] = message.serial
            if len(self._serials) > self.MAX_SERIALS:
                self._serials.pop(next(iter(self._serials)))
        self._handle(message, now)

    def changed(self, change: Add | Leave, source: MemberId, seq: int, timestamp: Timestamp, now: Instant) -> None:
        """An ordered membership message took its place in the stream."""
        self._handle(Changed(change, source, seq, timestamp), now)

    def unanswered(self, process: MemberId, seq: int, now: Instant) -> None:
        """Nobody repaired a frame or, with seq 0, a promise, of which nothing is missing while the source is heard."""
        if seq or self.standing.detector.suspects(process):
            self._handle(Unanswered(process, seq), now)

    def progressed(self, now: Instant) -> None:
        """Frames arrived: what a repair waits for may be here."""
        if self._repair is not None:
            if self._repair.state is State.RECOVERY:
                self._repair.check_recovered(now)
                self._enter(self._repair.state, "recovered")
                self._check_change(now)
        elif self.state is State.RECEIVER_RECOVERY:
            self._check_following(now)

    # The machine

    def _handle(self, stimulus: Stimulus, now: Instant) -> None:
        standing = self.standing
        match self.state, stimulus:
            # Anybody, anywhere
            case (_, Changed()):
                self._apply(stimulus, now)
            case (_, ViewRequest()):
                self._answer_request(stimulus)
            case (_, MembershipChange()):
                self._heard_change(stimulus, now)
            # Looking for the group
            case (State.BOOTSTRAP, Sponsorship()) if stimulus.newcomer == standing.me.id:
                self._sponsored(stimulus, now)
            case (State.BOOTSTRAP, Solicitation()):
                if self._newcomer is not None:
                    self._newcomer.overheard(stimulus, now)
            case (State.BOOTSTRAP, Join()) if self._wants_to_send and standing.me.id in stimulus.procs:
                self._newcomer = None
                self._start_repair("fellow newcomer", now, join=stimulus)
            # Answering those who look
            case (State.SENDER | State.RECEIVER | State.TO_SENDER, Solicitation()):
                self._sponsor.called(stimulus, now)
            case (_, Sponsorship()):
                self._sponsor.answered(stimulus)
            case (State.SENDER, AddRequest()):
                self._add(stimulus, now)
            # Joining and leaving the sender group
            case (State.RECEIVER, ToSender()):
                self._to_sender(now)
            case (State.SENDER, ToReceiver()):
                self._to_receiver(stimulus.reason, now)
            # Repair, for those who send or want to
            case (State.SENDER | State.TO_SENDER | State.TO_RECEIVER, Join()):
                self._join_heard(stimulus, now)
            case (State.SENDER | State.TO_SENDER | State.TO_RECEIVER, Failed()):
                self._start_repair("failure", now, failed=stimulus.process)
            case (State.SENDER | State.TO_SENDER, Foreign()):
                self._foreign(stimulus, now)
            case (State.SENDER | State.TO_SENDER | State.TO_RECEIVER, Unanswered()) if stimulus.seq:
                self._accuse(stimulus, now)
            case (State.SENDER | State.TO_SENDER | State.TO_RECEIVER, FailureBlock()):
                if stimulus.epoch == standing.epoch and stimulus.member in standing.roster:
                    self._start_repair("block", now)
                    self._block(stimulus, now)
            case (State.SENDER | State.TO_SENDER | State.TO_RECEIVER, RecoveryInfo() | ReadyToCommit()):
                self._help(standing.history.of_attempt(stimulus.attempt, standing.me.id), now)
            # Inside the repair
            case (state, Join()) if state in REPAIR:
                self._join_in_repair(stimulus, now)
            case (state, Failed()) if state in REPAIR:
                if self._repair is not None and self._repair.failed(stimulus.process, now):
                    self._restarted("failure")
            case (state, Foreign()) if state in REPAIR:
                self._foreign_in_repair(stimulus, now)
            case (state, FailureBlock()) if state in REPAIR:
                if stimulus.epoch == standing.epoch:
                    self._block(stimulus, now)
            case (state, Unanswered()) if state in REPAIR:
                self._unrecoverable(stimulus, now)
            case (state, RecoveryInfo()) if state in REPAIR:
                assert self._repair is not None
                self._repair.heard_info(stimulus, now)
                self._enter(self._repair.state, "information complete")
                self._check_change(now)
            case (state, ReadyToCommit()) if state in REPAIR:
                assert self._repair is not None
                self._repair.heard_ready(stimulus, now)
                self._check_change(now)
            # Repair, for those who only receive
            case (State.RECEIVER, Join()):
                if stimulus.epoch == standing.epoch and stimulus.member in standing.roster:
                    self._start_receiver_repair(now)
            case (State.RECEIVER | State.RECEIVER_WAIT | State.RECEIVER_RECOVERY, Foreign()):
                self._foreign_at_receiver(stimulus, now)
            case (State.RECEIVER | State.RECEIVER_WAIT | State.RECEIVER_RECOVERY, Unanswered()):
                self._take_gap("nobody could repair what is missing", now)
            case _:
                self._counters.membership_ignored += 1

    def _enter(self, state: State, reason: str) -> None:
        if state is not self.state:
            key = f"{self.state.value}>{state.value}: {reason}"
            self._counters.transitions[key] = self._counters.transitions.get(key, 0) + 1
            self.state = state

    # Bootstrap

    def _sponsored(self, answer: Sponsorship, now: Instant) -> None:
        if answer.refusal:
            self._enter(State.LEFT, f"refused: {answer.refusal}")
            self.standing.emit(Left(answer.refusal))
            return
        standing = self.standing
        activations, promises = dict(answer.activations), dict(answer.promises)
        if activations.keys() != promises.keys():
            self._counters.drop("body")
            return
        if max(answer.position, answer.acknowledged) < self._floor:
            self._counters.membership_ignored += 1  # it would begin below what was delivered before (M5)
            return
        standing.epoch = answer.epoch
        standing.history.entered(answer.epoch, None)
        standing.observe(answer.position)
        members = frozenset(peer.id for peer in answer.peers)
        standing.path = self._begin(activations, promises, answer.position, answer.epoch, members, now)
        standing.roster = {}
        standing.install(answer.view, answer.peers, transitional=(), reasons={})
        self._learn_quorum(answer.view, answer.peers, primary=answer.primary)
        standing.path.enter_view(members, now)
        self._settled(State.RECEIVER, "sponsored", now)

    def _learn_quorum(self, view: ViewId, peers: Collection[Peer], *, primary: bool) -> None:
        """A view this member came into without a repair of its own."""
        standing = self.standing
        standing.quorum.installed(view, standing.sites(peers), primary=primary, attempt=None)
        assert standing.path is not None
        standing.path.permitted = standing.quorum.may_send

    def _start_afresh(self, change: MembershipChange, now: Instant) -> None:
        """A receiver that was still looking sees a view begin: that is as good as a sponsor."""
        standing = self.standing
        activations = {entry.peer.id: entry.first_seq for entry in change.entries}
        standing.epoch = change.view
        standing.history.entered(change.view, change)
        promises = dict.fromkeys(activations, int(change.view.start))
        counted = frozenset(activations)
        standing.path = self._begin(activations, promises, change.view.start, change.view, counted, now)
        standing.roster = {}
        peers = [entry.peer for entry in change.entries]
        standing.install(change.view, peers, transitional=(), reasons={})
        self._learn_quorum(change.view, peers, primary=change.primary)
        standing.path.enter_view(counted, now)
        self._settled(State.RECEIVER, "first view", now)

    def _settled(self, state: State, reason: str, now: Instant) -> None:
        """In one of the stable states: watch the senders, and go on to where this member wants to be."""
        self._newcomer = None
        self._repair = None
        self._following = None
        self._foreign_since = None
        self._silent_since = now.mono
        self.standing.watch(self.standing.senders, now)
        self._enter(state, reason)
        if state is State.RECEIVER and self._wants_to_send and self._leaving is None:
            self._to_sender(now)

    # Voluntary changes

    def _to_sender(self, now: Instant) -> None:
        if not self.standing.senders:
            self._start_repair("no senders", now)
            return
        self._enter(State.TO_SENDER, "has data")
        self._ask_at = now.mono
        self._ask_attempt = self.standing.rng.randrange(1_000)
        self._ask(now)

    def _ask(self, now: Instant) -> None:
        """Ask the next sender to add this member; one that does not answer is passed over."""
        standing = self.standing
        sponsor = standing.sponsor(self._ask_attempt)
        if sponsor is None or now.mono < self._ask_at or standing.path is None or standing.epoch is None:
            return
        self._ask_attempt += 1
        self._ask_at = now.mono + standing.ns(self._config.sponsor_ms)
        me = standing.me
        standing.say(
            AddRequest(
                member=me.id,
                name=me.name,
                site=me.site,
                sponsor=sponsor,
                epoch=standing.epoch,
                first_seq=standing.path.last_seq + 1,
                clock=standing.clock(),
            )
        )

    def _add(self, request: AddRequest, now: Instant) -> None:
        standing = self.standing
        if request.sponsor != standing.me.id or request.epoch != standing.epoch or request.member in standing.roster:
            return
        if now.mono < self._asked.get(request.member, 0):
            return  # its Add is on its way
        self._asked = {member: until for member, until in self._asked.items() if now.mono < until}
        self._asked[request.member] = now.mono + standing.ns(self._config.sponsor_ms)
        assert standing.path is not None
        if not standing.quorum.primary:
            # Only a repair weighs records: together the two may be what the quorum lacks (M11).
            self._start_repair("no quorum", now, fellows=(request.member,))
            return
        peer = Peer(request.member, request.name, request.site)
        standing.path.emit_change(Add(peer=peer, first_seq=request.first_seq), now)

    def _to_receiver(self, reason: str, now: Instant) -> None:
        assert self.standing.path is not None
        self._leave_sent = True
        self._enter(State.TO_RECEIVER, reason)
        self.standing.path.emit_change(Leave(reason=reason), now)

    def _apply(self, changed: Changed, now: Instant) -> None:
        """An ordered message makes the next view at its own place (M13)."""
        standing = self.standing
        assert standing.path is not None
        assert standing.view is not None
        view = ViewId(changed.timestamp, changed.source, changed.seq)
        match changed.change:
            case Add(peer=peer):
                if peer.id in standing.roster:
                    return
                peers, reasons = [*standing.roster.values(), peer], {}
            case Leave(reason=reason):
                if changed.source not in standing.roster:
                    return
                if reason == "silence" and len(standing.roster) == 1:
                    self._stays(changed.source, now)
                    return
                standing.path.source_left(changed.source, changed.timestamp, changed.seq)
                peers = [peer for peer in standing.roster.values() if peer.id != changed.source]
                reasons = {changed.source: reason}
        transitional = [peer.id for peer in peers if peer.id in standing.roster]
        standing.install(view, peers, transitional=transitional, reasons=reasons)
        if standing.quorum.primary:
            standing.quorum.installed(view, standing.sites(peers), primary=True, attempt=None)
            if standing.is_sender():
                standing.persist()
        if not self._finishing:
            self._follow_view(changed, now)

    def _follow_view(self, changed: Changed, now: Instant) -> None:
        standing = self.standing
        assert standing.path is not None
        mine = standing.me.id
        if isinstance(changed.change, Add) and changed.change.peer.id == mine:
            standing.path.start_sending(changed.change.first_seq)
            standing.path.enter_view(standing.senders, now)
            self._leave_sent = False
            self._settled(State.SENDER, "added", now)
            return
        standing.path.enter_view(standing.senders, now)
        standing.watch(standing.senders, now)
        if changed.source == mine and isinstance(changed.change, Leave):
            self._leave_sent = False
            self._wants_to_send = self._has_unsent()
            self._settled(State.RECEIVER, changed.change.reason, now)
        elif self.state is State.TO_SENDER and not standing.senders:
            self._start_repair("no senders", now)

    def _stays(self, source: MemberId, now: Instant) -> None:
        """The last sender does not leave for silence, whatever it thought when it said so (M14)."""
        if source == self.standing.me.id:
            self._leave_sent = False
            if not self._finishing:
                assert self.standing.path is not None
                self.standing.path.enter_view(self.standing.senders, now)
                self._settled(State.SENDER, "last sender", now)

    # Repair

    def _join_heard(self, join: Join, now: Instant) -> None:
        """A Join outside of a repair: of this view, of one that is behind, or of another component."""
        standing = self.standing
        if join.member in standing.blocks or self._helped_behind(join, now):
            self._counters.membership_ignored += 1
        elif join.epoch != standing.epoch and standing.me.id in join.fails:
            self._counters.membership_ignored += 1  # it goes on without this member first; then the two views meet
        else:
            self._start_repair("join" if join.epoch == standing.epoch else "foreign", now, join=join)

    def _helped_behind(self, join: Join, now: Instant) -> bool:
        """One that is still where this member has been needs the change that came after, whether it is in it or not."""
        standing = self.standing
        if join.epoch == standing.epoch or standing.epoch is None:
            return False
        if join.epoch is None:
            if join.member not in standing.roster:
                return False
            change = standing.history.following(None, standing.epoch.tag, standing.me.id)
        else:
            if not standing.history.has(join.epoch):
                return False
            change = standing.history.ending(join.epoch, standing.me.id)
        self._help(change, now)
        return change is not None

    def _help(self, change: MembershipChange | None, now: Instant) -> None:
        """A member of this very view has not learned of it (M12)."""
        if change is not None and now.mono >= self._help_at:
            self._help_at = now.mono + self.standing.ns(self._config.repeat_ms) // 2
            self.standing.say(change)

    def _foreign(self, foreign: Foreign, now: Instant) -> None:
        if self.standing.blocks.shuns(foreign.process):
            return
        self._start_repair("foreign", now)
        if self._repair is not None:
            self._repair.foreign(foreign.process, now)

    def _start_repair(
        self,
        reason: str,
        now: Instant,
        *,
        failed: MemberId | None = None,
        join: Join | None = None,
        fellows: Iterable[MemberId] = (),
    ) -> None:
        standing = self.standing
        if standing.path is not None:
            standing.path.halt()
        self._sponsor.forget_all()
        leaving = self._leave_sent and self._leave_is_final()
        procs = {*standing.senders, *fellows}
        self._repair = Repair(standing, procs, leaving=leaving, serial=self._serial, now=now)
        self._counters.repairs_of_membership += 1
        standing.watch(self._repair.consensus.members, now)
        self._enter(State.CONSENSUS, reason)
        if failed is not None:
            self._repair.consensus.fail(failed)
        if join is not None:
            self._repair.heard_join(join, now)
        self._shut_out(now)
        self._after_repair_step(now, "agreed")

    def _leave_is_final(self) -> bool:
        """A Leave that is under way takes effect inside the epoch, except the last sender's for silence."""
        return not self.standing.is_last_sender() or self._leaving is not None

    def _join_in_repair(self, join: Join, now: Instant) -> None:
        assert self._repair is not None
        standing = self.standing
        if join.member in standing.blocks or self._helped_behind(join, now):
            self._counters.membership_ignored += 1
            return
        if join.epoch is not None and join.epoch != standing.epoch and not standing.history.has(join.epoch):
            self._ask_for_change(join.epoch.tag, now)
        reason = self._repair.heard_join(join, now)
        if reason is not None:
            self._restarted(reason)
        self._shut_out(now)
        self._after_repair_step(now, "agreed")

    def _shut_out(self, now: Instant) -> None:
        """Whoever is blocked counts as failed, whatever others think of it: nobody waits for one that is not heard."""
        assert self._repair is not None
        for process in sorted(self._repair.consensus.members):
            if process in self.standing.blocks and self._repair.failed(process, now):
                self._restarted("block")

    def _foreign_in_repair(self, foreign: Foreign, now: Instant) -> None:
        assert self._repair is not None
        self._ask_for_change(foreign.tag, now)
        if not self.standing.blocks.shuns(foreign.process):
            self._repair.foreign(foreign.process, now)

    def _after_repair_step(self, now: Instant, reason: str) -> None:
        if self._repair is not None:
            self._serial = self._repair.serial
            self.standing.watch(self._repair.consensus.members, now)
            self._enter(self._repair.state, reason)
            self._check_change(now)

    def _restarted(self, reason: str) -> None:
        assert self._repair is not None
        key = f"{self.state.value}: {reason}"
        self._counters.restarts[key] = self._counters.restarts.get(key, 0) + 1
        self._enter(self._repair.state, reason)

    def _accuse(self, unanswered: Unanswered, now: Instant) -> None:
        """PFailBlock: a frame that exists cannot be had (T5.2.2)."""
        self._say_block(unanswered)
        self._start_repair("blocked", now)
        self._blame(unanswered.process, now)

    def _say_block(self, unanswered: Unanswered) -> None:
        standing = self.standing
        if standing.epoch is None:
            return
        self._serial += 1
        if self._repair is not None:
            self._repair.serial = self._serial
        standing.say(
            FailureBlock(
                member=standing.me.id,
                serial=self._serial,
                epoch=standing.epoch,
                process=unanswered.process,
                seq=unanswered.seq,
            )
        )

    def _unrecoverable(self, unanswered: Unanswered, now: Instant) -> None:
        """Something below the cut cannot be had though somebody has it: this member is the one that must go."""
        if self.state is State.RECOVERY:
            self._say_block(unanswered)
            self._take_gap("what ends the view could not be recovered", now)

    def _block(self, accusation: FailureBlock, now: Instant) -> None:
        """Whoever has the frame blames the accuser, who cannot get it from anybody; else the accused."""
        path = self.standing.path
        has_it = path is not None and path.has(accusation.process, accusation.seq)
        self._blame(accusation.member if has_it else accusation.process, now)

    def _blame(self, process: MemberId, now: Instant) -> None:
        if process == self.standing.me.id:
            return
        self.standing.blocks.blame(process, now.mono)
        if self._repair is not None:
            self._repair.blocked.add(process)
            if process in self._repair.consensus.procs and self._repair.failed(process, now):
                self._restarted("block")
            self._after_repair_step(now, "agreed")

    def _check_change(self, now: Instant) -> None:
        if self._repair is not None and (change := self._repair.change(now)) is not None:
            self.standing.say(change)
            self._enter(State.WAIT_FOR_CHANGE, "all ready")
            self._heard_change(change, now)

    def _ask_for_change(self, tag: int, now: Instant) -> None:
        """The change that ended this member's epoch, or began a view it does not know (M0, M12)."""
        if now.mono >= self._change_request_at:
            self._change_request_at = now.mono + self.standing.ns(self._config.repeat_ms)
            standing = self.standing
            standing.say(ViewRequest(member=standing.me.id, epoch=standing.epoch, tag=tag))

    def _answer_request(self, request: ViewRequest) -> None:
        """One sender does, and now and then another in case that one cannot; receivers where no sender is left."""
        standing = self.standing
        if not standing.is_sender() and standing.senders:
            return
        change = standing.history.following(request.epoch, request.tag, standing.me.id)
        first = standing.senders[:1] == (standing.me.id,)
        if change is not None and (first or standing.rng.random() * max(2, len(standing.senders)) < 1):
            standing.say(change)

    # The next view

    def _heard_change(self, change: MembershipChange, now: Instant) -> None:
        standing = self.standing
        if standing.epoch is not None and change.view <= standing.epoch:
            self._counters.membership_ignored += 1
            return
        ends_mine = any(cut.epoch == standing.epoch for cut in change.cuts)
        if self.state is State.BOOTSTRAP:
            if not change.again:
                self._start_afresh(change, now)
            elif self._newcomer is not None:
                self._newcomer.hurry(now)
        elif self._repair is not None and self._repair.said_ready_for(change.attempt):
            if ends_mine or standing.epoch is None:
                self._install(change, now)
            else:
                self._counters.drop("body")
        elif ends_mine and standing.is_sender():
            self._excluded(change, now)
        elif ends_mine:
            self._follow(change, now)

    def _excluded(self, change: MembershipChange, now: Instant) -> None:
        """The others went on without this sender: so does it, and then the two views meet."""
        if self._repair is None:
            self._start_repair("excluded", now)
        for entry in change.entries:
            if self._repair is not None and self._repair.failed(entry.peer.id, now):
                self._restarted("excluded")
        self._after_repair_step(now, "agreed")

    def _install(self, change: MembershipChange, now: Instant) -> None:
        """Deliver and Install (T5.4.2): the rest of the old view, then the new one."""
        standing = self.standing
        old = standing.epoch
        mine = standing.me.id
        last: dict[MemberId, int] = {}
        if standing.path is not None and old is not None:
            cut = next(cut for cut in change.cuts if cut.epoch == old)
            last = dict(cut.last)
            self._finishing = True
            standing.path.finish(last, cut.changes, now)
            self._finishing = False
        before = frozenset(standing.senders)
        if self._repair is None and mine in before:
            # It became a sender inside the cut, and the others had gone on without it by then.
            self._take_gap("the view went on without it", now)
            return
        shunned = self._strangers_left_out(change, before)
        activations = {entry.peer.id: entry.first_seq for entry in change.entries}
        standing.epoch = change.view
        standing.history.entered(change.view, change)
        standing.observe(change.view.start)
        peers = [entry.peer for entry in change.entries]
        standing.install(
            change.view,
            peers,
            transitional=[entry.peer.id for entry in change.entries if entry.old == old and entry.peer.id in before],
            reasons=dict.fromkeys(change.blocked, "blocked") | dict.fromkeys(change.left, "left"),
            branches=[str(cut.epoch) for cut in change.cuts if cut.epoch != old],
        )
        primary = change.primary
        standing.quorum.installed(change.view, standing.sites(peers), primary=primary, attempt=change.attempt)
        if standing.is_sender():
            standing.persist()
        for process in shunned:
            standing.blocks.shun(process, now.mono)
        for peer in peers:
            standing.blocks.forgive(peer.id)
        start = change.view.start
        if standing.path is None:
            promises = dict.fromkeys(activations, int(start))
            counted = frozenset(activations)
            standing.path = self._begin(activations, promises, start, change.view, counted, now)
            standing.path.enter_view(activations, now)
        else:
            standing.path.begin_epoch(change.view.tag, start, activations, last, now)
        standing.path.hold_stability(start, now.mono + 2 * standing.ns(self._config.repeat_ms))
        standing.path.permitted = standing.quorum.may_send
        self._leave_sent = False
        sender = mine in activations
        if not sender:
            self._wants_to_send = self._has_unsent() and self._leaving is None
        self._settled(State.SENDER if sender else State.RECEIVER, "installed", now)

    def _strangers_left_out(self, change: MembershipChange, before: frozenset[MemberId]) -> list[MemberId]:
        """Those that this repair was meant to bring in and that said nothing: not again for a while (M9)."""
        if self._repair is None:
            return []
        known = before | self._repair.spoke | {entry.peer.id for entry in change.entries}
        return [process for process in self._repair.consensus.fails if process not in known]

    # The receivers' repair

    def _start_receiver_repair(self, now: Instant) -> None:
        """T5.5: deliver no further until the senders have agreed."""
        assert self.standing.path is not None
        self.standing.path.halt()
        self._sponsor.forget_all()
        self._change_request_at = now.mono + 4 * self.standing.ns(self._config.repeat_ms)
        self._enter(State.RECEIVER_WAIT, "join")

    def _follow(self, change: MembershipChange, now: Instant) -> None:
        standing = self.standing
        assert standing.path is not None
        last = next(dict(cut.last) for cut in change.cuts if cut.epoch == standing.epoch)
        if standing.path.has_passed(last):
            self._take_gap("it had delivered what the others did not recover", now)
            return
        standing.path.halt()
        self._repair = None
        self._following = change
        self._enter(State.RECEIVER_RECOVERY, "change")
        standing.path.want(last, now)
        self._check_following(now)

    def _check_following(self, now: Instant) -> None:
        if self._following is not None and self.standing.path is not None and self.standing.path.has_reached():
            self._install(self._following, now)

    def _foreign_at_receiver(self, foreign: Foreign, now: Instant) -> None:
        """Another view is about: perhaps it follows this one; if nobody says so and all senders are gone, go anew."""
        if self._foreign_since is None:
            self._foreign_since = now.mono
        self._ask_for_change(foreign.tag, now)
        patience = self.ALL_GONE_REPEATS * self.standing.ns(self._config.repeat_ms)
        if now.mono - self._foreign_since > patience and self.standing.detector.all_suspected:
            self._take_gap("all senders of the view are gone", now)

    def _take_gap(self, reason: str, now: Instant) -> None:
        """Start anew as another incarnation, above what was delivered (M5)."""
        standing = self.standing
        self._enter(State.BOOTSTRAP, reason)
        self._sponsor.forget_all()
        self._counters.gaps += 1
        if standing.path is not None:
            self._floor = max(self._floor, standing.path.position)
        standing.me = self._reborn(reason, now)
        standing.path = None
        standing.view = None
        standing.epoch = None
        standing.roster = {}
        self._repair = None
        self._following = None
        self._leave_sent = False
        self._serial = 0
        self._wants_to_send = self._wants_to_send or self._has_unsent()
        standing.watch((), now)
        self._newcomer = Newcomer(standing, now)

    # Time

    def next_deadline(self) -> int | None:
        if self.state is State.LEFT:
            return None
        times = [self.standing.detector.next_deadline(), self._sponsor.next_deadline()]
        if self._newcomer is not None:
            times.append(self._newcomer.next_deadline())
            if self._wants_to_send:
                times.append(self._newcomer.started + self.standing.ns(self._config.bootstrap_wait_ms))
        if self._repair is not None:
            times.append(self._repair.next_deadline())
        if self.state is State.TO_SENDER:
            times.append(self._ask_at)
        if self.state in RECEIVER_REPAIR:
            times.append(self._change_request_at)
        if self._linger_until is not None:
            times.append(self._linger_until)
        if self.state is State.SENDER and not self.standing.is_last_sender() and not self._has_unsent():
            times.append(self._silent_since + self.standing.ns(self._config.silence_ms))
        return earliest(*times)

    def tick(self, now: Instant) -> None:
        if self.state is State.LEFT:
            return
        for process in self.standing.detector.tick(now.mono):
            self._handle(Failed(process), now)
        self._sponsor.tick(now)
        match self.state:
            case State.BOOTSTRAP:
                self._tick_bootstrap(now)
            case State.TO_SENDER:
                self._ask(now)
            case State.RECEIVER_WAIT | State.RECEIVER_RECOVERY:
                self._ask_for_change(0, now)
            case State.SENDER:
                self._tick_silence(now)
        if self._repair is not None:
            self._repair.tick(now)
            self._after_repair_step(now, "time")
        else:
            self.standing.blocks.expire(now.mono)
        self.go_on_leaving(now)

    def go_on_leaving(self, now: Instant) -> None:
        """Take the next step out, where this member wants to go."""
        if self._leaving is not None and self.state is not State.LEFT:
            self._go(self._leaving, now)

    def _tick_bootstrap(self, now: Instant) -> None:
        assert self._newcomer is not None
        waited = now.mono - self._newcomer.started
        if self._wants_to_send and waited >= self.standing.ns(self._config.bootstrap_wait_ms):
            fellows = self._newcomer.fellows(now)
            self._newcomer = None
            self._start_repair("nobody there", now, fellows=fellows)
            return
        self._newcomer.tick(now, sends=self._wants_to_send)

    def sent_data(self, at: int) -> None:
        """Data left this sender: it is not silent."""
        if at > self._silent_since:
            self._silent_since = at

    def _tick_silence(self, now: Instant) -> None:
        silent = now.mono - self._silent_since >= self.standing.ns(self._config.silence_ms)
        if silent and not self._has_unsent() and not self.standing.is_last_sender():
            self._wants_to_send = False
            self._handle(ToReceiver("silence"), now)

    def _go(self, reason: str, now: Instant) -> None:
        """Leave for good, step by step, as the state allows."""
        standing = self.standing
        match self.state:
            case State.SENDER if not self._has_unsent():
                self._handle(ToReceiver(reason), now)
            case State.BOOTSTRAP if not self._has_unsent():
                self._gone(reason)
            case State.RECEIVER | State.RECEIVER_WAIT | State.RECEIVER_RECOVERY | State.TO_SENDER:
                if self._has_unsent() and self.state is not State.RECEIVER_RECOVERY:
                    if self.state is State.RECEIVER:
                        self._wants_to_send = True
                        self._to_sender(now)
                    return
                if self._linger_until is None:
                    self._linger_until = now.mono + standing.ns(self._config.linger_ms)
                drained = standing.path is None or standing.path.drained
                if drained or now.mono >= self._linger_until:
                    self._gone(reason)

    def _gone(self, reason: str) -> None:
        if self.standing.path is not None:
            self.standing.say(Farewell(member=self.standing.me.id))
        self._enter(State.LEFT, reason)
        self._linger_until = None
        self.standing.emit(Left(reason))

    @property
    def view(self) -> View | None:
        return self.standing.view

    @property
    def is_leaving(self) -> bool:
        return self._leaving is not None
