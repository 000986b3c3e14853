"""Edges of the state machine, one by one; the repair's own states have their tests next door."""

from __future__ import annotations

import pytest

from intergroup_core.effects import Departure, Install, Left, Persist
from intergroup_core.ids import MemberId, View
from intergroup_core.membership.quorum import QuorumRecord, key_of
from intergroup_core.membership.states import REPAIR
from intergroup_core.wire.membership import (
    Add,
    AddRequest,
    FailureBlock,
    Farewell,
    Join,
    Leave,
    MembershipChange,
    ReadyToCommit,
    RecoveryInfo,
    Solicitation,
    Sponsorship,
    ViewRequest,
)
from tests.builders import (
    START,
    STRANGER,
    T0,
    VIEW,
    A,
    B,
    C,
    R,
    S,
    a_cut,
    a_failure_block,
    a_farewell,
    a_join,
    a_leave,
    a_membership_change,
    a_ready,
    a_recovery_info,
    a_solicitation,
    a_sponsorship,
    a_view_id,
    a_view_request,
    after,
    an_add,
    an_add_request,
    an_entry,
    millis,
)
from tests.unit.membership.parts import REBORN, Process, a_newcomer, a_receiver, a_sender

NEXT, OTHER = a_view_id(START + 10**6, B), a_view_id(START + 2 * 10**6, STRANGER, 7)
ENDS = {B: 0, C: 0}


def a_repairing_sender(me: MemberId = A, **settings: float) -> Process:
    process = a_sender(me, **settings)
    process.hears(a_join(B))
    assert process.state == "consensus"
    process.clear()
    return process


def a_next_view(*members: MemberId, **fields: object) -> MembershipChange:
    return a_membership_change(
        B,
        view=NEXT,
        entries=[an_entry(member) for member in members],
        cuts=[a_cut({**ENDS, A: 0})],
        **fields,  # type: ignore[arg-type]
    )


def ready_process(me: MemberId = C) -> tuple[Process, int]:
    """One that waits for the leader's word, and the name of the attempt."""
    process = Process(me)
    process.machine.start(sender=False, now=T0)
    process.hears(a_sponsorship(A, me, view=View(id=VIEW.id, members=(A, B))))
    process.machine.want_to_send(T0)
    process.delivers(an_add(me), A)
    process.hears(a_join(A, serial=1), a_join(B, serial=1))
    process.at(10)
    attempt = process.said(RecoveryInfo)[0].attempt
    process.hears(a_recovery_info(A, attempt=attempt), a_recovery_info(B, attempt=attempt))
    assert process.state == "wait for change"
    return process, attempt


# Bootstrap


def test_a_newcomer_calls_until_it_is_answered() -> None:
    process = a_newcomer(R)
    process.at(1_000)
    assert process.state == "bootstrap"
    assert len(process.said(Solicitation)) > 5
    process.hears(a_sponsorship(A, R))
    assert process.state == "receiver"
    assert process.view.members == (A, B, C)
    process.clear()
    process.at(2_000)
    assert process.said(Solicitation) == []


def test_a_sponsorship_for_another_newcomer_is_not_taken() -> None:
    process = a_newcomer(R)
    process.hears(a_sponsorship(A, S))
    assert process.state == "bootstrap"


def test_a_newcomer_that_is_refused_leaves_with_the_reason() -> None:
    process = a_newcomer(R)
    process.hears(a_sponsorship(A, R, refusal="clock"))
    assert process.state == "left"
    assert process.effects == [Left("clock")]


def test_a_sponsorship_that_does_not_fit_together_is_dropped_and_counted() -> None:
    process = a_newcomer(R)
    process.hears(a_sponsorship(A, R, promises={A: START}))
    assert process.state == "bootstrap"
    assert process.counters.dropped == {"body": 1}


def test_a_newcomer_that_wants_to_send_asks_to_be_added_as_soon_as_it_is_in() -> None:
    process = a_newcomer(R, sender=True)
    process.hears(a_sponsorship(A, R))
    assert process.state == "to sender"
    (request,) = process.said(AddRequest)
    assert request.sponsor in (A, B, C)


def test_a_newcomer_that_wants_to_send_and_finds_nobody_forms_a_view_of_its_own() -> None:
    process = a_newcomer(R, sender=True, bootstrap_wait_ms=400)
    process.at(350)
    assert process.state == "bootstrap"
    process.at(1_500)
    assert process.state == "sender"
    assert process.view.members == (R,)


def test_a_newcomer_that_only_receives_waits_for_ever() -> None:
    process = a_newcomer(R)
    process.at(60_000)
    assert process.state == "bootstrap"


