"""Into a repair, through it, and who is blamed on the way."""

from __future__ import annotations

import pytest

from intergroup_core.effects import Departure, Install, Persist
from intergroup_core.membership.quorum import QuorumRecord
from intergroup_core.wire.membership import (
    FailureBlock,
    Join,
    MembershipChange,
    RecoveryInfo,
)
from tests.builders import START, STRANGER, T0, VIEW, A, B, C, S
from tests.membership_builders import (
    a_cut,
    a_failure_block,
    a_join,
    a_membership_change,
    a_ready,
    a_recovery_info,
    a_view_id,
    an_entry,
)
from tests.unit.membership.parts import REBORN, a_sender
from tests.unit.membership.processes import ENDS, NEXT, OTHER, ready_process

# Into the repair


def test_a_silent_sender_is_suspected_and_a_repair_begins() -> None:
    process = a_sender()
    process.keeps_hearing(B, until_ms=1_200)
    assert process.state == "consensus"
    assert process.said(Join)[0].fails == (C,)
    assert process.stream.halted
    assert process.counters.transitions["sender>consensus: failure"] == 1


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (a_join(B), "join"),
        (a_failure_block(B, C, 1), "block"),
        (a_join(STRANGER, procs=[STRANGER], epoch=OTHER), "foreign"),
        (a_join(STRANGER, procs=[STRANGER], epoch=None), "foreign"),
    ],
    ids=["join", "failure block", "foreign join", "join from nowhere"],
)
def test_what_brings_a_sender_into_the_repair(message: Join | FailureBlock, reason: str) -> None:
    process = a_sender()
    process.hears(message)
    assert process.state == "consensus"
    assert process.counters.transitions[f"sender>consensus: {reason}"] == 1


def test_a_frame_of_an_unknown_view_brings_a_sender_into_the_repair() -> None:
    process = a_sender()
    assert process.machine.stranger(STRANGER, OTHER.tag, START + 10**7, process.now)
    assert process.state == "consensus"
    process.at(1)
    assert STRANGER in process.said(Join)[-1].procs


def test_a_frame_of_a_view_in_the_past_is_dropped() -> None:
    process = a_sender()
    assert not process.machine.stranger(STRANGER, OTHER.tag, START - 1, process.now)
    assert process.state == "sender"
    assert process.counters.dropped == {"view": 1}


def test_the_first_frame_of_one_whose_add_is_on_its_way_is_not_foreign() -> None:
    process = a_sender()
    assert process.machine.stranger(S, VIEW.id.tag, START + 10**7, process.now)
    assert process.state == "sender"


def test_a_failure_block_of_another_view_or_of_a_stranger_is_passed_over() -> None:
    process = a_sender()
    process.hears(a_failure_block(B, C, 1, epoch=OTHER), a_failure_block(STRANGER, C, 1))
    assert process.state == "sender"


def test_old_joins_are_passed_over() -> None:
    process = a_sender()
    process.hears(a_join(STRANGER, serial=5, procs=[STRANGER], fails=[A], epoch=OTHER))
    ignored = process.counters.membership_ignored
    process.hears(a_join(STRANGER, serial=5, epoch=OTHER), a_join(STRANGER, serial=4, epoch=OTHER))
    assert process.counters.membership_ignored == ignored + 2
    assert process.state == "sender"


def test_one_that_misses_this_very_view_is_told_of_it() -> None:
    process, attempt = ready_process()
    process.hears(
        a_membership_change(A, view=NEXT, attempt=attempt, entries=map(an_entry, (A, B, C)), cuts=[a_cut(ENDS)])
    )
    assert process.state == "sender"
    process.clear()
    process.hears(a_join(B, serial=2))
    assert process.state == "sender"
    (change,) = process.said(MembershipChange)
    assert (change.view, change.member, change.again) == (NEXT, C, True)


# Blame


def test_a_frame_that_nobody_has_makes_a_sender_accuse_its_source() -> None:
    process = a_sender()
    process.machine.unanswered(C, 7, process.now)
    (block,) = process.said(FailureBlock)
    assert (block.process, block.seq, block.epoch) == (C, 7, VIEW.id)
    process.at(1)
    assert process.said(Join)[-1].fails == (C,)


def test_an_accuser_that_cannot_get_what_others_have_is_to_blame() -> None:
    process = a_sender()
    process.stream.received.add((C, 7))
    process.hears(a_failure_block(B, C, 7))
    process.at(1)
    assert process.said(Join)[-1].fails == (B,)


def test_an_accused_whose_frame_nobody_has_is_to_blame() -> None:
    process = a_sender()
    process.hears(a_failure_block(B, C, 7))
    process.at(1)
    assert process.said(Join)[-1].fails == (C,)


def test_the_blamed_are_not_listened_to_for_a_while() -> None:
    process = a_sender()
    process.hears(a_failure_block(B, C, 7))
    process.hears(a_join(C, procs=[A, B, C, STRANGER]))
    process.at(1)
    assert STRANGER not in process.said(Join)[-1].procs


