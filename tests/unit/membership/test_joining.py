"""Coming into a group, and into and out of its senders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from intergroup_core.effects import Departure, Install, Left
from intergroup_core.ids import View
from intergroup_core.membership.states import REPAIR
from intergroup_core.wire.membership import (
    Add,
    AddRequest,
    FailureBlock,
    Farewell,
    Join,
    Leave,
    Solicitation,
    Sponsorship,
)
from tests.builders import START, STRANGER, VIEW, A, B, C, R, S
from tests.membership_builders import (
    a_failure_block,
    a_farewell,
    a_join,
    a_leave,
    a_solicitation,
    a_sponsorship,
    a_view_id,
    an_add,
    an_add_request,
)
from tests.unit.membership.parts import a_newcomer, a_receiver, a_sender
from tests.unit.membership.processes import NEXT, OTHER, a_next_view, a_repairing_sender

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
    process.hears(replace(a_next_view(B, C), cuts=()))
    assert process.state == "receiver"
    assert process.view.id == NEXT


def test_one_that_is_still_looking_asks_a_sponsor_what_was_stated_before_a_view_that_goes_on_from_another() -> None:
    process = a_newcomer(R)
    process.hears(a_next_view(B, C))
    assert process.state == "bootstrap"


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


def test_a_sender_through_whom_somebody_will_send_again_stays_however_long_that_takes() -> None:
    process = a_sender(silence_ms=1_000)
    process.machine.stays = True
    process.keeps_hearing(B, C, until_ms=5_000)
    assert (process.state, process.stream.emitted) == ("sender", [])
    process.machine.stays = False
    process.keeps_hearing(B, C, until_ms=5_100)
    assert process.state == "to receiver"


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
