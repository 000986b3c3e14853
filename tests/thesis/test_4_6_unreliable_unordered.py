"""T4.6: the delivery that IP multicast itself gives."""

from __future__ import annotations

from intergroup_core.effects import Effect
from intergroup_core.endpoint import Endpoint
from intergroup_core.ids import Service
from tests.builders import (
    START,
    T0,
    A,
    B,
    C,
    S,
    a_control_frame,
    a_keepalive,
    a_message,
    a_repair,
    a_report,
    after,
    an_arrival,
    an_endpoint,
    bursts,
    delivered,
    millis,
    records_delivered,
)


def a_receiver() -> Endpoint:
    receiver = an_endpoint(S, service=Service.UU, counted=(A, B, C))
    receiver.start(T0)
    return receiver


def hears(receiver: Endpoint, *frames: bytes) -> list[Effect]:
    return receiver.receive(an_arrival(*frames), after(millis(1)))


def test_upon_reception_all_data_messages_are_delivered() -> None:
    receiver = a_receiver()
    for source in (A, B, C):
        effects = hears(receiver, *a_message([b"x"], sender=source, timestamp=START + 5))
        assert delivered(effects) == [(source, 1)], "no wait for order or for anyone"


def test_all_other_messages_are_discarded() -> None:
    receiver = a_receiver()
    (frame,) = a_message([b"x"])
    effects = hears(receiver, a_keepalive(), a_control_frame(a_report()), a_repair(frame))
    assert effects == []


def test_it_makes_no_effort_to_order_messages() -> None:
    receiver = a_receiver()
    for seq in (3, 1, 2):
        effects = hears(receiver, *a_message([b"%d" % seq], seq=seq, timestamp=START + seq))
        assert records_delivered(effects) == [b"%d" % seq]


def test_it_makes_no_effort_to_recover_lost_messages() -> None:
    receiver = a_receiver()
    effects = hears(receiver, *a_message([b"x"], seq=9, timestamp=START + 9), a_keepalive(A, 50, START + 90))
    assert bursts(effects) == []
    assert receiver.next_deadline() is None
    assert receiver.counters.losses_detected == 0


def test_several_copies_might_be_delivered() -> None:
    receiver = a_receiver()
    frames = a_message([b"x"])
    assert delivered(hears(receiver, *frames, *frames)) == [(A, 1), (A, 1)]


def test_nothing_is_buffered() -> None:
    receiver = a_receiver()
    hears(receiver, *a_message([b"x"]))
    assert receiver.buffered_bytes == 0


def test_a_message_of_which_a_part_is_lost_is_never_delivered_in_part() -> None:
    receiver = a_receiver()
    frames = a_message([bytes(400)], body=80)
    following = a_message([b"next"], seq=len(frames) + 1, timestamp=START + 90)
    effects = hears(receiver, *frames[:2], *frames[3:], *following)
    assert records_delivered(effects) == [b"next"]
    assert receiver.counters.unreliable_incomplete > 0
