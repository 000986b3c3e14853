from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from intergroup_core.effects import Persist
from intergroup_core.ids import Instant, MemberId, Timestamp, View, ViewId
from intergroup_core.membership.quorum import QuorumRecord, key_of
from intergroup_core.membership.repair import Repair
from intergroup_core.membership.states import State
from intergroup_core.wire.membership import Join, MembershipChange, ReadyToCommit, RecoveryInfo
from tests.builders import START, STRANGER, T0, VIEW, A, B, C, after, millis
from tests.membership_builders import a_cut, a_join, a_ready, a_recovery_info, a_view_id
from tests.unit.membership.parts import Bench

OTHER = a_view_id()


class Bed(Bench):
    """A repair that A, or another, has just begun."""

    def __init__(
        self,
        me: MemberId = A,
        procs: Iterable[MemberId] = (A, B, C),
        *,
        view: View | None = VIEW,
        leaving: bool = False,
        rule: str = "none",
        record: QuorumRecord | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(me, view, rule=rule, record=record, **settings)
        self.now = T0
        self.repair = Repair(self.standing, procs, leaving=leaving, serial=0, now=T0)

    def at(self, ms: float) -> None:
        until = T0.mono + millis(ms)
        while (due := self.repair.next_deadline()) <= until:
            self.now = Instant(max(due, self.now.mono), T0.wall + max(due, self.now.mono) - T0.mono)
            self.repair.tick(self.now)
        self.now = after(millis(ms))

    @property
    def state(self) -> str:
        return self.repair.state.value

    def joins(self, *members: MemberId, procs: Iterable[MemberId] = (A, B, C), fails: Iterable[MemberId] = ()) -> None:
        for member in members:
            self.repair.heard_join(a_join(member, procs=procs, fails=fails), self.now)

    @property
    def attempt(self) -> int:
        return self.repair.consensus.attempt()

    def informed(self, *members: MemberId, epoch: ViewId | None = VIEW.id, **fields: Any) -> None:
        for member in members:
            info = a_recovery_info(member, attempt=self.attempt, epoch=epoch, **fields)
            self.repair.heard_info(info, self.now)

    def ready(self, *members: MemberId, **fields: Any) -> None:
        for member in members:
            ready = a_ready(member, attempt=self.attempt, cut=a_cut({A: 0, B: 0, C: 0}), **fields)
            self.repair.heard_ready(ready, self.now)

    def change(self) -> MembershipChange | None:
        return self.repair.change(self.now)


def agreed(me: MemberId = A, **settings: Any) -> Bed:
    """All three agree; nobody failed."""
    bed = Bed(me, **settings)
    bed.at(0)
    bed.joins(*{A, B, C} - {me})
    assert bed.state == "gather cut"
    return bed


def recovered(me: MemberId = A, **settings: Any) -> Bed:
    """All three have everything."""
    bed = agreed(me, **settings)
    bed.at(6)
    bed.informed(*{A, B, C} - {me})
    return bed


# Consensus


def test_a_repair_begins_with_a_join_at_once() -> None:
    bed = Bed()
    bed.at(0)
    (join,) = bed.said(Join)
    assert (join.member, join.epoch, join.procs, join.fails) == (A, VIEW.id, (A, B, C), ())


def test_a_join_is_repeated_at_doubling_intervals_up_to_a_limit() -> None:
    bed = Bed(repeat_ms=20)
    times = []
    while bed.repair.next_deadline() <= T0.mono + millis(2_000):
        due = bed.repair.next_deadline()
        bed.at((due - T0.mono) / 1e6)
        times.append((due - T0.mono) // millis(1))
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert gaps[:4] == [20, 40, 80, 160]
    assert set(gaps[3:]) == {160}


def test_later_joins_have_greater_serials() -> None:
    bed = Bed()
    bed.at(500)
    serials = [join.serial for join in bed.said(Join)]
    assert serials == sorted(set(serials))


def test_news_is_passed_on_at_once() -> None:
    bed = Bed()
    bed.at(100)
    bed.clear()
    bed.joins(B, fails=[C])
    bed.at(100)
    assert bed.said(Join)[0].fails == (C,)


def test_one_that_is_behind_is_answered_but_not_every_time() -> None:
    bed = Bed(repeat_ms=20)
    bed.repair.failed(C, "failure", T0)
    bed.at(100)
    bed.clear()
    bed.joins(B)
    bed.joins(B)
    assert len(bed.said(Join)) == 1


def test_agreement_that_comes_before_the_own_join_was_said_still_has_it_said() -> None:
    bed = Bed()
    bed.joins(B, C)
    assert bed.state == "gather cut"
    assert [join.procs for join in bed.said(Join)] == [(A, B, C)]


# Gather Cut Info


def test_what_is_on_its_way_is_given_a_moment() -> None:
    bed = agreed(cut_wait_ms=5)
    bed.at(4)
    assert (bed.state, bed.said(RecoveryInfo)) == ("gather cut", [])
    bed.at(5)
    assert bed.state == "gather recovery"
    assert len(bed.said(RecoveryInfo)) == 1


def test_recovery_information_says_what_this_member_has() -> None:
    bed = Bed()
    bed.stream.last_seq = 12
    bed.stream.found = ((C, 7, Timestamp(START + 9)),)
    bed.repair.failed(C, "failure", T0)
    bed.joins(B, fails=[C])
    bed.at(6)
    info = bed.said(RecoveryInfo)[0]
    assert (info.epoch, info.last_seq, info.leaving) == (VIEW.id, 12, False)
    assert info.failed == ((C, 7, START + 9),)
    assert info.attempt == bed.attempt


def test_what_is_said_of_an_attempt_is_said_once_for_all() -> None:
    bed = agreed()
    bed.at(6)
    bed.stream.last_seq = 99
    bed.at(500)
    assert {info.last_seq for info in bed.said(RecoveryInfo)} == {0}
    assert len(bed.said(RecoveryInfo)) > 1


# Gather Recovery Info


def test_recovery_begins_when_everybody_said_what_it_has() -> None:
    bed = agreed()
    bed.stream.reached = False
    bed.at(6)
    bed.informed(B)
    assert bed.state == "gather recovery"
    bed.informed(C, last_seq=4)
    assert bed.state == "recovery"
    assert bed.stream.wanted == {A: 0, B: 0, C: 4}


def test_information_that_came_early_counts() -> None:
    bed = agreed()
    bed.informed(B, C)
    bed.at(6)
    assert bed.state == "gather ready"


def test_information_of_another_attempt_does_not_count() -> None:
    bed = agreed()
    bed.at(6)
    for member in (B, C):
        bed.repair.heard_info(a_recovery_info(member, attempt=bed.attempt ^ 1), bed.now)
    assert bed.state == "gather recovery"


def test_information_of_a_stranger_does_not_count() -> None:
    bed = agreed()
    bed.at(6)
    bed.informed(B, STRANGER)
    assert bed.state == "gather recovery"


def test_only_those_of_the_same_epoch_make_its_ending() -> None:
    bed = Bed(procs=(A, B))
    bed.stream.reached = False
    bed.at(0)
    bed.repair.heard_join(a_join(B, procs=[A, B], epoch=OTHER), T0)
    bed.at(6)
    bed.informed(B, epoch=OTHER, last_seq=50)
    assert bed.stream.wanted == {A: 0}


# Recovery


def test_a_member_is_ready_when_everything_up_to_the_cut_is_here() -> None:
    bed = agreed(C)
    bed.stream.reached = False
    bed.stream.last_seq = 3
    bed.at(6)
    bed.informed(A, B)
    assert (bed.state, bed.said(ReadyToCommit)) == ("recovery", [])
    bed.stream.reached = True
    bed.stream.ends = {A: 1, B: 2, C: 3}
    bed.repair.check_recovered(bed.now)
    assert bed.state == "wait for change"
    bed.at(7)
    (ready,) = bed.said(ReadyToCommit)
    assert ready.first_seq == 4
    assert ready.cut == a_cut({A: 1, B: 2, C: 3})


def test_being_ready_is_persisted_before_it_is_said() -> None:
    bed = agreed(C, rule="majority")
    bed.effects.clear()
    bed.at(6)
    bed.informed(A, B)
    assert bed.said(ReadyToCommit) == []
    record = QuorumRecord.from_bytes(bed.emitted(Persist)[-1].record)
    assert record is not None
    assert [entry.attempt for entry in record.pending] == [bed.attempt]
    bed.at(7)
    assert bed.said(ReadyToCommit)
    assert bed.repair.said_ready_for(bed.attempt)
    assert not bed.repair.said_ready_for(bed.attempt ^ 1)


def test_one_that_comes_from_no_view_has_no_cut_of_its_own() -> None:
    bed = Bed(A, (A,), view=None)
    bed.at(6)
    assert bed.state == "gather ready"
    change = bed.change()
    assert change is not None
    assert (change.cuts, [entry.old for entry in change.entries]) == ((), [None])


# Gather Ready To Commit


def test_the_lowest_id_leads() -> None:
    assert recovered(A).state == "gather ready"
    assert recovered(B).state == "wait for change"
    assert recovered(C).state == "wait for change", "ids compare unsigned"


def test_the_leader_says_the_change_when_all_are_ready() -> None:
    bed = recovered()
    bed.ready(B)
    assert bed.change() is None
    bed.ready(C, first_seq=9)
    change = bed.change()
    assert change is not None
    assert [(entry.peer.id, entry.first_seq, entry.old) for entry in change.entries] == [
        (A, 1, VIEW.id),
        (B, 1, VIEW.id),
        (C, 9, VIEW.id),
    ]
    assert change.view.leader == A
    assert change.view.leader_seq == 1
    assert [cut.epoch for cut in change.cuts] == [VIEW.id]
    assert bed.change() is None, "once"


def test_a_view_starts_above_every_timestamp_involved() -> None:
    bed = agreed()
    bed.at(6)
    bed.informed(B, clock=START + 10**9)
    bed.informed(C)
    bed.ready(B, C)
    change = bed.change()
    assert change is not None
    assert change.view.start > START + 10**9


def test_those_who_leave_are_not_in_the_next_view_and_do_not_lead_it() -> None:
    bed = Bed(A, leaving=True)
    bed.at(0)
    bed.joins(B, C)
    bed.at(6)
    bed.informed(B, C)
    assert bed.repair.leader() == B
    assert bed.state == "wait for change"


def test_where_all_leave_the_lowest_ends_the_view() -> None:
    bed = Bed(A, (A, B), leaving=True)
    bed.at(0)
    bed.joins(B, procs=[A, B])
    bed.at(6)
    bed.repair.heard_info(a_recovery_info(B, attempt=bed.attempt, leaving=True), bed.now)
    bed.ready(B)
    change = bed.change()
    assert change is not None
    assert change.entries == ()
    assert change.left == (A, B)
    assert len(change.cuts) == 1


def test_a_merge_has_a_cut_for_every_old_view() -> None:
    bed = Bed(A, (A, B))
    bed.at(0)
    bed.repair.heard_join(a_join(B, procs=[A, B], epoch=OTHER), T0)
    bed.at(6)
    bed.informed(B, epoch=OTHER)
    bed.repair.heard_ready(a_ready(B, attempt=bed.attempt, cut=a_cut({B: 5}, epoch=OTHER)), bed.now)
    change = bed.change()
    assert change is not None
    assert {cut.epoch for cut in change.cuts} == {VIEW.id, OTHER}
    assert [entry.old for entry in change.entries] == [VIEW.id, OTHER]


def test_the_leader_says_whether_the_view_is_primary() -> None:
    five = QuorumRecord(VIEW.id, 1, frozenset(map(key_of, "abcde")))
    bed = Bed(A, (A,), rule="majority", record=five)
    bed.at(6)
    change = bed.change()
    assert change is not None
    assert not change.primary


# Restarts (figure 5.6)


def test_a_failure_sends_every_state_back_to_consensus() -> None:
    for bed in (agreed(), recovered(A), recovered(B)):
        assert bed.repair.failed(C, "failure", bed.now)
        assert bed.repair.state is State.CONSENSUS
        assert not bed.repair.failed(C, "failure", bed.now)


def test_a_join_that_does_not_fit_sends_back_to_consensus() -> None:
    bed = recovered()
    assert bed.repair.heard_join(a_join(B, procs=[A, B, C, STRANGER], serial=2), bed.now) == "join"
    assert bed.state == "consensus"
    assert STRANGER in bed.repair.consensus.members


def test_agreement_on_a_join_that_did_not_fit_may_come_at_once_and_is_another_attempt() -> None:
    bed = recovered()
    before = bed.attempt
    bed.repair.heard_join(a_join(B, fails=[C], serial=2), bed.now)
    assert bed.state == "gather cut"
    assert bed.attempt != before


def test_a_join_that_excludes_me_sends_back_to_consensus() -> None:
    bed = recovered()
    assert bed.repair.heard_join(a_join(B, fails=[A], serial=2), bed.now) == "excluded"
    assert bed.repair.consensus.fails == {B}


def test_a_join_that_fits_changes_nothing() -> None:
    for bed in (agreed(), recovered(A), recovered(C)):
        before = bed.state
        assert bed.repair.heard_join(a_join(B, serial=2), bed.now) is None
        assert bed.state == before


def test_a_join_that_is_only_behind_changes_nothing() -> None:
    bed = Bed()
    bed.repair.failed(C, "failure", T0)
    bed.joins(B, fails=[C])
    assert bed.state == "gather cut"
    assert bed.repair.heard_join(a_join(B, serial=2), bed.now) is None
    assert bed.state == "gather cut"


def test_outsiders_wait_for_the_next_repair() -> None:
    bed = recovered()
    assert bed.repair.heard_join(a_join(STRANGER, procs=[STRANGER], epoch=OTHER), bed.now) is None
    bed.repair.foreign(STRANGER, bed.now)
    assert bed.state == "gather ready"
    assert STRANGER not in bed.repair.consensus.procs


def test_in_consensus_an_outsider_is_taken_in() -> None:
    bed = Bed()
    bed.at(0)
    bed.repair.foreign(STRANGER, T0)
    bed.clear()
    bed.at(1)
    assert STRANGER in bed.said(Join)[0].procs


def test_what_was_said_in_an_earlier_attempt_does_not_count_in_the_next() -> None:
    bed = recovered()
    bed.ready(B)
    bed.repair.failed(C, "failure", bed.now)
    bed.joins(B, fails=[C])
    assert bed.state == "gather cut"
    bed.at(30)
    assert bed.state == "gather recovery"
    assert bed.change() is None


def test_the_first_restarts_are_not_held_back_and_later_ones_more_and_more() -> None:
    bed = Bed(procs=[A, B, C, *map(MemberId, range(0x100, 0x140))], backoff_ms=30)
    bed.at(0)
    pauses = []
    for number in range(40):
        bed.repair.failed(MemberId(0x100 + number), "failure", bed.now)
        pauses.append((bed.repair.next_deadline() - bed.now.mono) / 1e6)
    assert pauses[:2] == [0, 0]
    assert 15 <= pauses[2] <= 30
    assert max(pauses) <= 30 * 16
    assert min(pauses[20:]) > 30 * 16 / 2 - 1
