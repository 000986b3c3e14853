"""Wrong traces of groups whose members come and go, by the property that each breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from intergroup_core.ids import Service
from intergroup_core.sim.trace import TracedMember
from tests.unit.sim.checkers.traces import R2, A, B, C, R, Story, a_member, a_receiver


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


def dropped_before_one_that_was_just_added_had_it() -> Story:
    story = Story(a_member(A), a_receiver(), live=True)
    story.all_install(5, A)
    story.counts(R)
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.installs(A, 20, A, R)
    story.drops(A, 20)
    story.installs(A, 30, A)
    story.gap(R, R2)
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


def two_halves_may_send() -> Story:
    story = a_live_story()
    story.may_send(A, 1)
    story.installs(A, 10, A)
    story.installs(B, 11, B, leader=int(B))
    story.may_send(A, 2)
    story.may_send(B, 2)
    return story


def a_half_goes_on_beside_the_next() -> Story:
    """Both know of a view of all three; its greater part goes on twice before the other one does."""
    story = a_live_story(a_member(A), a_member(B), a_member(C))
    story.may_send(A, 1)
    story.installs(A, 10, A, B)
    story.may_send(A, 2)
    story.installs(A, 20, A)
    story.may_send(A, 3)
    story.installs(C, 30, C, leader=int(C))
    story.may_send(C, 4)
    return story


def a_restarted_half_may_send() -> Story:
    """By its site it was in the view before, whatever its id is now."""
    again = replace(a_member(C), site=f"m{B:x}")
    story = a_live_story(a_member(A), a_member(B))
    story.trace.members.append(again)
    story.may_send(A, 1)
    story.installs(A, 10, A)
    story.may_send(A, 2)
    story.crashes(B)
    story.installs(C, 20, C, leader=int(C))
    story.may_send(C, 2)
    return story


def two_are_held_at_a_time() -> Story:
    """A made views by itself that name B, who never heard of them; by their numbers they follow one another."""
    story = a_live_story(a_member(A), a_member(B), a_member(C))
    story.may_send(A, 1)
    story.installs(B, 10, B, leader=int(B))
    story.may_send(B, 2)
    story.installs(A, 11, A, B, C)
    story.may_send(A, 3)
    story.installs(A, 20, A, C)
    story.may_send(A, 4)
    story.installs(C, 20, A, C)
    story.may_send(C, 4)
    return story


WRONG_LIVE: dict[str, list[Callable[[], Story]]] = {
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
    "8 self delivery": [not_to_itself_before_leaving],
    "12 reliable fifo": [a_hole_across_views],
    "13c nothing skipped": [the_first_of_a_known_view_skipped, skipped_before_a_crash],
    "15 reliable causal": [an_effect_without_its_cause_in_a_later_view],
    "16 stability is true": [
        dropped_before_a_receiver_that_counts_had_it,
        dropped_before_a_sender_of_the_view_had_it,
        dropped_before_one_that_was_just_added_had_it,
    ],
    "25 one primary": [
        two_halves_may_send,
        a_half_goes_on_beside_the_next,
        a_restarted_half_may_send,
        two_are_held_at_a_time,
    ],
    "21 delivery liveness": [never_arrived_from_one_that_came_along, never_arrived_from_one_that_left],
}
