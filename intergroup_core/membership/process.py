"""The process group membership protocol (T5.3): one machine per member, drawn in docs/protocol.md."""

from __future__ import annotations

from collections.abc import Collection

from intergroup_core.effects import Left
from intergroup_core.ids import Instant, MemberId, Timestamp, View
from intergroup_core.membership.bootstrap import Newcomer
from intergroup_core.membership.following import Following
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
    ReadyToCommit,
    RecoveryInfo,
    Solicitation,
    Sponsorship,
    ViewRequest,
)

Stimulus = MembershipMessage | Failed | Foreign | Unanswered | ToSender | ToReceiver | Changed


class Membership(Following):
    """Moves one member between the states of T5.3 and keeps its view.

    What may be late or repeated is ignored on purpose and counted; what cannot be is an assertion.
    """

    WILD = 2
    """From so many members on whose clocks cannot be believed, a member doubts its own."""
    MAX_SERIALS = 4_096
    """Members whose last serial is remembered; the oldest are forgotten."""

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

    def doubts(self, wild: Collection[MemberId], now: Instant) -> None:
        """Sources whose clocks cannot be believed: where they are most of several, this member's own is wrong (D4)."""
        if len(wild) >= self.WILD and 2 * len(wild) > len(self.standing.senders) - 1:
            self.leave("clock", now)

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

    def left_behind(self, now: Instant) -> None:
        """What this member misses is gone everywhere: others did not wait for it, and it need not wait either (M5)."""
        if self.state is State.RECEIVER:
            self._take_gap("the others dropped what it misses", now)

    def progressed(self, now: Instant) -> None:
        """Frames arrived: what a repair waits for may be here."""
        if self._repair is not None:
            if self._repair.state is State.RECOVERY:
                self._repair.check_recovered(now)
                self._check_change(now)
        elif self.state is State.RECEIVER_RECOVERY:
            self._check_following(now)

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
                if self._repair is not None and self._repair.failed(stimulus.process, "failure", now):
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
            case (State.RECEIVER | State.RECEIVER_WAIT, Unanswered()) if self._change_is_near(stimulus.process, now):
                pass
            case (State.RECEIVER | State.RECEIVER_WAIT | State.RECEIVER_RECOVERY, Unanswered()):
                self._take_gap("nobody could repair what is missing", now)
            case _:
                self._counters.membership_ignored += 1

    def next_deadline(self) -> int | None:
        state, standing = self.state, self.standing
        if state is State.LEFT:
            return None
        times = [standing.detector.next_deadline(), self._sponsor.next_deadline()]
        if self._newcomer is not None:
            times.append(self._newcomer.next_deadline())
            if self._wants_to_send:
                times.append(self._newcomer.started + standing.ns(self._config.bootstrap_wait_ms))
        if self._repair is not None:
            times.append(self._repair.next_deadline())
        if self._linger_until is not None:
            times.append(self._linger_until)
        if state is State.SENDER:
            if self._may_fall_silent():
                times.append(self._silent_since + standing.ns(self._config.silence_ms))
        elif state is State.TO_SENDER:
            times.append(self._ask_at)
        elif state in RECEIVER_REPAIR:
            times.append(self._change_request_at)
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
            self._after_repair_step(now)
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

    def _may_fall_silent(self) -> bool:
        """The last sender stays (M14); so does everybody where a quorum is asked for, whose votes others need (M11)."""
        standing = self.standing
        wanted = self.stays or self._has_unsent()
        return not (wanted or standing.is_last_sender() or standing.quorum.rule != "none")

    def _tick_silence(self, now: Instant) -> None:
        silent = now.mono - self._silent_since >= self.standing.ns(self._config.silence_ms)
        if silent and self._may_fall_silent():
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
