"""Figure 5.5, branch by branch."""

from __future__ import annotations

from intergroup_core.ids import MemberId, ViewId
from intergroup_core.membership.consensus import Consensus, Verdict
from tests.builders import STRANGER, VIEW, A, B, C, R
from tests.membership_builders import a_join, a_peer, a_view_id

OTHER = a_view_id()


def a_consensus(me: MemberId = A, *procs: MemberId, epoch: ViewId | None = VIEW.id) -> Consensus:
    return Consensus(a_peer(me), epoch, procs or (A, B, C))


# At first


def test_the_members_of_the_view_are_considered_and_nobody_failed() -> None:
    consensus = a_consensus()
    assert (consensus.procs, consensus.fails, consensus.members) == ({A, B, C}, set(), {A, B, C})
    assert not consensus.reached()


def test_a_process_considers_itself() -> None:
    assert a_consensus(R, A, B).procs == {A, B, R}


def test_a_process_alone_agrees_at_once() -> None:
    assert Consensus(a_peer(A), None, ()).reached()


# PForeign


def test_a_foreign_process_is_considered_once() -> None:
    consensus = a_consensus()
    assert consensus.considers(STRANGER)
    assert not consensus.considers(STRANGER)
    assert consensus.members == {A, B, C, STRANGER}


# PFailure


def test_a_failed_process_is_considered_and_failed() -> None:
    consensus = a_consensus()
    assert consensus.fail(C)
    assert not consensus.fail(C)
    assert (consensus.procs, consensus.members) == ({A, B, C}, {A, B})


def test_a_failed_stranger_is_considered_too() -> None:
    consensus = a_consensus()
    assert consensus.fail(STRANGER)
    assert (STRANGER in consensus.procs, consensus.members) == (True, {A, B, C})


def test_a_process_never_fails_itself() -> None:
    consensus = a_consensus()
    assert not consensus.fail(A)
    assert consensus.members == {A, B, C}


# PJoin


def test_a_join_of_one_that_failed_changes_nothing() -> None:
    consensus = a_consensus()
    consensus.fail(B)
    assert consensus.heard(a_join(B, procs=[A, B, C, STRANGER])) is Verdict.NOTHING
    assert STRANGER not in consensus.procs


def test_one_that_thinks_me_failed_is_failed() -> None:
    consensus = a_consensus()
    assert consensus.heard(a_join(B, fails=[A])) is Verdict.CHANGED
    assert consensus.fails == {B}


def test_what_one_that_thinks_me_failed_says_otherwise_is_not_taken_in() -> None:
    consensus = a_consensus()
    consensus.heard(a_join(B, procs=[A, B, C, STRANGER], fails=[A, C]))
    assert (consensus.procs, consensus.fails) == ({A, B, C}, {B})


def test_a_stranger_that_thinks_me_failed_is_considered_and_failed() -> None:
    consensus = a_consensus()
    consensus.heard(a_join(STRANGER, procs=[A, STRANGER], fails=[A]))
    assert (consensus.procs, consensus.fails) == ({A, B, C, STRANGER}, {STRANGER})


def test_a_join_of_one_that_was_not_considered_is_taken_in() -> None:
    consensus = a_consensus()
    assert consensus.heard(a_join(STRANGER, procs=[STRANGER, R], fails=[R], epoch=OTHER)) is Verdict.CHANGED
    assert (consensus.procs, consensus.fails) == ({A, B, C, STRANGER, R}, {R})
    assert consensus.epochs[STRANGER] == OTHER


def test_the_speaker_is_considered_though_it_does_not_name_itself() -> None:
    consensus = a_consensus()
    consensus.heard(a_join(STRANGER, procs=[]))
    assert STRANGER in consensus.procs


def test_a_join_with_more_processes_is_taken_in() -> None:
    consensus = a_consensus()
    assert consensus.heard(a_join(B, procs=[A, B, C, R])) is Verdict.CHANGED
    assert consensus.procs == {A, B, C, R}


