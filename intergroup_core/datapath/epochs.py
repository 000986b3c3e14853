"""From one epoch to the next: what is here of an old one, where it ends, how the new one begins (T5.4.2, M4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from intergroup_core.datapath.outgoing import Outgoing
from intergroup_core.delivery.rso import ReliableSourceOrdered
from intergroup_core.delivery.rto import ReliableTimestampOrdered
from intergroup_core.ids import MAX_TIMESTAMP, Instant, MemberId, Timestamp
from intergroup_core.multicast.reception import Reception
from intergroup_core.wire.statements import Restated, encode_statement


class Epochs(Outgoing):
    """Ends an epoch at a cut and begins the next; answers for newcomers where they may start."""

    MAX_EPOCHS = 8
    """Epochs, the present one included, whose members are waited for."""

    def enter_view(self, members: Collection[MemberId], now: Instant) -> None:
        """The view changed inside the epoch: who is counted, and whether this member sends."""
        self.members = tuple(members)
        self._present = set(members)
        self.stamping = self.sender is not None and self.me in members
        self.reports.enter(self.view_tag, members, self._own_activation(), now.mono)
        if self.stamping:
            self._speak(now)

    def halt(self) -> None:
        """A repair is under way: nothing is delivered in order and nothing stamped until it ends."""
        self.delivering = self.stamping = False

    def tell_reach(self, now: Instant) -> None:
        """Let the senders know, by way of the hierarchy, what is here of the epoch (T5.5)."""
        if self._control is None or self._multicast is None:
            return
        found = self._multicast.receptions.items()
        reaches = {source: (reception.contiguous, Timestamp(reception.promise)) for source, reception in found}
        self._control.reach(self.view_tag, reaches, now)

    def asks_receivers(self, survivors: Collection[MemberId]) -> bool:
        """Whether there are receivers that may have more of a source that does not come along."""
        if self._control is None or self.order is None or all(source in survivors for source in self.order.sources):
            return False
        return bool(self.reports.receivers) or self.reports.relayed.any

    def fetch_from_receivers(self, survivors: Collection[MemberId], now: Instant) -> None:
        """Ask for what receivers are known to have of such sources, and this member has not."""
        if self._control is None or self._multicast is None:
            return
        for source, (seq, _) in self._control.cut(self.view_tag).items():
            reception = self._multicast.receptions.get(source)
            if reception is None or source in survivors or seq <= reception.contiguous:
                continue
            if self._fetching.get(source) != seq:
                self._fetching[source] = seq
                self._multicast.hasten(source, seq, now.mono)

    def _promise_of(self, source: MemberId, reception: Reception) -> Timestamp:
        """The best promise known of a source: its own, or one that somebody had who has no more of it than this."""
        promise = max(reception.promise, self._learned.get(source, 0))
        if self._control is not None:
            seq, told = self._control.cut(self.view_tag).get(source, (0, Timestamp(0)))
            if seq <= reception.contiguous:
                promise = max(promise, told)
        return Timestamp(promise)

    def reach(self, survivors: Collection[MemberId]) -> tuple[tuple[MemberId, int, Timestamp], ...]:
        """What is here of the epoch's sources that do not come along: last contiguous seq, promise (M4)."""
        if self.order is None or self._multicast is None:
            return ()
        found = [
            (source, reception.contiguous, self._promise_of(source, reception))
            for source in self.order.sources
            if source not in survivors and (reception := self._multicast.receptions.get(source)) is not None
        ]
        found += [(source, seq, MAX_TIMESTAMP) for source, seq in self.departed.items() if source not in survivors]
        return tuple(sorted(found))

    def want(self, targets: Mapping[MemberId, int], now: Instant) -> None:
        """Get everything of the epoch up to these seqs, and nothing beyond."""
        assert self._multicast is not None
        self._targets = dict(targets)
        self._register_wanted(now)
        for source, seq in targets.items():
            if source != self.me and source in self._multicast.receptions:
                self._multicast.want(source, seq, now.mono)

    def has_reached(self) -> bool:
        """Whether everything wanted is here."""
        assert self._multicast is not None
        assert self.order is not None
        receptions = self._multicast.receptions
        return all(
            source == self.me or source not in self._targets or receptions[source].contiguous >= self._targets[source]
            for source in self.order.sources
            if source in receptions
        )

    def kept(
        self, bound: int, failed: Collection[MemberId], changed: int
    ) -> tuple[Timestamp, tuple[tuple[MemberId, int], ...]]:
        """Up to which membership messages take effect before the epoch ends, and every source's last seq in it.

        The first message beyond those that took effect anywhere still does if everything below it is known; then failed
        senders' data above it is discarded, so that no two components deliver the same data in different views.
        """
        assert self.order is not None
        assert self._multicast is not None
        following = self.order.next_change(bound, failed, changed)
        if following is None:
            changes = changed
        elif following <= bound:
            changes = bound = following
        else:
            changes = changed
        last = dict(self.departed)
        for source in self.order.sources:
            if source in failed:
                last[source] = self.order.kept_seq(source, bound)
            else:
                last[source] = self._multicast.receptions[source].contiguous
        return Timestamp(changes), tuple(sorted(last.items()))

    def learn(self, promises: Mapping[MemberId, int], survivors: Collection[MemberId]) -> None:
        """What an attempt taught holds for later ones, or a later cut could lie below one that somebody installed (M4).

        Everything up to the best promise known is here, and whoever took part has said where it stops (D11).
        """
        for source, promise in promises.items():
            self._learned[source] = max(self._learned.get(source, 0), promise)
        self._learned.update(dict.fromkeys(survivors, int(MAX_TIMESTAMP)))

    def knows_more(self, last: Mapping[MemberId, int]) -> bool:
        """Whether a cut leaves out a source that is known here: then its makers know less than this member."""
        return any(source not in last for source in self.members) or any(source not in last for source in self.departed)

    def last_before(self, source: MemberId) -> int:
        """The last seq of a source that took its place in the order, or before which it begins there."""
        assert self.order is not None
        return self.order.activations()[source] - 1

    def has_passed(self, last: Mapping[MemberId, int]) -> bool:
        """Whether something was delivered here that lies beyond a cut (M5)."""
        assert self.order is not None
        return any(
            activation - 1 > last[source] for source, activation in self.order.activations().items() if source in last
        ) or any(seq > last.get(source, seq) for source, seq in self.departed.items())

    def finish(self, last: Mapping[MemberId, int], changes: int, now: Instant) -> None:
        """Deliver what is left of the epoch up to its cut, in order, its views included."""
        assert self.order is not None
        self.order.close(last, changes)
        self.delivering = True
        self._deliver(now)
        self.order.blocked = False

    def begin_epoch(
        self,
        view_tag: int,
        start: int,
        activations: Mapping[MemberId, int],
        last: Mapping[MemberId, int],
        left: Collection[MemberId],
        now: Instant,
    ) -> None:
        """A repair installed a view: its senders start here, everybody else is behind (T5.4.2)."""
        multicast = self._multicast
        assert multicast is not None
        assert self._guard is not None
        # Where no sender is left, those that went know whom they counted, and are gone by until they say farewell.
        known = activations or left
        gone = [member for member in self.members if member not in known]
        if self._control is not None:
            self._control.reach(self.view_tag, {}, now)
        self.view_tag = view_tag
        self._begun = Timestamp(start)
        self.epochs = (view_tag, *self.epochs)[: self.MAX_EPOCHS]
        self.members = tuple(activations)
        self._present = set(activations)
        self._targets.clear()
        self._learned.clear()
        self._fetching.clear()
        self.departed.clear()
        # The rest of the old epoch counts for nothing here: what others stamped since may lie above the new start.
        self.acknowledged = Timestamp(min(self.acknowledged, start))
        self.wild.clear()
        for source in [source for source in multicast.receptions if source not in activations]:
            multicast.forget(source)
            self._guard.forget(source)
            if source in last:
                multicast.buffer.drop_after(source, last[source])
        for member in gone:
            self.reports.uncount(member)
        multicast.enter(view_tag)
        for source, activation in activations.items():
            multicast.follow(source, activation, start)
            self._guard.follow(source, start, now.mono)
        self._clock.observe(start)
        self._begin_order(activations, start)
        self._maker = replace(self._maker, view_tag=view_tag)
        self.stamping = self.me in activations
        if self.stamping:
            self.start_sending(activations[self.me])
            assert self.sender is not None
            self.sender.enter(self._maker)
            self._speak(now)
        elif self.sender is not None:
            self.sender.enter(self._maker)
        self.reports.enter(view_tag, activations, self._own_activation(), now.mono)
        self.delivering = True
        self._stalled_at = None
        self._replay_held(now)

    def come_from(self, epochs: Iterable[int]) -> None:
        """Members of these epochs, those of other branches too, are on their way into the present one."""
        others = [epoch for epoch in epochs if epoch not in self.epochs]
        self.epochs = (self.view_tag, *others, *self.epochs[1:])[: self.MAX_EPOCHS]

    def _begin_order(self, activations: Mapping[MemberId, int], start: int) -> None:
        order = ReliableTimestampOrdered(self.me, activations, start, self.counters, activations)
        if self._delivery is self.order:
            self._delivery = order
        elif isinstance(self._delivery, ReliableSourceOrdered):
            for source in self._delivery.sources:
                if source not in activations:
                    self._delivery.remove(source)
            for source, activation in activations.items():
                if self._chooses(source):
                    self._delivery.add(source, start, activation)
        self.order = order

    def sponsored(self) -> tuple[Timestamp, tuple[tuple[MemberId, int], ...], tuple[tuple[MemberId, Timestamp], ...]]:
        """Where a newcomer may start: what was delivered last here, and each source's next frame and promise."""
        assert self.order is not None
        promises = self.order.promises()
        if self.me in promises and self.sender is not None:
            promises[self.me] = min(promises[self.me], self.sender.promised)
        stamps = tuple((source, Timestamp(promise)) for source, promise in promises.items())
        return Timestamp(self.order.delivered), tuple(self.order.activations().items()), stamps

    def stated(self) -> bytes:
        """What a newcomer that starts there is to know of the statements before."""
        return self._ledger.to_bytes() if self._ledger is not None else b""

    def learn_stated(self, ledger: bytes, upto: int) -> None:
        """What was stated before this member's beginning, which is at a timestamp."""
        if self._ledger is not None:
            self._ledger.begin(ledger, upto)

    def restate(self, now: Instant) -> None:
        """Tell those who come from other views what was stated in this member's."""
        known = self.stated()
        if known and self._outbox is not None:
            self._outbox.offer_message(encode_statement(Restated(known)))