def test_a_newcomer_waits_no_longer_than_it_was_told_to() -> None:
    process = a_newcomer(R, sender=True, bootstrap_wait_ms=400)
    process.at(401)
    assert process.state != "bootstrap"


def test_newcomers_that_find_nobody_begin_together() -> None:
    process = a_newcomer(R, sender=True)
    for ms in range(0, 700, 50):
        process.at(ms)
        process.hears(a_solicitation(S, sends=True))
    assert process.state == "consensus"
    assert process.said(Join)[-1].procs == (R, S)
    assert process.said(Join)[-1].epoch is None


def test_a_newcomer_that_is_named_in_a_fellows_join_joins_it_at_once() -> None:
    process = a_newcomer(R, sender=True)
    process.hears(a_join(S, procs=[R, S], epoch=None))
    assert process.state in {state.value for state in REPAIR}
    assert process.said(Join)[0].procs == (R, S)


def test_a_newcomer_that_is_not_named_waits_for_a_sponsor() -> None:
    process = a_newcomer(R, sender=True)
    process.hears(a_join(A), a_join(S, procs=[S], epoch=None))
    assert process.state == "bootstrap"


def test_a_receiver_that_is_still_looking_starts_at_a_view_that_begins() -> None:
    process = a_newcomer(R)
    process.hears(a_next_view(B, C))
    assert process.state == "receiver"
    assert process.view.id == NEXT


def test_one_that_is_still_looking_does_not_start_at_a_view_that_began_long_ago() -> None:
    process = a_newcomer(R)
    process.hears(a_next_view(B, C, again=True))
    assert process.state == "bootstrap"


# Answering those who look


def test_a_settled_sender_answers_when_it_is_its_turn() -> None:
    process = a_sender()
    process.hears(a_solicitation(R, attempt=0))
    assert [answer.newcomer for answer in process.said(Sponsorship)] == [R]


def test_in_a_repair_nobody_is_sponsored() -> None:
    process = a_repairing_sender()
    process.hears(a_solicitation(R, attempt=0))
    process.at(20)
    assert process.said(Sponsorship) == []


def test_a_sender_adds_one_that_asks_it_and_only_once() -> None:
    process = a_sender()
    process.hears(an_add_request(R, A), an_add_request(R, A))
    assert process.stream.emitted == [Add(peer=process.stream.emitted[0].peer, first_seq=1)]  # type: ignore[union-attr]
    assert isinstance(process.stream.emitted[0], Add)
    assert process.stream.emitted[0].peer.id == R


def test_one_whose_add_got_lost_may_ask_again() -> None:
    process = a_sender(sponsor_ms=100)
    process.hears(an_add_request(R, A))
    process.at(101)
    process.hears(an_add_request(R, A))
    assert len(process.stream.emitted) == 2


@pytest.mark.parametrize(
    "request_",
    [an_add_request(R, B), an_add_request(R, A, epoch=OTHER), an_add_request(B, A)],
    ids=["another sponsor", "another epoch", "a sender already"],
)
def test_requests_that_are_none_of_its_business_are_passed_over(request_: AddRequest) -> None:
    process = a_sender()
    process.hears(request_)
    assert process.stream.emitted == []


# Becoming a sender


def test_a_receiver_with_data_asks_one_sender_after_the_other() -> None:
    process = a_receiver(R, sponsor_ms=100)
    process.machine.want_to_send(process.now)
    process.at(250)
    asked = [request.sponsor for request in process.said(AddRequest)]
    assert len(asked) == len(set(asked)) == 3


def test_it_is_a_sender_when_its_add_is_delivered() -> None:
    process = a_receiver(R)
    process.machine.want_to_send(process.now)
    process.delivers(an_add(R), B, seq=4, timestamp=START + 77)
    assert process.state == "sender"
    (install,) = process.emitted(Install)
    assert install.view.id == a_view_id(START + 77, B, 4), "timestamp, sender and seq of the Add (M13)"
    assert install.view.members == (A, B, R, C)
    assert (install.joined, install.transitional) == ((R,), (A, B, C))


def test_an_add_of_another_makes_a_view_at_a_receiver_too() -> None:
    process = a_receiver(R)
    process.delivers(an_add(S))
    assert process.state == "receiver"
    assert process.view.members == (A, B, S, C)
    assert process.stream.views[-1] == (A, B, S, C)


def test_a_second_add_for_a_member_does_nothing() -> None:
    process = a_receiver(R)
    process.delivers(an_add(S))
    process.clear()
    process.delivers(an_add(S), C, seq=2, timestamp=START + 20)
    assert process.effects == []


