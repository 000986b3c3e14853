from __future__ import annotations

from intergroup_core.ids import Service
from intergroup_core.sim.checkers import CHECKERS, History, check
from intergroup_core.sim.checkers.primaries import one_primary
from intergroup_core.sim.trace import Trace
from tests.unit.sim.checkers.traces import (
    R2,
    A,
    B,
    C,
    R,
    Story,
    a_member,
    a_receiver,
    a_right_live_story,
    a_right_story,
)


def test_a_right_trace_breaks_nothing() -> None:
    assert check(a_right_story().trace) == []


def test_a_right_trace_of_changing_views_breaks_nothing() -> None:
    assert check(a_right_live_story().trace) == []


def test_a_trace_of_nothing_breaks_nothing() -> None:
    assert check(Story().trace) == []
    assert check(Trace(())) == []


def test_every_property_of_the_scope_has_a_checker() -> None:
    numbers = [(checker.__doc__ or "").split(".")[0] for checker in CHECKERS]
    assert numbers == [
        "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "13a", "13b", "13c", "14", "15", "16",
        "20", "21", "22", "25",
    ]  # fmt: skip


def test_each_service_is_held_to_its_own_promise_only() -> None:
    story = Story(a_member(A, Service.UU), a_member(B, Service.RSO), a_receiver(Service.UU))
    a1, a2 = story.sends(A, 10), story.sends(A, 20)
    b1 = story.sends(B, 15)
    story.delivers(A, a2, a1, a1)
    story.orders(A, a1, b1, a2)
    story.delivers(B, b1, a1, a2)
    story.orders(B, a1, b1, a2)
    story.delivers(R, a2, a2)
    story.drops(A, 20)
    story.ends(A, B, R)
    violations = check(story.trace)
    assert violations == []


def test_a_gap_excuses_what_lies_before_it() -> None:
    story = Story()
    a1, b1, a2, b2 = story.sends(A, 10), story.sends(B, 20), story.sends(A, 30), story.sends(B, 40)
    for sender in (A, B):
        story.delivers(sender, a1, b1, a2, b2)
    story.delivers(R, a1)
    story.gap(R, R2)
    story.installs(R2, 0, A, B)
    story.delivers(R2, a2, b2)
    story.ends(A, B, R2)
    assert check(story.trace) == []


def test_a_crashed_sender_excuses_order_and_buffers_but_not_other_sources() -> None:
    story = Story(a_member(A, Service.RSO), a_member(B), a_receiver(Service.RSO))
    a1, b1 = story.sends(A, 10), story.sends(B, 20)
    story.delivers(A, a1)
    story.delivers(R, a1)
    story.crashes(B)
    story.ends(A, R, buffered=100)
    assert check(story.trace) == []
    a2 = story.sends(A, 30)
    story.delivers(A, a2)
    assert [violation.property for violation in check(story.trace)] == ["21 delivery liveness"]
    assert b1.member == B


def test_who_was_away_owes_and_is_owed_nothing_of_that_time() -> None:
    """Holes, causes and messages of another branch are no violations after a merge."""
    story = Story(a_member(A), a_member(B), a_receiver(Service.RSO), live=True)
    story.all_install(5, A, B)
    a1 = story.sends(A, 10)
    for member in (A, B):
        story.delivers(member, a1)
    story.delivers(R, a1)
    story.orders(R, a1)
    story.installs(A, 20, A)
    for member in (B, R):
        story.installs(member, 21, B, leader=int(B))
    a2 = story.sends(A, 30)
    story.delivers(A, a2)
    for member, others in ((A, (A,)), (B, (B,)), (R, (B,))):
        story.installs(member, 40, A, B, transitional=others)
    a3 = story.sends(A, 50)
    for member in (A, B, R):
        story.delivers(member, a3)
    story.orders(R, a3)
    story.ends(A, B, R, senders=(A, B))
    assert check(story.trace) == []


def test_a_sender_that_leaves_installs_the_view_without_itself() -> None:
    story = Story(live=True)
    story.all_install(5, A, B)
    b1 = story.sends(B, 10)
    for member in (A, B, R):
        story.delivers(member, b1)
    for member in (A, B, R):
        story.installs(member, 20, A, departed="left")
    story.leaves(B)
    story.ends(A, R, senders=(A,))
    assert check(story.trace) == []