def test_one_that_cannot_recover_what_ends_the_view_starts_anew() -> None:
    process = a_sender(C)
    process.hears(a_join(A), a_join(B))
    process.at(10)
    attempt = process.said(RecoveryInfo)[0].attempt
    process.stream.reached = False
    process.hears(a_recovery_info(A, attempt=attempt), a_recovery_info(B, attempt=attempt))
    assert process.state == "recovery"
    process.machine.unanswered(B, 3, process.now)
    assert process.state == "bootstrap"
    assert process.machine.standing.me.id == REBORN
    assert process.counters.gaps == 1


# Through the repair


def test_a_whole_repair_at_the_leader() -> None:
    process = a_sender()
    process.keeps_hearing(B, until_ms=1_200)
    process.hears(a_join(B, fails=[C]))
    now = (process.now.mono - T0.mono) / 1e6
    process.at(now + 10)
    attempt = process.said(RecoveryInfo)[0].attempt
    process.hears(a_recovery_info(B, attempt=attempt, last_seq=3, failed=[(C, 2, START + 40)]))
    process.hears(a_ready(B, attempt=attempt, first_seq=4, cut=a_cut(ENDS)))
    assert process.state == "sender"
    (change,) = process.said(MembershipChange)
    assert [entry.peer.id for entry in change.entries] == [A, B]
    (install,) = process.emitted(Install)
    assert (install.view.members, install.transitional) == ((A, B), (A, B))
    assert install.departed == (Departure(C, f"m{C:x}", "failed"),)
    assert not process.stream.halted
    assert process.stream.tag == change.view.tag


def test_the_change_installs_a_view_at_those_who_are_ready() -> None:
    process, attempt = ready_process()
    change = a_membership_change(A, view=NEXT, attempt=attempt, entries=map(an_entry, (A, C)), cuts=[a_cut({A: 4})])
    process.hears(change)
    assert process.state == "sender"
    assert process.view.id == NEXT
    assert process.stream.finished == {A: 4}


def test_a_change_that_others_agreed_on_without_this_sender_makes_it_go_on_without_them() -> None:
    process, attempt = ready_process()
    process.hears(
        a_membership_change(A, view=NEXT, attempt=attempt ^ 1, entries=[an_entry(A), an_entry(B)], cuts=[a_cut()])
    )
    assert process.machine.view is not None
    process.at(200)
    assert process.state == "sender"
    assert process.view.members == (C,)


def test_a_change_of_views_that_are_not_its_own_installs_nothing() -> None:
    process, attempt = ready_process()
    elsewhere = a_membership_change(B, view=NEXT, attempt=attempt ^ 1, entries=[an_entry(B)], cuts=[a_cut(epoch=OTHER)])
    process.hears(elsewhere)
    assert process.state == "wait for change"


def test_a_change_is_learned_in_consensus_by_one_that_had_been_ready_for_it() -> None:
    process, attempt = ready_process()
    process.hears(a_join(B, serial=2, procs=[A, B, C, STRANGER]))
    assert process.state == "consensus"
    process.hears(a_membership_change(A, view=NEXT, attempt=attempt, entries=map(an_entry, (A, B, C)), cuts=[a_cut()]))
    assert process.state == "sender"
    assert process.view.id == NEXT


def test_a_change_into_the_past_is_ignored() -> None:
    process, attempt = ready_process()
    past = a_view_id(START - 5, A)
    process.hears(a_membership_change(A, view=past, attempt=attempt, entries=map(an_entry, (A, C)), cuts=[a_cut()]))
    assert process.state == "wait for change"


def test_a_change_that_does_not_say_where_this_epoch_ends_is_dropped() -> None:
    process, attempt = ready_process()
    process.hears(a_membership_change(A, view=NEXT, attempt=attempt, entries=map(an_entry, (A, B, C))))
    assert process.state == "wait for change"


def test_one_that_is_left_out_of_the_view_it_helped_to_form_is_a_receiver() -> None:
    process, attempt = ready_process()
    process.hears(a_membership_change(A, view=NEXT, attempt=attempt, entries=map(an_entry, (A, B)), cuts=[a_cut()]))
    assert process.state == "receiver"


def test_a_view_is_persisted_with_whom_it_has() -> None:
    process, attempt = ready_process()
    process.clear()
    process.hears(a_membership_change(A, view=NEXT, attempt=attempt, entries=map(an_entry, (A, C)), cuts=[a_cut()]))
    record = QuorumRecord.from_bytes(process.emitted(Persist)[-1].record)
    assert record is not None
    assert (record.last, len(record.sites), record.pending) == (NEXT, 2, ())


def test_restarts_are_counted_by_reason() -> None:
    process, _ = ready_process()
    process.hears(a_join(B, serial=2, fails=[A]))
    assert process.counters.restarts == {"wait for change: join": 1}


def test_a_leaders_failure_sends_back_to_consensus() -> None:
    process, _ = ready_process()
    for ms in range(50, 1_500, 50):
        process.at(ms)
        process.hears(a_join(B, serial=1 + ms))
    assert process.said(Join)[-1].fails == (A,)


def test_members_that_wait_for_information_of_an_attempt_that_is_over_are_helped() -> None:
    process, attempt = ready_process()
    process.hears(a_membership_change(A, view=NEXT, attempt=attempt, entries=map(an_entry, (A, B, C)), cuts=[a_cut()]))
    process.clear()
    process.hears(a_ready(B, attempt=attempt))
    assert [change.view for change in process.said(MembershipChange)] == [NEXT]
