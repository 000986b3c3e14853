"""T5.3.2 and T5.3.3: why the two stable states are left, and where to."""

from __future__ import annotations

import pytest

from intergroup_core.effects import Departure, Gap, Left
from intergroup_core.errors import LocalProtocolError
from intergroup_core.wire.membership import Farewell, Join, ViewRequest
from intergroup_core.wire.run import Run
from tests.builders import START, STRANGER, A, B, C, R, a_control_frame, a_keepalive, after, hears, millis, said, ticked
from tests.membership_builders import a_failure_block, a_join, a_live_receiver, a_view_id
from tests.property.fuzz_frames import a_live_sender
from tests.thesis.wired import Wired

OTHER = a_view_id(START + 10**6, STRANGER, 7)
FOREIGN = a_keepalive(STRANGER, 0, START + 10**8, view_tag=OTHER.tag)


# Leaving the Receiver state


def test_a_receiver_leaves_its_state_to_send() -> None:
    receiver = a_live_receiver(R)
    receiver.send([b"mine"], after(millis(1)))
    assert receiver.state == "to sender"


def test_a_receiver_leaves_its_state_when_a_sender_starts_a_repair() -> None:
    receiver = a_live_receiver(R)
    hears(receiver, a_control_frame(a_join(B)), now=after(millis(1)))
    assert receiver.state == "receiver wait"


def test_a_failure_alone_does_not_move_a_receiver() -> None:
    receiver = a_live_receiver(R)
    effects = ticked(receiver, after(millis(5_000)))
    assert receiver.state == "receiver"
    assert said(effects, Join) == []


def test_a_foreign_message_alone_does_not_move_a_receiver() -> None:
    receiver = a_live_receiver(R)
    for ms in range(50, 3_000, 50):
        frames = [FOREIGN, *(a_keepalive(source, 0, START + ms) for source in (A, B, C))]
        hears(receiver, *frames, now=after(millis(ms)))
        receiver.tick(after(millis(ms)))
    assert receiver.state == "receiver"


def test_a_receiver_whose_senders_are_all_gone_and_that_hears_of_another_view_bootstraps_anew() -> None:
    receiver = a_live_receiver(R)
    effects = ticked(receiver, after(millis(2_000)))
    for ms in range(2_000, 4_000, 50):
        effects += hears(receiver, FOREIGN, now=after(millis(ms)))
        effects += ticked(receiver, after(millis(ms)))
    assert receiver.state == "bootstrap"
    (gap,) = [effect for effect in effects if isinstance(effect, Gap)]
    assert gap.incarnation == receiver.me != R
    assert said(effects, ViewRequest), "it asked for the change that might follow its view first"


def test_in_an_empty_view_a_receiver_has_nothing_to_do() -> None:
    group = Wired()
    (a,) = group.senders(A)
    receiver = group.join(R)
    group.run_until(lambda: receiver.state == "receiver")
    group.leave(a)
    group.run(10_000)
    assert (receiver.state, receiver.members) == ("receiver", ())


# Leaving the Sender state: it wishes to


def test_a_sender_that_leaves_is_in_no_view_after_its_leave() -> None:
    group = Wired()
    a, b, c = group.senders(A, B, C)
    group.said.clear()
    group.send(c, "last words")
    group.leave(c)
    assert c.state == "to receiver"
    group.run_until(lambda: c.state == "left")
    group.run(200)
    assert a.stream[-2:] == b.stream[-2:] == ["last words", "a/b"]
    assert a.installs[-1].departed == (Departure(C, f"m{C:x}", "left"),)
    assert group.heard(Join) == [], "nothing to repair"


def test_a_sender_that_leaves_is_there_until_its_leave_is_delivered() -> None:
    group = Wired()
    _, _, c = group.senders(A, B, C)
    group.lets = lambda source, target, message: target != C
    group.leave(c)
    group.run(100)
    assert c.state == "to receiver", "the others' promises do not reach it"


