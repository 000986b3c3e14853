"""T5.3.1: how a process comes into a process group, and into its sender group."""

from __future__ import annotations

from intergroup_core.effects import Counted, Install, Left
from intergroup_core.ids import MemberId, timestamp_span
from intergroup_core.wire.membership import AddRequest, Join, MembershipChange, Solicitation, Sponsorship
from intergroup_core.wire.messages import KeepAlive
from intergroup_core.wire.run import Run
from tests.builders import (
    START,
    STRANGER,
    T0,
    A,
    B,
    C,
    R,
    S,
    a_control_frame,
    a_keepalive,
    a_message,
    after,
    delivered,
    hears,
    millis,
    said,
    ticked,
)
from tests.membership_builders import (
    a_change_frame,
    a_failure_block,
    a_join,
    a_live_endpoint,
    a_live_receiver,
    a_solicitation,
    a_sponsorship,
    a_view_id,
    an_add,
)
from tests.thesis.wired import Wired

OTHER = a_view_id(START + 10**6, STRANGER, 7)


# Bootstrap Receiver


def test_a_process_finds_the_group_by_calling_for_a_member_of_the_sender_group() -> None:
    newcomer = a_live_endpoint(R)
    (call,) = said(newcomer.start(T0), Solicitation)
    assert (call.member, call.sends) == (R, False)
    assert newcomer.state == "bootstrap"


def test_the_answer_names_the_view_its_senders_their_next_seqs_and_the_time() -> None:
    group = Wired()
    a, _ = group.senders(A, B)
    group.send(a, "one", "two")
    group.run(200)
    receiver = group.join(R)
    group.run_until(lambda: receiver.state == "receiver")
    answer = next(each for each in group.heard(Sponsorship) if each.newcomer == R)
    assert a.endpoint.view is not None
    assert answer.view == a.endpoint.view.id
    assert [peer.id for peer in answer.peers] == [A, B]
    assert dict(answer.activations)[A] > 1
    assert answer.position > START


def test_delivery_begins_after_the_time_at_which_the_view_is_installed() -> None:
    group = Wired()
    a, b = group.senders(A, B)
    group.send(a, "before")
    group.run(300)
    receiver = group.join(R)
    group.run_until(lambda: receiver.state == "receiver")
    group.send(b, "after")
    group.run(300)
    assert receiver.stream == ["a/b", "after"]
    assert a.records == b.records == [b"before", b"after"]


def test_the_first_message_to_deliver_of_each_process_is_the_one_with_the_seq_told() -> None:
    receiver = a_live_endpoint(R)
    receiver.start(T0)
    effects = hears(
        receiver,
        a_control_frame(a_sponsorship(newcomer=R, activations={A: 4, B: 1, C: 9})),
        *a_message(sender=A, seq=3, timestamp=START + 3),
        *a_message(sender=A, seq=4, timestamp=START + 4),
        *(a_keepalive(B, 0, START + 10), a_keepalive(C, 8, START + 10)),
        now=T0,
    )
    assert delivered(effects) == [(A, 4)]


def test_a_receiver_that_installed_the_view_is_in_the_receiver_state() -> None:
    receiver = a_live_receiver(R)
    assert receiver.state == "receiver"
    assert not receiver.is_sender


def test_another_sponsor_is_asked_if_one_does_not_answer() -> None:
    group = Wired()
    a, b = group.senders(A, B)
    group.crash(a)
    receiver = group.join(R)
    group.run(300)
    assert receiver.state == "receiver"
    assert b.endpoint.me in {answer.member for answer in group.heard(Sponsorship) if answer.newcomer == R}


def test_a_newcomer_is_counted_before_anything_it_needs_becomes_stable() -> None:
    """D7: what the sponsor had not delivered when it answered stays until the newcomer knows itself counted."""
    group = Wired()
    a, b = group.senders(A, B)
    receiver = group.join(R)
    group.run_until(lambda: receiver.state == "receiver")
    group.send(a, "needed")
    group.run_until(lambda: receiver.had(Counted) == [Counted(True)])
    group.run(500)
    assert receiver.records == [b"needed"]
    assert b.endpoint.receivers == {R: f"m{R:x}"}


def test_what_a_newcomer_needs_is_kept_though_nobody_counts_it_yet() -> None:
    """D7: the sponsor acknowledges no further than where the newcomer starts, until it is counted."""
    group = Wired()
    a, b = group.senders(A, B)
    known = (Solicitation, Sponsorship)
    group.lets = lambda source, target, message: R not in (source, target) or isinstance(message, known)
    receiver = group.join(R)
    group.run_until(lambda: receiver.state == "receiver")
    group.send(b, "needed")
    group.run(1_000)
    assert a.records == [b"needed"]
    assert b.endpoint.buffered_bytes > 0
    group.heal()
    group.run(1_000)
    assert receiver.records == [b"needed"]
    assert receiver.endpoint.me == R, "no gap was needed"


def test_a_newcomer_that_is_not_heard_of_again_holds_nothing_back_for_ever() -> None:
    group = Wired(membership={"lease_ms": 500.0, "forget_ms": 500.0})
    _, b = group.senders(A, B)
    receiver = group.join(R)
    group.run_until(lambda: receiver.state == "receiver")
    group.crash(receiver)
    group.send(b, "not needed")
    group.run(3_000)
    assert b.endpoint.buffered_bytes == 0


