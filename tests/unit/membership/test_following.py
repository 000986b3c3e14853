"""The receivers' repair, and changes that are asked for."""

from __future__ import annotations

import pytest

from intergroup_core.effects import Install
from intergroup_core.wire.membership import (
    Join,
    MembershipChange,
    Solicitation,
    ViewRequest,
)
from tests.builders import START, STRANGER, VIEW, A, B, R, S
from tests.membership_builders import (
    a_cut,
    a_join,
    a_membership_change,
    a_sponsorship,
    a_view_request,
    an_entry,
)
from tests.unit.membership.parts import REBORN, a_receiver, a_sender
from tests.unit.membership.processes import ENDS, NEXT, OTHER, a_next_view

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


def a_change_with_itself_in_the_cut(last: int) -> MembershipChange:
    return a_membership_change(B, view=NEXT, entries=[an_entry(A), an_entry(B)], cuts=[a_cut({**ENDS, A: 0, R: last})])


def test_a_receiver_that_was_a_sender_inside_the_cut_without_knowing_starts_anew_at_once() -> None:
    """It can follow no change without itself, and nobody keeps for it what it misses."""
    process = a_receiver(R)
    process.stream.reached = False
    process.hears(a_change_with_itself_in_the_cut(0))
    assert process.state == "bootstrap"


def test_a_receiver_that_had_left_the_senders_in_the_epoch_follows() -> None:
    process = a_receiver(R)
    process.stream.departed[R] = 4
    process.hears(a_change_with_itself_in_the_cut(4))
    assert (process.state, process.view.id) == ("receiver", NEXT)


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