def test_in_an_empty_view_a_member_with_data_begins_a_repair_alone() -> None:
    process = a_receiver(R)
    for source in (A, B, C):
        process.delivers(a_leave(), source)
    process.machine.want_to_send(process.now)
    assert process.state in {state.value for state in REPAIR}
    process.at(200)
    assert process.state == "sender"
    (last,) = process.emitted(Install)[-1:]
    assert last.view.members == (R,)


def test_if_the_last_sender_leaves_before_it_adds_one_that_one_begins_a_repair() -> None:
    process = a_receiver(R, view=View(id=VIEW.id, members=(B,)))
    process.machine.want_to_send(process.now)
    process.delivers(a_leave(), B)
    assert process.state != "to sender"


@pytest.mark.parametrize(
    "message",
    [a_join(B), a_failure_block(B, C, 1), a_join(STRANGER, procs=[STRANGER], epoch=OTHER)],
    ids=["join", "failure block", "foreign join"],
)
def test_one_that_waits_to_be_added_takes_part_in_a_repair(message: Join | FailureBlock) -> None:
    process = a_receiver(R)
    process.machine.want_to_send(process.now)
    process.hears(message)
    assert process.state == "consensus"
    assert R in process.said(Join)[-1].procs if process.said(Join) else True


# Leaving the sender group


def test_a_sender_that_leaves_says_so_in_order_and_waits_for_that() -> None:
    process = a_sender()
    process.machine.leave("left", process.now)
    assert process.state == "to receiver"
    assert process.stream.emitted == [Leave(reason="left")]
    process.delivers(a_leave(), A, seq=2, timestamp=START + 50)
    process.at(10)
    assert process.effects[-1] == Left("left")
    assert process.said(Farewell) == [a_farewell(A)]
    assert process.state == "left"


def test_what_was_accepted_is_sent_first() -> None:
    process = a_sender()
    process.unsent = True
    process.machine.leave("left", process.now)
    process.keeps_hearing(B, C, until_ms=100)
    assert process.state == "sender"
    process.unsent = False
    process.machine.tick(process.now)
    assert process.state == "to receiver"


def test_the_departed_are_named_with_their_reason() -> None:
    process = a_sender()
    process.delivers(a_leave("silence"), B, seq=5, timestamp=START + 60)
    assert process.emitted(Install)[-1].departed == (Departure(B, f"m{B:x}", "silence"),)
    assert process.stream.left == [B]


def test_a_leave_of_one_that_is_not_in_the_view_does_nothing() -> None:
    process = a_sender()
    process.delivers(a_leave(), STRANGER)
    assert process.effects == []


def test_a_sender_that_is_silent_for_long_becomes_a_receiver() -> None:
    process = a_sender(silence_ms=1_000)
    process.keeps_hearing(B, C, until_ms=900)
    assert process.state == "sender"
    process.keeps_hearing(B, C, until_ms=1_100)
    assert process.state == "to receiver"
    assert process.stream.emitted == [Leave(reason="silence")]
    process.delivers(a_leave("silence"), A, seq=2, timestamp=START + 50)
    assert process.state == "receiver"


def test_a_sender_that_sends_is_not_silent() -> None:
    process = a_sender(silence_ms=1_000)
    for ms in range(500, 5_000, 500):
        process.keeps_hearing(B, C, until_ms=ms)
        process.machine.sent_data(process.now.mono)
    assert process.state == "sender"


def test_the_last_sender_does_not_leave_for_silence() -> None:
    process = a_newcomer(R, sender=True, silence_ms=1_000)
    process.at(10_000)
    assert (process.state, process.stream.emitted) == ("sender", [])


def test_a_leave_for_silence_of_one_that_has_become_the_last_sender_has_no_effect() -> None:
    process = a_sender(silence_ms=1_000)
    process.keeps_hearing(B, C, until_ms=1_100)
    assert process.state == "to receiver"
    process.delivers(a_leave(), B, seq=5, timestamp=START + 60)
    process.delivers(a_leave(), C, seq=5, timestamp=START + 61)
    process.delivers(a_leave("silence"), A, seq=2, timestamp=START + 62)
    assert process.state == "sender"
    assert process.view.members == (A,)


def test_a_sender_that_waits_with_data_for_longer_than_the_silence_does_not_spin() -> None:
    process = a_sender(silence_ms=1_000)
    process.unsent = True
    process.keeps_hearing(B, C, until_ms=3_000)
    assert process.state == "sender"


