"""T4.8: one timestamp order for the whole group (figures 4.3 and 4.4; D2 and D3 say what they mean)."""

from __future__ import annotations

from random import Random

import pytest

from intergroup_core.effects import Deliver, Effect
from intergroup_core.endpoint import Endpoint
from intergroup_core.ids import MemberId
from intergroup_core.wire.messages import RepairRequest
from tests.builders import (
    START,
    T0,
    A,
    B,
    C,
    R,
    a_keepalive,
    a_message,
    a_repair,
    after,
    an_arrival,
    an_endpoint,
    delivered,
    millis,
    said,
)


def a_receiver(seed: int = 1, **settings: dict[MemberId, int]) -> Endpoint:
    receiver = an_endpoint(R, seed=seed, **settings)
    receiver.start(T0)
    return receiver


def hears(receiver: Endpoint, *frames: bytes) -> list[Effect]:
    return receiver.receive(an_arrival(*frames), after(millis(1)))


def message(source: MemberId, seq: int, timestamp: int) -> bytes:
    (frame,) = a_message([b"%d" % seq], sender=source, seq=seq, timestamp=START + timestamp)
    return frame


def keepalive(source: MemberId, seq: int, timestamp: int) -> bytes:
    return a_keepalive(source, seq, START + timestamp)


def test_a_message_is_delivered_only_if_one_from_each_member_is_there() -> None:
    receiver = a_receiver()
    assert delivered(hears(receiver, message(A, 1, 10))) == []
    assert delivered(hears(receiver, message(B, 1, 20))) == []
    assert delivered(hears(receiver, message(C, 1, 30))) == [(A, 1)]


def test_the_one_with_the_lowest_timestamp_is_delivered() -> None:
    receiver = a_receiver()
    effects = hears(receiver, message(A, 1, 30), message(B, 1, 10), message(C, 1, 20))
    assert delivered(effects) == [(B, 1)]


def test_of_equal_timestamps_the_lowest_process_identifier_comes_first() -> None:
    receiver = a_receiver()
    effects = hears(receiver, message(C, 1, 10), message(B, 1, 10), message(A, 1, 10))
    effects += hears(receiver, *(keepalive(source, 1, 11) for source in (A, B, C)))
    assert delivered(effects) == [(A, 1), (B, 1), (C, 1)]


def test_keep_alives_allow_progress_in_the_absence_of_data_and_are_not_delivered() -> None:
    receiver = a_receiver()
    effects = hears(receiver, message(A, 1, 10), keepalive(B, 0, 15), keepalive(C, 0, 15))
    assert delivered(effects) == [(A, 1)]
    effects = hears(receiver, *(keepalive(source, source == A, 99) for source in (A, B, C)))
    assert not any(isinstance(effect, Deliver) for effect in effects)


def test_a_newer_keep_alive_replaces_an_older_one() -> None:
    receiver = a_receiver()
    hears(receiver, message(A, 1, 50), keepalive(C, 0, 99), keepalive(B, 0, 60), keepalive(B, 0, 20))
    assert delivered(hears(receiver, message(A, 2, 55))) == [(A, 2)]


def test_a_keep_alive_that_came_before_its_data_counts_only_with_it() -> None:
    receiver = a_receiver()
    assert delivered(hears(receiver, message(A, 1, 50), keepalive(C, 0, 99), keepalive(B, 1, 80))) == []
    assert delivered(hears(receiver, message(B, 1, 70))) == [(A, 1)]
    assert delivered(hears(receiver, keepalive(A, 1, 90))) == [(B, 1)]


def test_missing_messages_are_detected_as_in_source_order() -> None:
    receiver = a_receiver()
    hears(receiver, message(A, 3, 30), keepalive(B, 2, 40))
    effects: list[Effect] = []
    while (deadline := receiver.next_deadline()) is not None and deadline <= after(millis(6)).mono:
        effects += receiver.tick(after(max(0, deadline - T0.mono)))
    asked = {each for request in said(effects, RepairRequest) for each in request.ranges}
    assert asked == {(A, 1, 2), (B, 1, 2)}


def test_only_messages_from_the_activation_point_on_are_considered() -> None:
    receiver = a_receiver(activations={A: 3, B: 2})
    sent = [message(source, seq, 10 * seq) for source in (A, B, C) for seq in range(1, 5)]
    effects = hears(receiver, *sent, *(keepalive(source, 4, 999) for source in (A, B, C)))
    assert delivered(effects) == [(C, 1), (B, 2), (C, 2), (A, 3), (B, 3), (C, 3), (A, 4), (B, 4), (C, 4)]


@pytest.mark.parametrize("seed", range(20))
def test_all_members_deliver_in_the_same_order_however_the_network_mixed_it(seed: int) -> None:
    rng = Random(seed)
    sent: list[bytes] = []
    expected: list[tuple[int, MemberId, int]] = []
    for source in (A, B, C):
        timestamp = seq = 0
        for _ in range(15):
            timestamp += rng.randrange(1, 6)
            records = [bytes(rng.choice((1, 1, 200)))]
            frames = a_message(records, sender=source, seq=seq + 1, timestamp=START + timestamp, body=80)
            seq += len(frames)
            timestamp += len(frames) - 1
            expected.append((timestamp, source, seq))
            sent += frames
            if rng.random() < 0.5:
                timestamp += 1
                sent.append(keepalive(source, seq, timestamp))
        sent.append(keepalive(source, seq, 1_000))
    for member in range(2):
        order = [a_repair(frame) if rng.random() < 0.2 else frame for frame in sent]
        order += rng.sample(order, 20)
        rng.shuffle(order)
        receiver = a_receiver(seed=member)
        effects: list[Effect] = []
        while order:
            count = rng.choice((1, 1, 3, 10))
            effects += hears(receiver, *order[:count])
            del order[:count]
        assert delivered(effects) == [(source, seq) for _, source, seq in sorted(expected)]
        assert receiver.acknowledged == START + 1_000
