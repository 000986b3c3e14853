from __future__ import annotations

from intergroup_core.ids import Service
from intergroup_core.sim.checkers import CHECKERS, check
from intergroup_core.sim.trace import Trace
from tests.unit.sim.checkers.traces import R2, A, B, R, Story, a_member, a_receiver, a_right_live_story, a_right_story


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
        "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "13a", "13b", "13c", "14", "15", "16", "20",
        "21", "22",
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
