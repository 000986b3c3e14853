"""Each checker sees its own kind of wrong, and names it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from intergroup_core.ids import Service
from intergroup_core.sim.checkers import CHECKERS, History, Violation
from intergroup_core.sim.trace import Sent, StableDropped
from tests.unit.sim.checkers.live_wrongs import WRONG_LIVE
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


WRONG: dict[str, list[Callable[[], Story]]] = {
    "6 integrity": [unsent, changed, restamped, changed_at_an_unreliable_receiver],
    "7 no duplication": [twice(Service.RSO), twice(Service.RTO), twice_internally],
    "8 self delivery": [not_to_itself, not_to_itself_unreliably],
    "11 fifo": [backwards(Service.RSO), backwards(Service.RTO)],
    "12 reliable fifo": [a_hole],
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
    ],
    "14 causal order": [an_effect_before_its_cause, an_effect_before_a_cause_at_two_removes],
    "15 reliable causal": [an_effect_without_its_cause, an_effect_without_an_internal_cause],
    "16 stability is true": [
        dropped_too_early,
        dropped_before_a_crashed_member_had_it,
        dropped_before_a_sender_had_ordered_it,
    ],
    "21 delivery liveness": [never_arrived, never_ordered],
    "22 buffers drain": [still_buffered, still_unsent],
}
BY_NUMBER = {(checker.__doc__ or "").split(".")[0]: checker for checker in CHECKERS}


@pytest.mark.parametrize(
    ("name", "tell"),
    [
        pytest.param(name, tell, id=tell.__name__)
        for wrong in (WRONG, WRONG_LIVE)
        for name, stories in wrong.items()
        for tell in stories
    ],
)
def test_a_wrong_trace_is_caught_by_its_checker(name: str, tell: Callable[[], Story]) -> None:
    violation = BY_NUMBER[name.split()[0]](History(tell().trace))
    assert violation is not None
    assert violation.property == name
    assert violation.events


def test_every_checker_has_a_wrong_trace() -> None:
    assert {name.split()[0] for name in WRONG.keys() | WRONG_LIVE.keys()} == set(BY_NUMBER)


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