def test_a_crashed_senders_last_messages_may_be_lost_to_all_that_go_on() -> None:
    story = Story(live=True)
    story.all_install(5, A, B)
    b1, b2 = story.sends(B, 10), story.sends(B, 12)
    story.delivers(B, b1, b2)
    story.crashes(B)
    for member in (A, R):
        story.delivers(member, b1)
    for member in (A, R):
        story.installs(member, 20, A)
    story.ends(A, R, senders=(A,))
    assert check(story.trace) == []


def test_a_receiver_that_was_disturbed_counts_again_when_it_says_so() -> None:
    story = Story(a_member(A), a_receiver(), live=True)
    story.all_install(5, A)
    story.counts(R)
    story.disturbs(R)
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.drops(A, 10)
    story.delivers(R, a1)
    story.ends(A, R, senders=(A,))
    assert check(story.trace) == []
    story.counts(R)
    a2 = story.sends(A, 20)
    story.delivers(A, a2)
    story.drops(A, 20)
    story.delivers(R, a2)
    assert [violation.property for violation in check(story.trace)] == ["16 stability is true"]


def test_one_that_had_gone_on_without_a_message_is_not_owed_it_by_who_never_follows() -> None:
    story = Story(a_member(A), a_member(B), a_receiver(), live=True)
    story.all_install(5, A, B)
    story.counts(R)
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.installs(B, 20, B, leader=int(B))
    story.installs(R, 20, B, leader=int(B))
    story.counts(R)
    story.drops(A, 10)
    story.crashes(A)
    story.ends(B, R, senders=(B,))
    assert check(story.trace) == []


def test_one_that_was_added_and_left_out_before_it_knew_is_not_waited_for() -> None:
    """Views say that it failed (H3); what it then misses it skips with a gap (M5)."""
    story = Story(a_member(A), a_receiver(), live=True)
    story.all_install(5, A)
    story.counts(R)
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.installs(A, 20, A, R)
    story.installs(A, 30, A)
    story.drops(A, 30)
    story.gap(R, R2)
    story.installs(R2, 30, A)
    story.ends(A, R2, senders=(A,))
    assert check(story.trace) == []


def test_views_by_ordered_messages_break_ties_as_messages_do() -> None:
    story = Story(a_member(A), a_member(B), a_member(C), live=True)
    for member in (A, B, C):
        story.installs(member, 5, A, B, C)
    a1 = story.sends(A, 10)
    c1 = story.sends(C, 10)
    for member in (A, B, C):
        story.delivers(member, a1)
        story.installs(member, 10, A, C, leader=int(B), departed="left")
        story.delivers(member, c1)
    story.leaves(B)
    story.ends(A, C, senders=(A, C))
    assert check(story.trace) == []


def test_primary_views_that_follow_one_another_are_right() -> None:
    story = Story(a_member(A), a_member(B), a_member(C), live=True)
    for member in (A, B, C):
        story.installs(member, 5, A, B, C)
    story.may_send(A, 1)
    story.installs(B, 10, B, C, leader=int(B))
    story.may_send(B, 2)  # A, cut off, has not noticed yet
    story.installs(C, 20, C, leader=int(C), departed="left")
    story.may_send(C, 3)
    assert one_primary(History(story.trace)) is None


def test_sites_that_were_never_in_a_primary_view_begin_one_of_their_own() -> None:
    """Nobody could have told them; when they meet the others, the two lines become one."""
    story = Story(a_member(A), a_member(B), a_member(C), live=True)
    story.installs(A, 5, A)
    story.installs(B, 6, B, leader=int(B))
    story.may_send(A, 1)
    story.may_send(B, 1)
    story.installs(A, 10, A, C)
    story.may_send(A, 2)
    for member in (A, B, C):
        story.installs(member, 20, A, B, C)
    story.may_send(B, 3)
    assert one_primary(History(story.trace)) is None


def test_one_that_has_not_noticed_does_not_hold_a_view() -> None:
    story = Story(a_member(A), a_member(B), a_member(C), live=True)
    for member in (A, B, C):
        story.installs(member, 5, A, B, C)
        story.may_send(member, 1)
    for number, (start, left) in enumerate(((10, (B, C)), (20, (C,))), 2):
        for member in left:
            story.may_not_send(member)
        for member in left:
            story.installs(member, start, *left)
            story.may_send(member, number)
    assert one_primary(History(story.trace)) is None