def test_a_member_that_has_left_wants_no_time() -> None:
    process = a_sender()
    process.machine.leave("left", process.now)
    process.delivers(a_leave(), A, seq=2, timestamp=START + 50)
    process.at(10)
    assert process.state == "left"
    process.at(60_000)


def test_a_member_that_has_left_hears_nothing() -> None:
    process = a_newcomer(R)
    process.machine.leave("left", process.now)
    assert process.state == "left"
    process.clear()
    process.hears(a_sponsorship(A, R), a_join(B), a_next_view(B, C))
    assert (process.state, process.messages, process.effects) == ("left", [], [])


def test_a_receiver_that_leaves_lingers_until_what_it_sent_is_stable() -> None:
    process = a_receiver(R, linger_ms=500)
    process.stream.drained = False
    process.machine.leave("left", process.now)
    process.at(400)
    assert process.state == "receiver"
    process.at(600)
    assert process.state == "left"


def test_one_that_leaves_with_unsent_data_becomes_a_sender_first() -> None:
    process = a_receiver(R)
    process.unsent = True
    process.machine.leave("left", process.now)
    assert process.state == "to sender"
    process.delivers(an_add(R))
    process.unsent = False
    process.machine.tick(process.now)
    assert process.state == "to receiver"


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


# The receivers' repair


def test_a_join_of_a_sender_makes_a_receiver_wait() -> None:
    process = a_receiver(R)
    process.hears(a_join(B))
    assert process.state == "receiver wait"
    assert process.stream.halted


@pytest.mark.parametrize(
    "join", [a_join(B, epoch=OTHER), a_join(STRANGER), a_join(STRANGER, epoch=None)], ids=["view", "member", "nowhere"]
)
def test_a_join_that_is_not_of_its_view_does_not_stop_a_receiver(join: Join) -> None:
    process = a_receiver(R)
    process.hears(join)
    assert (process.state, process.stream.halted) == ("receiver", False)


def test_a_receiver_says_nothing_in_a_repair_but_asks_for_its_outcome() -> None:
    process = a_receiver(R)
    process.hears(a_join(B))
    process.at(300)
    assert {type(message) for message in process.messages} == {ViewRequest}
    assert process.said(ViewRequest)[0].epoch == VIEW.id


def test_a_receiver_follows_the_change_that_names_its_view() -> None:
    process = a_receiver(R)
    process.hears(a_join(B))
    process.stream.reached = False
    process.hears(a_next_view(A, B))
    assert process.state == "receiver recovery"
    assert process.stream.wanted == {**ENDS, A: 0}
    process.stream.reached = True
    process.machine.progressed(process.now)
    assert process.state == "receiver"
    assert process.view.id == NEXT
    assert process.emitted(Install)[-1].transitional == (A, B)


def test_a_receiver_follows_a_change_without_having_heard_of_the_repair() -> None:
    process = a_receiver(R)
    process.hears(a_next_view(A, B))
    assert (process.state, process.view.id) == ("receiver", NEXT)


def test_a_change_of_other_views_is_not_followed() -> None:
    process = a_receiver(R)
    process.hears(a_membership_change(B, view=NEXT, entries=[an_entry(B)], cuts=[a_cut(epoch=OTHER)]))
    assert process.view.id == VIEW.id


def test_a_receiver_that_is_ahead_of_the_cut_starts_anew() -> None:
    process = a_receiver(R)
    process.stream.passed = True
    process.hears(a_next_view(A, B))
    assert process.state == "bootstrap"
    assert process.machine.standing.me.id == REBORN
    assert process.machine.view is None
    process.at(10)
    assert process.said(Solicitation)[-1].member == REBORN


def test_a_receiver_that_cannot_recover_starts_anew() -> None:
    process = a_receiver(R)
    process.stream.reached = False
    process.hears(a_next_view(A, B))
    process.machine.unanswered(A, 3, process.now)
    assert process.state == "bootstrap"


def test_silent_senders_alone_do_not_make_a_receiver_start_anew() -> None:
    process = a_receiver(R)
    process.at(10_000)
    assert process.state == "receiver"


def test_a_foreign_view_makes_a_receiver_ask_and_then_start_anew_if_its_own_senders_are_gone() -> None:
    process = a_receiver(R)
    process.at(2_000)
    process.machine.stranger(STRANGER, OTHER.tag, START + 10**7, process.now)
    assert process.state == "receiver"
    assert process.said(ViewRequest)[-1].tag == OTHER.tag
    for ms in range(2_050, 3_000, 50):
        process.at(ms)
        if process.state == "receiver":
            process.machine.stranger(STRANGER, OTHER.tag, START + 10**7, process.now)
    assert process.state == "bootstrap"
    assert process.counters.gaps == 1


