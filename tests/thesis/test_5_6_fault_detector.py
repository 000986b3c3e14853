"""T5.6: processes are suspected by their silence."""

from __future__ import annotations

from intergroup_core.wire.membership import FailureBlock, Join
from intergroup_core.wire.messages import KeepAlive
from tests.builders import A, B, C, R
from tests.thesis.wired import Wired


def test_a_process_that_is_silent_for_long_enough_is_suspected() -> None:
    group = Wired()
    a, _, c = group.senders(A, B, C)
    group.crash(c)
    group.run(600)
    assert a.state == "sender"
    group.run(600)
    assert C in group.heard(Join)[-1].fails
    assert a.members == (A, B)


def test_every_sender_sends_periodically_though_it_has_no_data() -> None:
    group = Wired(membership={"silence_ms": 60_000.0})
    nodes = group.senders(A, B, C)
    group.said.clear()
    group.run(5_000)
    assert all(len(group.heard(KeepAlive, node.endpoint.me)) > 5 for node in nodes)
    assert all(node.state == "sender" for node in nodes)
    assert group.heard(Join) == []


def test_every_message_of_a_process_counts_as_a_sign_of_life() -> None:
    group = Wired()
    a, b = group.senders(A, B)
    group.lets = lambda source, target, message: not isinstance(message, KeepAlive)
    for _ in range(60):
        group.send(b, "alive")
        group.send(a, "alive")
        group.run(50)
    assert a.state == b.state == "sender"
    assert a.members == (A, B)


def test_what_others_repair_is_no_sign_of_life() -> None:
    group = Wired()
    a, b, c = group.senders(A, B, C)
    group.send(c, "last")
    group.crash(c)
    group.run(1_500)
    assert a.members == b.members == (A, B)
    assert a.records == b.records == [b"last"]


def test_a_process_that_was_paused_accuses_nobody() -> None:
    """M8."""
    group = Wired(membership={"suspect_ms": 700.0})
    a, b, c = group.senders(A, B, C)
    group.said.clear()
    group.pause(c, 650)
    group.run(1_500)
    assert {node.members for node in (a, b, c)} == {(A, B, C)}
    assert group.heard(Join) == [], "not even a repair was begun"


def test_a_process_that_was_paused_for_so_long_that_others_went_on_comes_back() -> None:
    group = Wired(membership={"silence_ms": 60_000.0})
    a, b, c = group.senders(A, B, C)
    group.said.clear()
    group.pause(c, 3_000)
    group.run(2_500)
    assert a.members == b.members == (A, B)
    group.run(6_000)
    assert {node.members for node in (a, b, c)} == {(A, B, C)}
    assert not group.heard(FailureBlock)
    assert c.endpoint.counters.gaps == 0


def test_receivers_are_not_suspected_but_forgotten() -> None:
    group = Wired(membership={"forget_ms": 500.0})
    a, b = group.senders(A, B)
    receiver = group.join(R)
    group.run_until(lambda: a.endpoint.receivers == b.endpoint.receivers == {R: f"m{R:x}"})
    group.crash(receiver)
    group.said.clear()
    group.run(2_000)
    assert group.heard(Join) == []
    assert a.endpoint.receivers == b.endpoint.receivers == {}
