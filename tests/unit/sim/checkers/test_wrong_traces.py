"""Each checker sees its own kind of wrong, and names it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from intergroup_core.ids import Service
from intergroup_core.sim.checkers import CHECKERS, History, Violation
from intergroup_core.sim.trace import Sent, StableDropped, TracedMember
from tests.unit.sim.checkers.traces import R2, A, B, C, R, Story, a_member, a_receiver


def unsent() -> Story:
    story = Story()
    story.sends(A, 10)
    story.delivers(R, Sent(0, A, 2, 2, 11, 11, 7))
    return story


def changed() -> Story:
    story = Story()
    story.delivers(R, story.sends(A, 10), digest=9)
    return story


def restamped() -> Story:
    story = Story()
    story.delivers(R, story.sends(A, 10)._replace(timestamp=11))
    return story


def changed_at_an_unreliable_receiver() -> Story:
    story = Story(a_member(A), a_receiver(Service.UU))
    story.delivers(R, story.sends(A, 10), digest=9)
    return story


def twice(service: Service) -> Callable[[], Story]:
    def tell() -> Story:
        story = Story(a_member(A), a_receiver(service))
        a1 = story.sends(A, 10)
        story.delivers(R, a1, a1)
        return story

    tell.__name__ = f"twice_{service.value}"
    return tell


def twice_internally() -> Story:
    story = Story(a_member(A, Service.UU))
    a1 = story.sends(A, 10)
    story.orders(A, a1, a1)
    return story


def not_to_itself() -> Story:
    story = Story()
    a1 = story.sends(A, 10)
    story.delivers(B, a1)
    story.delivers(R, a1)
    story.ends(A, B, R)
    return story


def not_to_itself_unreliably() -> Story:
    story = Story(a_member(A, Service.UU), a_receiver())
    a1 = story.sends(A, 10)
    story.orders(A, a1)
    story.ends(A, R)
    return story


def backwards(service: Service) -> Callable[[], Story]:
    def tell() -> Story:
        story = Story(a_member(A), a_member(B), a_receiver(service))
        a1, b1, a2 = story.sends(A, 10), story.sends(B, 15), story.sends(A, 20)
        story.delivers(R, a2, b1, a1)
        return story

    tell.__name__ = f"backwards_{service.value}"
    return tell


def a_hole() -> Story:
    story = Story(a_member(A), a_member(B), a_receiver(Service.RSO))
    a1, a2, a3 = story.sends(A, 10), story.sends(A, 20, frames=4), story.sends(A, 30)
    story.delivers(R, story.sends(B, 40), a1, a3)
    assert a2.seq == 5
    return story


def two_orders() -> Story:
    story = Story()
    a1, b1 = story.sends(A, 10), story.sends(B, 10)
    story.delivers(A, a1, b1)
    story.delivers(R, b1, a1)
    return story


def two_orders_of_what_a_third_lacks() -> Story:
    story = Story(a_member(A), a_member(B), a_member(C), a_receiver())
    a1, b1, c1 = story.sends(A, 10), story.sends(B, 11), story.sends(C, 12)
    a2 = story.sends(A, 20)
    story.delivers(C, c1, a1, a2)
    story.delivers(A, a1, b1)
    story.delivers(R, b1, a1)
    return story


def two_orders_inside_a_sender() -> Story:
    story = Story(a_member(A, Service.RSO), a_member(B), a_receiver())
    a1, b1 = story.sends(A, 10), story.sends(B, 10)
    story.orders(A, b1, a1)
    story.delivers(R, a1, b1)
    return story


def a_lost_tie_break() -> Story:
    story = Story(a_member(A), a_member(C), a_receiver())
    a1, c1 = story.sends(A, 10), story.sends(C, 10)
    story.delivers(R, c1, a1)
    return story


def below_its_view() -> Story:
    story = Story()
    story.installs(R, 10, A, B, leader=int(A))
    story.delivers(R, story.sends(A, 10))
    return story


def a_view_below_what_came_before() -> Story:
    story = Story()
    story.delivers(R, story.sends(A, 10))
    story.installs(R, 9, A, B)
    return story


def a_view_that_loses_the_tie() -> Story:
    story = Story()
    story.delivers(R, story.sends(B, 10))
    story.installs(R, 10, A, B, leader=int(A))
    return story


def at_its_own_promise() -> Story:
    story = Story()
    story.promises(A, 10)
    story.sends(A, 10)
    return story


def a_fragment_below_its_promise() -> Story:
    story = Story()
    story.promises(A, 10)
    story.sends(A, 12, frames=4)
    return story


def a_promise_at_its_last_data() -> Story:
    story = Story()
    story.sends(A, 10)
    story.promises(A, 10)
    return story


def a_promise_that_sinks() -> Story:
    story = Story()
    story.promises(A, 10)
    story.promises(A, 9)
    return story


def the_first_skipped(service: Service) -> Callable[[], Story]:
    def tell() -> Story:
        story = Story(a_member(A), a_receiver(service))
        _, a2 = story.sends(A, 10), story.sends(A, 20)
        story.delivers(R, a2)
        return story

    tell.__name__ = f"the_first_skipped_{service.value}"
    return tell


def a_source_skipped() -> Story:
    story = Story()
    _, b1 = story.sends(A, 10), story.sends(B, 20)
    story.delivers(R, b1)
    return story


def skipped_after_a_gap() -> Story:
    story = Story()
    a1, _, b1, b2 = story.sends(A, 10), story.sends(A, 20), story.sends(B, 15), story.sends(B, 30)
    story.gap(R, R2)
    story.installs(R2, 0, A, B)
    story.delivers(R2, b1, b2)
    assert a1.seq == 1
    return story


def an_effect_before_its_cause() -> Story:
    story = Story()
    a1 = story.sends(A, 10)
    story.delivers(B, a1)
    b1 = story.sends(B, 20)
    story.delivers(R, b1, a1)
    return story


def an_effect_before_a_cause_at_two_removes() -> Story:
    story = Story(a_member(A), a_member(B, Service.UU), a_member(C), a_receiver())
    a1 = story.sends(A, 10)
    story.delivers(B, a1)
    b1 = story.sends(B, 20)
    story.delivers(C, b1)
    c1 = story.sends(C, 30)
    story.delivers(R, c1, a1, b1)
    return story


def an_effect_without_its_cause() -> Story:
    story = Story()
    a1 = story.sends(A, 10)
    story.delivers(B, a1)
    story.delivers(R, story.sends(B, 20))
    return story


def an_effect_without_an_internal_cause() -> Story:
    story = Story(a_member(A), a_member(B, Service.UU), a_receiver())
    a1 = story.sends(A, 10)
    story.orders(B, a1)
    story.delivers(R, story.sends(B, 20))
    return story


def dropped_too_early() -> Story:
    story = Story()
    a1 = story.sends(A, 10)
    for member in (A, B):
        story.delivers(member, a1)
    story.drops(A, 10)
    story.delivers(R, a1)
    return story


def dropped_before_a_crashed_member_had_it() -> Story:
    story = Story()
    a1 = story.sends(A, 10)
    for member in (A, B):
        story.delivers(member, a1)
    story.crashes(R)
    story.drops(A, 10)
    return story


def dropped_before_a_sender_had_ordered_it() -> Story:
    story = Story(a_member(A), a_member(B, Service.RSO))
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.delivers(B, a1)
    story.drops(A, 10)
    return story


def never_arrived() -> Story:
    story = Story()
    a1, a2 = story.sends(A, 10), story.sends(A, 20)
    for member in (A, B):
        story.delivers(member, a1, a2)
    story.delivers(R, a1)
    story.ends(A, B, R)
    return story


def never_ordered() -> Story:
    story = Story(a_member(A), a_member(B, Service.RSO))
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.delivers(B, a1)
    story.ends(A, B)
    return story


def still_buffered() -> Story:
    story = Story()
    story.ends(A, B)
    story.ends(R, buffered=48)
    return story


def still_unsent() -> Story:
    story = Story()
    story.ends(A, R)
    story.ends(B, unsent=1)
    return story


# Views


def a_live_story(*members: TracedMember) -> Story:
    """A, B and the receiver R in a view that starts at 5, unless told otherwise."""
    story = Story(*(members or (a_member(A), a_member(B), a_receiver())), live=True)
    senders = tuple(member.id for member in story.trace.members if member.id != R)
    story.all_install(5, *senders)
    return story


def a_view_without_itself() -> Story:
    story = a_live_story()
    story.installs(A, 10, B)
    return story


def a_view_again() -> Story:
    story = a_live_story()
    story.installs(R, 5, A, B)
    return story


def a_view_of_before() -> Story:
    story = a_live_story()
    story.installs(R, 4, A, B, leader=int(C))
    return story


def a_delivery_before_any_view() -> Story:
    story = Story(live=True)
    story.installs(A, 5, A)
    story.delivers(R, story.sends(A, 10))
    return story


def a_send_before_any_view() -> Story:
    story = Story(live=True)
    story.sends(A, 10)
    return story


def a_send_in_a_view_of_others() -> Story:
    story = Story(live=True)
    story.installs(A, 5, B)
    story.sends(A, 10)
    return story


def a_delivery_after_leaving() -> Story:
    story = a_live_story()
    story.leaves(R)
    story.delivers(R, story.sends(A, 10))
    return story


def a_send_after_leaving() -> Story:
    story = a_live_story()
    story.leaves(A)
    story.sends(A, 10)
    return story


def two_memberships_of_a_view() -> Story:
    story = a_live_story()
    story.installs(A, 10, A, B)
    story.installs(R, 10, A)
    return story


def came_from_elsewhere() -> Story:
    """B was alone in between, so it did not come along with A."""
    story = a_live_story()
    story.installs(B, 7, B)
    story.installs(B, 10, A, B, transitional=(B,))
    story.installs(A, 10, A, B)
    return story


def left_behind() -> Story:
    story = a_live_story()
    story.installs(B, 10, A, B)
    story.installs(A, 10, A, B, transitional=(A,))
    return story


def came_from_nowhere() -> Story:
    story = a_live_story(a_member(A), a_receiver())
    story.installs(R, 10, A, C, transitional=(A, C))
    return story


def nobody_said_who_joined() -> Story:
    story = a_live_story(a_member(A), a_receiver())
    view = story.installs(R, 10, A, C)
    story.trace.events[-1] = view._replace(joined=())
    return story


def nobody_said_who_went() -> Story:
    story = a_live_story()
    view = story.installs(R, 10, A)
    story.trace.events[-1] = view._replace(departed=())
    return story


def in_two_views() -> Story:
    story = a_live_story()
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.installs(R, 9, A, B)
    story.delivers(R, a1)
    return story


def in_two_views_inside() -> Story:
    story = a_live_story(a_member(A), a_member(B, Service.UU), a_receiver())
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.installs(B, 9, A, B)
    story.orders(B, a1)
    return story


def not_the_same_before_the_next_view() -> Story:
    story = a_live_story()
    a1, b1 = story.sends(A, 10), story.sends(B, 11)
    story.delivers(A, a1, b1)
    story.delivers(R, a1)
    for member in (A, R):
        story.installs(member, 20, A)
    return story


def not_the_same_after_its_cut() -> Story:
    """What was sent after R installed its first view is beyond any cut."""
    story = a_live_story()
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    for member in (A, R):
        story.installs(member, 20, A)
    return story


def less_inside_a_source_ordered_receiver() -> Story:
    story = a_live_story(a_member(A), a_receiver(Service.RSO))
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.delivers(R, a1)
    for member in (A, R):
        story.installs(member, 20, A)
    return story


def a_hole_across_views() -> Story:
    story = a_live_story(a_member(A), a_member(B), a_receiver(Service.RSO))
    a1, _, a3 = story.sends(A, 10), story.sends(A, 11), story.sends(A, 20)
    story.delivers(R, a1)
    story.installs(R, 15, A)
    story.delivers(R, a3)
    return story


def the_first_of_a_known_view_skipped() -> Story:
    story = a_live_story(a_member(A), a_member(B), a_receiver(Service.RSO))
    a1, a2 = story.sends(A, 10), story.sends(A, 11)
    story.delivers(A, a1, a2)
    story.installs(R, 15, A, B)
    story.delivers(R, a2)
    return story


def skipped_before_a_crash() -> Story:
    """B delivered beyond what A, which it waited for, had sent."""
    story = a_live_story()
    a1, b1 = story.sends(A, 10), story.sends(B, 11)
    story.delivers(B, b1)
    story.crashes(B)
    story.delivers(A, a1, b1)
    return story


def an_effect_without_its_cause_in_a_later_view() -> Story:
    story = a_live_story(a_member(A), a_member(B), a_member(C), a_receiver())
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.delivers(B, a1)
    for member in (A, B, R):
        story.installs(member, 15, A, B)
    story.delivers(R, story.sends(B, 20))
    return story


def dropped_before_a_receiver_that_counts_had_it() -> Story:
    story = a_live_story()
    story.counts(R)
    a1 = story.sends(A, 10)
    for member in (A, B):
        story.delivers(member, a1)
    story.drops(A, 10)
    story.delivers(R, a1)
    return story


def dropped_before_a_sender_of_the_view_had_it() -> Story:
    story = a_live_story()
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.installs(A, 20, A, B)
    story.drops(A, 10)
    return story


def two_views_at_the_end() -> Story:
    story = a_live_story()
    story.installs(A, 10, A)
    story.installs(B, 11, B)
    story.ends(A, B, senders=(A, B))
    return story


def a_dead_sender_in_the_last_view() -> Story:
    story = a_live_story()
    story.crashes(B)
    story.ends(A, R, senders=(A,))
    return story


def a_receiver_left_behind() -> Story:
    story = a_live_story()
    story.crashes(B)
    story.installs(A, 10, A)
    story.ends(A, R, senders=(A,))
    return story


def a_newcomer_left_out() -> Story:
    story = a_live_story()
    story.trace.members.append(a_member(C))
    story.ends(A, B, C, senders=(A, B, C))
    return story


def never_arrived_from_one_that_came_along() -> Story:
    story = a_live_story(a_member(A), a_member(B), a_receiver(Service.RSO))
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.orders(R, a1)
    story.crashes(B)
    for member in (A, R):
        story.installs(member, 20, A)
    story.ends(A, R, senders=(A,))
    return story


def never_arrived_from_one_that_left() -> Story:
    story = a_live_story()
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.delivers(B, a1)
    for member in (A, B, R):
        story.installs(member, 20, B, departed="left")
    story.leaves(A)
    story.ends(B, R, senders=(B,))
    return story


def not_to_itself_before_leaving() -> Story:
    story = a_live_story()
    story.sends(A, 10)
    story.leaves(A)
    return story


WRONG: dict[str, list[Callable[[], Story]]] = {
    "1 self inclusion": [a_view_without_itself],
    "2 local monotonicity": [a_view_again, a_view_of_before],
    "3 initial view": [
        a_delivery_before_any_view,
        a_send_before_any_view,
        a_send_in_a_view_of_others,
        a_delivery_after_leaving,
        a_send_after_leaving,
    ],
    "4 view agreement": [two_memberships_of_a_view],
    "5 transitional set": [
        came_from_elsewhere,
        left_behind,
        came_from_nowhere,
        nobody_said_who_joined,
        nobody_said_who_went,
    ],
    "9 same view delivery": [in_two_views, in_two_views_inside],
    "10 virtual synchrony": [
        not_the_same_before_the_next_view,
        not_the_same_after_its_cut,
        less_inside_a_source_ordered_receiver,
    ],
    "20 membership precision": [
        two_views_at_the_end,
        a_dead_sender_in_the_last_view,
        a_receiver_left_behind,
        a_newcomer_left_out,
    ],
    "6 integrity": [unsent, changed, restamped, changed_at_an_unreliable_receiver],
    "7 no duplication": [twice(Service.RSO), twice(Service.RTO), twice_internally],
    "8 self delivery": [
        not_to_itself,
        not_to_itself_unreliably,
        not_to_itself_before_leaving,
    ],
    "11 fifo": [backwards(Service.RSO), backwards(Service.RTO)],
    "12 reliable fifo": [
        a_hole,
        a_hole_across_views,
    ],
    "13 total order": [two_orders, two_orders_of_what_a_third_lacks, two_orders_inside_a_sender],
    "13a ascending": [a_lost_tie_break, below_its_view, a_view_below_what_came_before, a_view_that_loses_the_tie],
    "13b promises kept": [
        at_its_own_promise,
        a_fragment_below_its_promise,
        a_promise_at_its_last_data,
        a_promise_that_sinks,
    ],
    "13c nothing skipped": [
        the_first_skipped(Service.RSO),
        the_first_skipped(Service.RTO),
        a_source_skipped,
        skipped_after_a_gap,
        the_first_of_a_known_view_skipped,
        skipped_before_a_crash,
    ],
    "14 causal order": [an_effect_before_its_cause, an_effect_before_a_cause_at_two_removes],
    "15 reliable causal": [
        an_effect_without_its_cause,
        an_effect_without_an_internal_cause,
        an_effect_without_its_cause_in_a_later_view,
    ],
    "16 stability is true": [
        dropped_too_early,
        dropped_before_a_crashed_member_had_it,
        dropped_before_a_sender_had_ordered_it,
        dropped_before_a_receiver_that_counts_had_it,
        dropped_before_a_sender_of_the_view_had_it,
    ],
    "21 delivery liveness": [
        never_arrived,
        never_ordered,
        never_arrived_from_one_that_came_along,
        never_arrived_from_one_that_left,
    ],
    "22 buffers drain": [still_buffered, still_unsent],
}
BY_NUMBER = {(checker.__doc__ or "").split(".")[0]: checker for checker in CHECKERS}


@pytest.mark.parametrize(
    ("name", "tell"),
    [pytest.param(name, tell, id=tell.__name__) for name, stories in WRONG.items() for tell in stories],
)
def test_a_wrong_trace_is_caught_by_its_checker(name: str, tell: Callable[[], Story]) -> None:
    violation = BY_NUMBER[name.split()[0]](History(tell().trace))
    assert violation is not None
    assert violation.property == name
    assert violation.events


def test_every_checker_has_a_wrong_trace() -> None:
    assert {name.split()[0] for name in WRONG} == set(BY_NUMBER)


def test_a_violation_shows_the_events_that_make_it() -> None:
    story = dropped_too_early()
    violation = BY_NUMBER["16"](History(story.trace))
    assert isinstance(violation, Violation)
    assert violation.member == R
    sent, dropped = violation.events
    assert isinstance(sent, Sent)
    assert isinstance(dropped, StableDropped)
    shown = violation.to_json()
    assert shown["property"] == "16 stability is true"
    assert shown["member"] == "0000000000000077"
    assert shown["events"][0]["event"] == "sent"