def test_a_foreign_view_does_not_disturb_a_receiver_whose_senders_are_there() -> None:
    process = a_receiver(R)
    for ms in range(50, 3_000, 50):
        process.at(ms)
        process.machine.heard(A, process.now)
        process.machine.stranger(STRANGER, OTHER.tag, START + 10**7, process.now)
    assert process.state == "receiver"


def test_a_new_incarnation_that_has_data_wants_to_send_it() -> None:
    process = a_receiver(R)
    process.stream.passed = True
    process.unsent = True
    process.hears(a_next_view(A, B))
    process.hears(a_sponsorship(A, REBORN))
    assert process.state == "to sender"


# Asking and being asked for changes


def test_a_change_is_said_again_to_one_that_asks() -> None:
    process = a_receiver(R)
    process.hears(a_next_view())
    assert process.view.members == ()
    process.clear()
    for _ in range(20):
        process.hears(a_view_request(S))
    assert {(change.view, change.again) for change in process.said(MembershipChange)} == {(NEXT, True)}


def test_a_change_that_is_not_known_is_not_said() -> None:
    process = a_sender()
    process.hears(a_view_request(S, epoch=OTHER, tag=OTHER.tag))
    assert process.messages == []


# What may not happen twice


def test_information_and_readiness_outside_of_a_repair_are_passed_over() -> None:
    process = a_receiver(R)
    before = process.counters.membership_ignored
    process.hears(a_recovery_info(B), a_ready(B), an_add_request(S, R))
    assert process.counters.membership_ignored == before + 3
    assert process.state == "receiver"


def test_own_words_that_come_back_are_not_heard() -> None:
    process = a_sender()
    process.hears(a_join(A), a_failure_block(A, B, 1))
    assert process.state == "sender"


def test_blocks_last_through_a_repair_and_end_after_it() -> None:
    process = a_sender(block_ms=1_000)
    process.hears(a_failure_block(B, C, 7))
    for ms in range(50, 2_000, 50):
        process.at(ms)
        process.hears(a_join(B, serial=2 + ms))
    assert process.state == "consensus"
    assert C in process.machine.standing.blocks, "a repair is still under way (M7)"
    process.at(10_000)
    process.machine.tick(process.now)
    assert process.state == "sender", "alone, for B fell silent"
    assert C not in process.machine.standing.blocks


def test_a_tick_right_after_a_pause_accuses_nobody() -> None:
    process = a_sender(silence_ms=100_000)
    process.keeps_hearing(B, C, until_ms=500)
    process.now = after(millis(60_000))
    process.machine.tick(process.now)
    assert process.state == "sender"


def test_deciding_again_what_is_said_already_does_nothing() -> None:
    process = a_sender()
    process.machine.leave("left", process.now)
    process.machine.leave("clock", process.now)
    assert process.stream.emitted == [Leave(reason="left")]
    process.hears(ReadyToCommit(member=B, attempt=1, first_seq=1, cut=None))
    assert process.state == "to receiver"


def test_one_that_starts_anew_sponsors_nobody_any_more() -> None:
    process = a_receiver(R)
    for source in (A, B, C):
        process.delivers(a_leave(), source)
    process.hears(a_solicitation(S))
    process.machine.unanswered(A, 1, process.now)
    assert process.state == "bootstrap"
    process.at(100)
    assert process.said(Sponsorship) == []


# Quorum (M11)


def test_one_that_is_added_to_a_primary_view_may_send() -> None:
    process = a_receiver(R, rule="majority")
    process.machine.want_to_send(process.now)
    process.delivers(an_add(R))
    assert process.state == "sender"
    assert process.machine.standing.quorum.may_send
    record = QuorumRecord.from_bytes(process.emitted(Persist)[-1].record)
    assert record is not None
    assert record.last == process.view.id


def test_one_that_was_added_adds_others_without_a_repair() -> None:
    process = a_sender()
    process.hears(an_add_request(R, A))
    assert process.state == "sender"
    assert len(process.stream.emitted) == 1


def test_a_view_that_is_not_primary_grows_by_repair() -> None:
    five = QuorumRecord(VIEW.id, 1, frozenset(map(key_of, "abcde")))
    process = a_newcomer(A, sender=True, rule="majority", record=five)
    process.at(1_000)
    assert process.state == "sender"
    assert not process.machine.standing.quorum.may_send
    process.hears(an_add_request(R, A, epoch=process.view.id))
    assert process.state == "consensus"
    assert process.stream.emitted == []
