"""Coming into the group, and joining and leaving its senders, by ordered messages (T5.3.1, M13)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from intergroup_core.effects import Left
from intergroup_core.ids import Instant, MemberId, Timestamp, ViewId
from intergroup_core.membership.course import Course
from intergroup_core.membership.states import Changed, State
from intergroup_core.wire.membership import Add, AddRequest, Change, Leave, MembershipChange, Peer, Sponsorship


class Voluntary(Course):
    """Nothing here needs agreement: one sponsor, one message."""

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
        members = frozenset(peer.id for peer in answer.peers)
        standing.observe(answer.position)
        standing.history.entered(answer.epoch, None)
        standing.epoch = answer.epoch
        standing.path = self._begin(activations, promises, answer.position, answer.epoch, members, now)
        standing.path.departed.update(answer.departed)
        standing.path.learn_stated(answer.ledger, max(answer.position, answer.acknowledged))
        standing.quorum.installed(answer.view, answer.number, standing.sites(answer.peers), primary=answer.primary)
        self._enter_first_view(answer.view, answer.peers, "sponsored", now)

    def _enter_first_view(
        self,
        view: ViewId,
        peers: Collection[Peer],
        reason: str,
        now: Instant,
        last: Mapping[MemberId, int] | None = None,
    ) -> None:
        """A view this member came into without a repair of its own."""
        standing = self.standing
        assert standing.path is not None
        standing.roster = {}
        standing.install(view, peers, transitional=(), reasons={}, last=last)
        standing.path.permitted = standing.quorum.may_send
        standing.path.enter_view(standing.senders, now)
        self._settled(State.RECEIVER, reason, now)

    def _start_afresh(self, change: MembershipChange, now: Instant) -> None:
        """A receiver that was still looking sees a view begin: that is as good as a sponsor."""
        standing = self.standing
        activations = {entry.peer.id: entry.first_seq for entry in change.entries}
        standing.epoch = change.view
        standing.history.entered(change.view, change)
        promises = dict.fromkeys(activations, int(change.view.start))
        counted = frozenset(activations)
        standing.path = self._begin(activations, promises, change.view.start, change.view, counted, now)
        standing.path.come_from(cut.epoch.tag for cut in change.cuts)
        standing.path.learn_stated(b"", change.view.start)  # its senders state what they know
        peers = [entry.peer for entry in change.entries]
        standing.quorum.installed(change.view, change.number, standing.sites(peers), primary=change.primary)
        last = {member: activation - 1 for member, activation in activations.items()}
        self._enter_first_view(change.view, peers, "first view", now, last)

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
        if standing.path is not None and request.first_seq <= standing.path.departed.get(request.member, 0):
            self._counters.membership_ignored += 1  # it was asked before the member left again
            return
        if len(standing.roster) >= self._config.max_senders:
            self._counters.drop("senders")
            return
        self._asked = {member: until for member, until in self._asked.items() if now.mono < until}
        self._asked[request.member] = now.mono + standing.ns(self._config.sponsor_ms)
        assert standing.path is not None
        if not standing.quorum.may_send:
            # Only a repair weighs records: together the two may be what the quorum lacks (M11).
            self._start_repair("no quorum", now, fellows=(request.member,))
            return
        peer = Peer(request.member, request.name, request.site)
        standing.path.emit_change(Add(peer=peer, first_seq=request.first_seq), now)

    def _to_receiver(self, reason: str, now: Instant) -> None:
        assert self.standing.path is not None
        self._leave_sent = self.standing.path.closing = True
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
                last = {peer.id: standing.path.last_before(peer.id)}
            case Leave(reason=reason):
                if changed.source not in standing.roster:
                    return
                if reason == "silence" and len(standing.roster) == 1:
                    self._stays(changed.source, changed.timestamp, now)
                    return
                standing.path.source_left(changed.source, changed.timestamp, changed.seq)
                peers = [peer for peer in standing.roster.values() if peer.id != changed.source]
                reasons = {changed.source: reason}
                last = {changed.source: changed.seq}
        transitional = [peer.id for peer in peers if peer.id in standing.roster]
        standing.install(view, peers, transitional=transitional, reasons=reasons, last=last)
        if standing.quorum.agreed:
            standing.quorum.installed(view, standing.quorum.number + 1, standing.sites(peers), primary=True)
            standing.path.permitted = standing.quorum.may_send
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
            self._leave_sent = standing.path.closing = False
            self._settled(State.SENDER, "added", now)
            if not self._wants_to_send and not self._has_unsent():
                self._to_receiver("silence", now)  # somebody acted on a request of long ago
            elif not standing.quorum.may_send and self._would_suffice():
                self._start_repair("no quorum", now)  # an attempt this site remembers is weighed there, and settled
            return
        standing.path.enter_view(standing.senders, now)
        standing.watch(standing.senders, now)
        if changed.source == mine and isinstance(changed.change, Leave):
            self._leave_sent = standing.path.closing = False
            self._wants_to_send = self._has_unsent()
            self._settled(State.RECEIVER, changed.change.reason, now)
        elif self.state is State.TO_SENDER and not standing.senders:
            self._start_repair("no senders", now)

    def _would_suffice(self) -> bool:
        """Whether the view has a quorum of all that this site remembers."""
        standing = self.standing
        return standing.quorum.decide([standing.quorum.record], standing.sites(standing.roster.values()))

    def held_back(self, change: Change, source: MemberId, timestamp: Timestamp) -> None:
        """Before others hear that this member is ready for a change, it remembers that the view may come (M11)."""
        standing = self.standing
        if not standing.quorum.agreed or not standing.is_sender():
            return
        if isinstance(change, Add):
            peers = [*standing.roster.values(), change.peer]
        else:
            peers = [peer for peer in standing.roster.values() if peer.id != source]
        # Its timestamp names it.
        standing.quorum.attempting(timestamp, standing.quorum.number + 1, standing.sites(peers))
        standing.persist()

    def _stays(self, source: MemberId, timestamp: Timestamp, now: Instant) -> None:
        """The last sender does not leave for silence, whatever it thought when it said so (M14)."""
        self.standing.quorum.abandoned(timestamp)
        if source == self.standing.me.id:
            assert self.standing.path is not None
            self._leave_sent = self.standing.path.closing = False
            if not self._finishing:
                self.standing.path.enter_view(self.standing.senders, now)
                self._settled(State.SENDER, "last sender", now)
