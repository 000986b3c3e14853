"""From one view to the next: installing a change, following one as a receiver (T5.5), or starting anew (M5)."""

from __future__ import annotations

from collections.abc import Mapping

from intergroup_core.ids import Instant, MemberId, ViewId
from intergroup_core.membership.bootstrap import Newcomer
from intergroup_core.membership.repairing import Repairing
from intergroup_core.membership.states import Foreign, State
from intergroup_core.wire.membership import Farewell, MembershipChange


class Following(Repairing):
    """Whatever ends an epoch ends here."""

    ALL_GONE_REPEATS = 8
    """Repetitions for which a receiver without live senders asks for a change before it starts anew."""

    def _heard_change(self, change: MembershipChange, now: Instant) -> None:
        standing = self.standing
        if standing.epoch is not None and change.view <= standing.epoch:
            self._counters.membership_ignored += 1
            return
        ends_mine = any(cut.epoch == standing.epoch for cut in change.cuts)
        if self.state is State.BOOTSTRAP:
            # Of one that goes on from others only a sponsor can tell what was stated in those.
            if not change.again and not change.cuts and change.view.start >= self._floor:
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
        elif ends_mine and any(entry.peer.id == standing.me.id for entry in change.entries):
            self._counters.drop("body")  # a sender of it for which this member never was ready
        elif self._following is not None:
            # Of an epoch that ended in two branches a receiver follows one. Going back and forth it would want now what
            # one and now what the other has, and never find that neither can be had.
            self._counters.membership_ignored += 1
        elif ends_mine:
            self._follow(change, now)

    def _excluded(self, change: MembershipChange, now: Instant) -> None:
        """The others went on without this sender: so does it, and then the two views meet."""
        if self._repair is None:
            self._start_repair("excluded", now)
        for entry in change.entries:
            if self._repair is not None and self._repair.failed(entry.peer.id, "excluded", now):
                self._restarted("excluded")
        self._after_repair_step(now)

    def _last_before(self, last: Mapping[MemberId, int]) -> dict[MemberId, int]:
        """Where each sender of the old view ends; a cut says nothing of one that is only added in it."""
        path, senders = self.standing.path, self.standing.senders
        if path is None:
            return {}
        return {member: last[member] if member in last else path.last_before(member) for member in senders}

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
            last=self._last_before(last) | {member: first - 1 for member, first in activations.items()},
            spoken_for=any(entry.old == old for entry in change.entries),
        )
        standing.quorum.installed(change.view, change.number, standing.sites(peers), primary=change.primary)
        if not change.primary:
            standing.quorum.abandoned(change.attempt)
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
            standing.path.begin_epoch(change.view.tag, start, activations, last, change.left, now)
        standing.path.come_from(cut.epoch.tag for cut in change.cuts)
        standing.path.hold_stability(start, now.mono + 2 * standing.ns(self._config.repeat_ms))
        standing.path.permitted = standing.quorum.may_send
        self._leave_sent = standing.path.closing = False
        self._hopes_since = None
        sender = mine in activations
        if not sender and mine in before:  # it went; one that has only asked to be a sender asks again
            self._wants_to_send = self._has_unsent() and self._leaving is None
        if sender and self._speaks_for_its_view(change, old):
            standing.path.restate(now)
        self._settled(State.SENDER if sender else State.RECEIVER, "installed", now)

    def _speaks_for_its_view(self, change: MembershipChange, old: ViewId | None) -> bool:
        """Whether others come from elsewhere, and this member is the first of those who come from its view.

        Receivers may come from nowhere into a view that goes on from none, and from one whose senders all went.
        """
        mine = self.standing.me.id
        if old is None:
            return True
        together = [entry.peer.id for entry in change.entries if entry.old == old]
        met = len(together) < len(change.entries) or any(cut.epoch != old for cut in change.cuts)
        return met and min(together) == mine

    def _strangers_left_out(self, change: MembershipChange, before: frozenset[MemberId]) -> list[MemberId]:
        """Those that this repair was meant to bring in and that said nothing: not again for a while (M9)."""
        if self._repair is None:
            return []
        known = before | self._repair.spoke | {entry.peer.id for entry in change.entries}
        return [process for process in self._repair.consensus.fails if process not in known]

    def _start_receiver_repair(self, now: Instant) -> None:
        """T5.5: deliver no further until the senders have agreed."""
        assert self.standing.path is not None
        self.standing.path.halt()
        self.standing.path.tell_reach(now)
        self._sponsor.forget_all()
        self._change_request_at = now.mono + 4 * self.standing.ns(self._config.repeat_ms)
        self._hopes_since = None
        self._enter(State.RECEIVER_WAIT, "join")

    def _follow(self, change: MembershipChange, now: Instant) -> None:
        standing = self.standing
        assert standing.path is not None
        last = next(dict(cut.last) for cut in change.cuts if cut.epoch == standing.epoch)
        if standing.path.has_passed(last) or standing.path.knows_more(last):
            self._take_gap("it had delivered what the others did not recover", now)
            return
        if standing.me.id in last and standing.me.id not in standing.path.departed:
            # Its own Add is before the cut and it cannot follow (see _install); nobody keeps for it what it misses.
            self._take_gap("the view went on without it", now)
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

    def _change_is_near(self, source: MemberId, now: Instant) -> bool:
        """Whether the senders are about to say what is needed of a source, and who has it; believed for a while."""
        detector = self.standing.detector
        missed = detector.suspects(source) and not detector.all_suspected
        if not missed and self.state is not State.RECEIVER_WAIT:
            return False
        if self._hopes_since is None:
            self._hopes_since = now.mono
        return now.mono - self._hopes_since < self.standing.ns(self._config.suspect_max_ms)

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
            if not standing.is_sender():
                # Nobody is to wait for an id that will say nothing more.
                standing.say(Farewell(member=standing.me.id))
        standing.me = self._reborn(reason, now)
        standing.path = None
        standing.view = None
        standing.epoch = None
        standing.roster = {}
        self._repair = None
        self._following = None
        self._hopes_since = None
        self._leave_sent = False
        self._serial = 0
        self._wants_to_send = self._wants_to_send or self._has_unsent()
        standing.watch((), now)
        self._newcomer = Newcomer(standing, now)