def test_a_join_with_more_failures_is_taken_in() -> None:
    consensus = a_consensus()
    assert consensus.heard(a_join(B, fails=[C])) is Verdict.CHANGED
    assert consensus.fails == {C}


def test_a_join_with_more_here_and_less_there_is_taken_in() -> None:
    consensus = a_consensus()
    consensus.considers(STRANGER)
    assert consensus.heard(a_join(B, fails=[C])) is Verdict.CHANGED
    assert (consensus.procs, consensus.fails) == ({A, B, C, STRANGER}, {C})


def test_a_join_that_says_the_same_needs_no_answer() -> None:
    assert a_consensus().heard(a_join(B)) is Verdict.NOTHING


def test_one_that_is_behind_is_answered() -> None:
    consensus = a_consensus()
    consensus.fail(C)
    assert consensus.heard(a_join(B)) is Verdict.ANSWER
    assert not consensus.reached()


def test_an_empty_join_is_answered() -> None:
    assert a_consensus().heard(a_join(B, procs=[])) is Verdict.ANSWER


def test_one_that_comes_from_another_view_now_is_news() -> None:
    consensus = a_consensus()
    consensus.heard(a_join(B))
    assert consensus.heard(a_join(B, epoch=OTHER)) is Verdict.CHANGED
    assert consensus.epochs[B] == OTHER


# consensusReached


def test_agreement_is_when_all_that_did_not_fail_said_the_same() -> None:
    consensus = a_consensus()
    consensus.heard(a_join(B))
    assert not consensus.reached()
    consensus.heard(a_join(C))
    assert consensus.reached()


def test_nobody_waits_for_those_who_failed() -> None:
    consensus = a_consensus()
    consensus.fail(C)
    consensus.heard(a_join(B, fails=[C]))
    assert consensus.reached()


def test_what_was_said_before_the_sets_grew_is_no_agreement() -> None:
    consensus = a_consensus()
    consensus.heard(a_join(B))
    consensus.heard(a_join(C))
    consensus.considers(STRANGER)
    assert not consensus.reached()


def test_the_sets_only_grow() -> None:
    consensus = a_consensus()
    consensus.fail(C)
    consensus.heard(a_join(B, procs=[A, B]))
    assert (consensus.procs, consensus.fails) == ({A, B, C}, {C})


# Names of attempts (M1)


def agreed(me: MemberId, *joins: MemberId, fails: tuple[MemberId, ...] = (), epoch: ViewId | None = VIEW.id) -> int:
    consensus = a_consensus(me, epoch=epoch)
    for member in joins:
        consensus.heard(a_join(member, fails=fails))
    for member in fails:
        consensus.fail(member)
    assert consensus.reached()
    return consensus.attempt()


def test_those_who_agree_give_the_attempt_the_same_name() -> None:
    assert agreed(A, B, C) == agreed(B, C, A) == agreed(C, A, B)


def test_another_outcome_has_another_name() -> None:
    assert len({agreed(A, B, C), agreed(A, B, fails=(C,)), agreed(A, C, fails=(B,))}) == 3


def test_where_members_come_from_is_part_of_the_name() -> None:
    here, there = a_consensus(A, A, B), a_consensus(A, A, B)
    here.heard(a_join(B, procs=[A, B]))
    there.heard(a_join(B, procs=[A, B], epoch=OTHER))
    assert here.attempt() != there.attempt()


def test_a_name_fits_its_field() -> None:
    assert 0 <= a_consensus().attempt() < 1 << 63


def test_agreeing_with_a_join_is_saying_exactly_the_same() -> None:
    consensus = a_consensus()
    consensus.heard(a_join(B))
    assert consensus.agrees(a_join(B))
    assert not consensus.agrees(a_join(B, fails=[C]))
    assert not consensus.agrees(a_join(B, procs=[A, B]))
    assert not consensus.agrees(a_join(B, epoch=OTHER))