def test_a_newcomer_with_a_wild_clock_is_refused_and_leaves() -> None:
    group = Wired()
    (a,) = group.senders(A)
    group.hears(a, a_control_frame(a_solicitation(R, clock=START + timestamp_span(millis(3_600_000)))))
    (answer,) = [each for each in group.heard(Sponsorship) if each.newcomer == R]
    newcomer = a_live_endpoint(R)
    newcomer.start(T0)
    assert hears(newcomer, a_control_frame(answer), now=T0)[-1] == Left("clock")


# Bootstrap Sender


def test_a_process_that_finds_nobody_begins_a_view_alone_if_it_is_to_send() -> None:
    group = Wired()
    alone = group.join(A, sender=True)
    group.send(alone, "first")
    assert alone.had(Install) == [], "no user message is sent before the repair algorithm is concluded"
    group.run(1_500)
    assert alone.state == "sender"
    assert alone.stream == ["a", "first"]


def test_a_receiver_that_finds_nobody_goes_on_looking() -> None:
    group = Wired()
    receiver = group.join(R)
    group.run(5_000)
    assert receiver.state == "bootstrap"
    sender = group.join(A, sender=True)
    group.run(2_000)
    assert (sender.state, receiver.state) == ("sender", "receiver")


def test_processes_that_begin_at_the_same_time_end_in_one_view() -> None:
    group = Wired()
    nodes = [group.join(member, sender=True) for member in (A, B, C)]
    group.run(3_000)
    assert {node.members for node in nodes} == {(A, B, C)}
    assert len({node.endpoint.view for node in nodes}) == 1


# To Sender


def test_a_receiver_that_wants_to_send_has_a_sponsor_add_it() -> None:
    group = Wired()
    a, b = group.senders(A, B)
    receiver = group.join(R)
    group.run_until(lambda: receiver.state == "receiver")
    group.send(receiver, "mine")
    assert receiver.state == "to sender"
    group.run(500)
    assert receiver.state == "sender"
    assert len([run for run in group.heard(Run) if run.change]) >= 2, "B's Add and R's"
    assert {node.members for node in (a, b, receiver)} == {(A, B, R)}
    assert [node.records for node in (a, b, receiver)] == [[b"mine"]] * 3


def test_the_view_with_a_new_sender_begins_at_its_add() -> None:
    group = Wired()
    a, b, c = group.senders(A, B, C)
    ids = {node.endpoint.view for node in (a, b, c)}
    assert len(ids) == 1
    (view,) = ids
    assert view is not None
    assert view.id.leader in (A, B), "whoever sent the Add"


def test_a_new_sender_speaks_at_once() -> None:
    group = Wired()
    group.senders(A, B)
    assert group.heard(KeepAlive, MemberId(B)), "M2"


def test_a_request_that_is_not_confirmed_goes_to_another_sponsor() -> None:
    receiver = a_live_receiver(R)
    asked = said(receiver.send([b"mine"], after(millis(1))), AddRequest)
    asked += said(ticked(receiver, after(millis(400))), AddRequest)
    assert {request.sponsor for request in asked} == {A, B, C}


def test_what_sends_one_that_waits_to_be_added_into_the_repair() -> None:
    for frame in (
        a_control_frame(a_join(B)),
        a_control_frame(a_failure_block(B, C, 5)),
        a_keepalive(STRANGER, 0, START + 10**8, view_tag=OTHER.tag),
    ):
        receiver = a_live_receiver(R)
        receiver.send([b"mine"], after(millis(1)))
        hears(receiver, frame, now=after(millis(2)))
        assert receiver.state == "consensus"


def test_a_failure_sends_one_that_waits_to_be_added_into_the_repair() -> None:
    receiver = a_live_receiver(R)
    receiver.send([b"mine"], after(millis(1)))
    joins = said(ticked(receiver, after(millis(1_500))), Join)
    assert {A, B, C} & set(joins[0].fails)
    assert any(step.startswith("to sender>consensus") for step in receiver.counters.transitions)


def test_where_the_sender_group_is_empty_a_process_runs_the_repair_by_itself() -> None:
    group = Wired()
    (a,) = group.senders(A)
    receiver = group.join(R)
    group.run_until(lambda: receiver.state == "receiver")
    group.leave(a)
    group.run_until(lambda: receiver.members == ())
    group.send(receiver, "on my own")
    group.run(500)
    assert receiver.state == "sender"
    assert receiver.members == (R,)
    assert receiver.records == [b"on my own"]
    assert receiver.had(Install)[-1].joined == (R,)


def test_receivers_of_an_empty_view_follow_the_next_sender_without_bootstrap() -> None:
    """M14."""
    group = Wired()
    (a,) = group.senders(A)
    receivers = [group.join(member) for member in (R, S)]
    group.run_until(lambda: all(node.state == "receiver" for node in receivers))
    group.leave(a)
    group.run_until(lambda: all(node.members == () for node in receivers))
    group.send(receivers[0], "first")
    group.run(500)
    assert receivers[1].records == [b"first"]
    assert receivers[1].endpoint.counters.gaps == 0
    assert group.heard(MembershipChange)


def test_an_add_of_one_whose_frames_came_first_makes_them_count() -> None:
    """M10, M13: frames of a sender whose Add is still on its way are held, not foreign."""
    receiver = a_live_receiver(R)
    effects = hears(receiver, *a_message(sender=S, seq=1, timestamp=START + 50), now=after(millis(1)))
    assert receiver.state == "receiver"
    assert receiver.counters.frames_held == 1
    effects = hears(receiver, a_change_frame(an_add(S), A, 1, START + 10), now=after(millis(2)))
    assert delivered(effects) == []
    assert receiver.counters.dropped == {}