def test_after_its_leave_no_message_of_a_sender_is_accepted() -> None:
    group = Wired()
    (a,) = group.senders(A)
    group.leave(a)
    group.run_until(lambda: a.state == "left")
    with pytest.raises(LocalProtocolError, match="left"):
        a.endpoint.send([b"more"], group.now)
    assert a.effects[-1] == Left("left")
    assert group.heard(Farewell)


def test_what_was_accepted_before_is_sent() -> None:
    group = Wired()
    a, b = group.senders(A, B)
    group.send(b, *(f"record {number}" for number in range(50)))
    group.leave(b)
    group.run_until(lambda: b.state == "left")
    group.run(200)
    assert len(a.records) == 50


def test_a_join_moves_one_that_waits_for_its_leave_into_a_repair_and_it_still_leaves() -> None:
    """T5.3.3 sends it to the receivers' algorithm; others still need it, so it takes part (M6)."""
    group = Wired()
    a, b, c = group.senders(A, B, C)
    group.crash(a)
    group.leave(c)
    group.run(50)
    assert c.state == "to receiver"
    group.run_until(lambda: c.state == "left", most_ms=20_000)
    group.run(500)
    assert b.members == (B,)
    assert {departure.member for install in b.installs for departure in install.departed} == {A, C}


def test_a_sender_without_data_becomes_a_receiver_after_a_while() -> None:
    group = Wired(membership={"silence_ms": 500.0})
    a, b = group.senders(A, B)
    for _ in range(10):
        group.send(a, "busy")
        group.run(200)
    assert (a.state, b.state) == ("sender", "receiver")
    assert a.members == b.members == (A,)
    assert a.installs[-1].departed == (Departure(B, f"m{B:x}", "silence"),)


def test_the_last_sender_does_not_leave_for_silence() -> None:
    group = Wired(membership={"silence_ms": 500.0})
    nodes = group.senders(A, B, C)
    group.run(5_000)
    assert sorted(node.state for node in nodes) == ["receiver", "receiver", "sender"]
    (last,) = [node for node in nodes if node.state == "sender"]
    assert all(node.members == (last.id,) for node in nodes)


# Leaving the Sender state: somebody failed


def test_what_moves_a_sender_into_the_repair() -> None:
    for frame in (a_control_frame(a_join(B)), a_control_frame(a_failure_block(B, C, 5)), FOREIGN):
        sender = a_live_sender()
        hears(sender, frame, now=after(millis(1)))
        assert sender.state == "consensus"


def test_the_detectors_word_moves_a_sender_into_the_repair() -> None:
    sender = a_live_sender()
    joins = said(ticked(sender, after(millis(1_500))), Join)
    assert joins
    assert any(step.startswith("sender>consensus: failure") for step in sender.counters.transitions)


def test_a_message_of_a_blocked_process_moves_nobody() -> None:
    group = Wired()
    a, b, _ = group.senders(A, B, C)
    epoch = group.epoch(a)
    group.lets = lambda source, target, message: C not in (source, target)
    serial = 1 + max((join.serial for join in group.heard(Join, b.id)), default=0)
    group.hears(a, a_control_frame(a_failure_block(B, C, 99, serial=serial, epoch=epoch)))
    group.run_until(lambda: a.members == b.members == (A, B))
    assert a.installs[-1].departed == (Departure(C, f"m{C:x}", "blocked"),)
    repairs = a.endpoint.counters.repairs_of_membership
    group.hears(a, a_control_frame(a_join(C, serial=10**6, procs=[C], epoch=OTHER)))
    assert a.state == "sender"
    assert a.endpoint.counters.repairs_of_membership == repairs


def test_ordered_changes_are_no_data() -> None:
    group = Wired()
    a, b = group.senders(A, B)
    group.send(a, "data")
    group.run(200)
    assert any(run.change for run in group.heard(Run))
    assert b.records == [b"data"]
