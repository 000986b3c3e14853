"""When and with whom a repair is run (T5.3.3, T5.4), who is helped and who is blamed on the way."""

from __future__ import annotations

from collections.abc import Iterable

from intergroup_core.ids import Instant, MemberId
from intergroup_core.membership.repair import Repair
from intergroup_core.membership.states import Foreign, State, Unanswered
from intergroup_core.membership.transitions import RESTARTS
from intergroup_core.membership.voluntary import Voluntary
from intergroup_core.wire.membership import FailureBlock, Join, MembershipChange, ViewRequest


class Repairing(Voluntary):
    """Feeds the repair algorithm and follows its states."""

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
        if change is None:
            return False
        entries = {entry.peer.id for entry in change.entries}
        if join.member not in entries and entries.issubset(join.fails):
            return False  # it knows that it was left out: this is its own branch of the old epoch
        self._help(change, now)
        return True

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
        self._linger_until = None
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
        self._after_repair_step(now)

    def _leave_is_final(self) -> bool:
        """A Leave that is under way takes effect inside the epoch, except the last sender's for silence."""
        return not self.standing.is_last_sender() or self._leaving is not None

    def _join_in_repair(self, join: Join, now: Instant) -> None:
        assert self._repair is not None
        standing = self.standing
        if join.member in standing.blocks or self._helped_behind(join, now):
            self._counters.membership_ignored += 1
            return
        if not self._repair.consensus.has_room_for(join, self._config.max_senders):
            self._counters.drop("senders")
            return
        if join.epoch is not None and join.epoch != standing.epoch and not standing.history.has(join.epoch):
            self._ask_for_change(join.epoch.tag, now)
        reason = self._repair.heard_join(join, now)
        if reason is not None:
            self._restarted(reason)
        self._shut_out(now)
        self._after_repair_step(now)

    def _shut_out(self, now: Instant) -> None:
        """Whoever is blocked counts as failed, whatever others think of it: nobody waits for one that is not heard."""
        assert self._repair is not None
        for process in sorted(self._repair.consensus.members):
            if process in self.standing.blocks and self._repair.failed(process, "block", now):
                self._restarted("block")

    def _foreign_in_repair(self, foreign: Foreign, now: Instant) -> None:
        assert self._repair is not None
        self._ask_for_change(foreign.tag, now)
        if not self.standing.blocks.shuns(foreign.process):
            self._repair.foreign(foreign.process, now)

    def _after_repair_step(self, now: Instant) -> None:
        if self._repair is not None:
            self._serial = self._repair.serial
            self.standing.watch(self._repair.consensus.members, now)
            self._check_change(now)

    def _follow_steps(self, repair: Repair) -> None:
        """States whose work is done at once are passed through in one stimulus; each counts."""
        for state, reason in repair.steps:
            self._enter(state, reason)
        repair.steps.clear()

    def _restarted(self, reason: str) -> None:
        assert self._repair is not None
        assert reason in RESTARTS
        key = f"{self.state.value}: {reason}"
        self._counters.restarts[key] = self._counters.restarts.get(key, 0) + 1
        self._follow_steps(self._repair)

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
            if process in self._repair.consensus.procs and self._repair.failed(process, "block", now):
                self._restarted("block")
            self._after_repair_step(now)

    def _check_change(self, now: Instant) -> None:
        if self._repair is None:
            return
        change = self._repair.change(now)
        self._follow_steps(self._repair)
        if change is not None:
            self.standing.say(change)
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
