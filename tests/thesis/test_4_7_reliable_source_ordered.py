"""T4.7: every message of a source, in its order (figures 4.1 and 4.2; D1 corrects where they start)."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from intergroup_core.effects import Effect
from intergroup_core.endpoint import Endpoint
from intergroup_core.errors import LocalProtocolError
from intergroup_core.ids import MemberId, Service
from intergroup_core.wire.messages import RepairRequest, Report
from intergroup_core.wire.run import Run
from tests.builders import (
    START,
    T0,
    A,
    B,
    C,
    R,
    a_control_frame,
    a_keepalive,
    a_message,
    a_repair,
    a_report,
    after,
    an_arrival,
    an_endpoint,
    delivered,
    millis,
    said,
)


def a_receiver(activations: Mapping[MemberId, int] | None = None) -> Endpoint:
    receiver = an_endpoint(R, service=Service.RSO, activations=activations)
    receiver.start(T0)
    return receiver


def hears(receiver: Endpoint, *frames: bytes) -> list[Effect]:
    return receiver.receive(an_arrival(*frames), after(millis(1)))


def message(seq: int, source: MemberId = A) -> bytes:
    (frame,) = a_message([b"%d" % seq], sender=source, seq=seq, timestamp=START + 10 * seq)
    return frame


def asked(receiver: Endpoint) -> list[tuple[MemberId, int, int]]:
    """What is requested within a while."""
    effects: list[Effect] = []
    while (deadline := receiver.next_deadline()) is not None and deadline <= after(millis(6)).mono:
        effects += receiver.tick(after(max(0, deadline - T0.mono)))
    return sorted({each for request in said(effects, RepairRequest) for each in request.ranges})


# Figure 4.1


def test_a_keep_alive_beyond_the_highest_seq_asks_for_everything_up_to_it() -> None:
    receiver = a_receiver()
    hears(receiver, message(1), message(2), a_keepalive(A, 5, START + 90))
    assert asked(receiver) == [(A, 3, 5)]


def test_data_beyond_the_next_seq_asks_for_what_lies_between() -> None:
    receiver = a_receiver()
    hears(receiver, message(1), message(2), message(6))
    assert asked(receiver) == [(A, 3, 5)]


def test_what_follows_in_order_asks_for_nothing() -> None:
    receiver = a_receiver()
    hears(receiver, message(1), message(2), a_keepalive(A, 2, START + 90), a_keepalive(A, 1, START + 15))
    assert asked(receiver) == []


def test_the_first_message_may_be_the_one_that_is_missing() -> None:
    receiver = a_receiver()
    hears(receiver, message(2))
    assert asked(receiver) == [(A, 1, 1)]


# Figure 4.2


def test_a_message_that_is_next_is_delivered_and_so_is_what_was_stored_behind_it() -> None:
    receiver = a_receiver()
    assert delivered(hears(receiver, message(3), message(2), message(5))) == []
    assert delivered(hears(receiver, message(1))) == [(A, 1), (A, 2), (A, 3)]
    assert delivered(hears(receiver, a_repair(message(4)))) == [(A, 4), (A, 5)]


def test_a_message_received_before_is_not_delivered_again() -> None:
    receiver = a_receiver()
    hears(receiver, message(1))
    assert delivered(hears(receiver, message(1), a_repair(message(1)))) == []


@pytest.mark.parametrize("activation", [1, 2, 7])
def test_the_first_message_delivered_is_the_one_at_the_activation_point(activation: int) -> None:
    receiver = a_receiver({A: activation})
    effects = hears(receiver, *(message(seq) for seq in range(1, 10)))
    assert delivered(effects) == [(A, seq) for seq in range(activation, 10)]
    assert asked(receiver) == []


def test_each_of_several_sources_has_its_own_order_and_activation_point() -> None:
    receiver = a_receiver({A: 2, B: 1, C: 3})
    sent = [message(seq, source) for source in (A, B, C) for seq in range(1, 6)]
    Random(4).shuffle(sent)
    effects = [effect for frame in sent for effect in hears(receiver, frame)]
    for source, activation in ((A, 2), (B, 1), (C, 3)):
        assert [seq for each, seq in delivered(effects) if each == source] == list(range(activation, 6))


def test_a_source_that_is_silent_holds_back_no_other() -> None:
    receiver = a_receiver()
    assert delivered(hears(receiver, message(1, B))) == [(B, 1)]


# Chosen sources (T4.7.1)


def test_a_member_that_chose_its_sources_hears_no_other() -> None:
    receiver = an_endpoint(R, service=Service.RSO, sources=frozenset({A, C}))
    receiver.start(T0)
    assert delivered(hears(receiver, message(1, A), message(1, B), message(1, C))) == [(A, 1), (C, 1)]
    assert receiver.counters.dropped == {"source": 1}


def test_it_neither_asks_for_what_others_sent_nor_waits_for_them() -> None:
    receiver = an_endpoint(R, service=Service.RSO, sources=frozenset({A}))
    receiver.start(T0)
    hears(receiver, message(1, A), message(5, B))
    assert asked(receiver) == []
    assert receiver.acknowledged == START + 10


def test_a_source_it_did_not_choose_does_not_wait_for_its_room() -> None:
    receiver = an_endpoint(R, service=Service.RSO, sources=frozenset({A}), counted=(B, R))
    (report,) = said(receiver.start(T0), Report)
    assert [source for source, _ in report.contiguous] == [A]
    sender = an_endpoint(B, counted=(B, R))
    sender.start(T0)
    sender.receive(an_arrival(a_control_frame(a_report(R, contiguous={A: 0}, room_frames=1))), T0)
    sent = [run for _ in range(5) for run in said(sender.send([b"more"], after(millis(50))), Run)]
    assert len(sent) >= 2


@pytest.mark.parametrize(
    ("service", "sources"), [(Service.RTO, {A}), (Service.UU, {A}), (Service.RSO, set()), (Service.RSO, {R})]
)
def test_only_rso_chooses_and_only_among_the_senders(service: Service, sources: set[MemberId]) -> None:
    with pytest.raises(LocalProtocolError, match="needs rso and senders of the view"):
        an_endpoint(R, service=service, sources=frozenset(sources))
