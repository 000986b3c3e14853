from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest

from intergroup_core.counters import Counters
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.delivery.flow import Pacer
from intergroup_core.delivery.sender import Sender
from intergroup_core.ids import Instant
from intergroup_core.wire.control import encode_change
from intergroup_core.wire.frames import Emission, FrameMaker
from intergroup_core.wire.messages import KeepAlive
from intergroup_core.wire.run import Run
from tests.builders import START, T0, TAG, VIEW, A, a_config, after, messages, millis, parsed
from tests.membership_builders import a_leave

WIDE = 1 << 40
FRAME = 256
BODY = FRAME - 48
FAST = {"bandwidth_start": 1e11, "bandwidth_max": 1e11}


def a_sender(*, activation: int = 1, clock: HybridClock | None = None, **send: Any) -> Sender:
    config = a_config(send=FAST | send)
    maker = FrameMaker(TAG, A, VIEW.id.tag, FRAME)
    return Sender(config, maker, clock or HybridClock(), Pacer(config.send, Random(1)), Counters(), activation)


def emitted(sender: Sender, window: int = WIDE, acknowledged: int = 0, now: Instant = T0) -> list[Emission]:
    found = []
    while (emission := sender.next_message(window, acknowledged, now)) is not None:
        found.append(emission)
    return found


def records(emission: Emission) -> list[bytes]:
    return [record for message in messages(emission.runs) for record in message.records()]


def frames(emission: Emission) -> int:
    return sum(run.count for run in emission.runs)


def test_the_first_frame_has_the_activation_seq() -> None:
    sender = a_sender(activation=7)
    sender.outbox.offer([b"first"])
    (emission,) = emitted(sender)
    assert emission.runs[0].seq == 7
    assert sender.seq == 7


def test_frames_take_consecutive_seqs_and_timestamps_over_messages() -> None:
    sender = a_sender(bundle_bytes=100)
    for size in (10, 1_000, 10):
        sender.outbox.offer([bytes(size)])
    emissions = emitted(sender)
    runs = [run for emission in emissions for run in emission.runs]
    assert len(emissions) == 3
    for before, behind in itertools.pairwise(runs):
        assert behind.seq == before.last_seq + 1
        assert behind.timestamp > before.last_timestamp
    assert sender.promised == runs[-1].last_timestamp


def test_what_is_queued_is_not_stamped_until_it_goes() -> None:
    clock = HybridClock()
    sender = a_sender(clock=clock)
    sender.outbox.offer([b"waits"])
    assert sender.next_message(0, 0, T0) is None
    assert clock.last == 0
    assert sender.seq == 0
    frame, promise = sender.keepalive_frame(after(millis(1)))
    (keepalive,) = parsed(frame)
    assert isinstance(keepalive, KeepAlive)
    assert (keepalive.seq, keepalive.timestamp) == (0, promise)
    (emission,) = emitted(sender, now=after(millis(1)))
    assert emission.runs[0].timestamp > promise, "the keep-alive was no lie"


def test_a_keep_alive_names_the_last_frame_and_promises_more_than_it() -> None:
    sender = a_sender()
    sender.outbox.offer([bytes(1_000)])
    emitted(sender)
    frame, timestamp = sender.keepalive_frame(T0)
    (keepalive,) = parsed(frame)
    assert isinstance(keepalive, KeepAlive)
    assert keepalive.seq == sender.seq == 5
    assert keepalive.timestamp == timestamp == sender.promised


def test_small_records_are_bundled_up_to_the_limit() -> None:
    sender = a_sender(bundle_bytes=2_000)
    sender.outbox.offer([bytes([n % 256]) * 100 for n in range(50)])
    emissions = emitted(sender)
    assert [record for emission in emissions for record in records(emission)] == [bytes([n]) * 100 for n in range(50)]
    assert [len(records(emission)) for emission in emissions] == [19, 19, 12]


def test_a_record_larger_than_a_bundle_goes_alone() -> None:
    sender = a_sender(bundle_bytes=500)
    sender.outbox.offer([b"small", bytes(5_000), b"small"])
    assert [[len(record) for record in records(emission)] for emission in emitted(sender)] == [[5], [5_000], [5]]


def test_a_message_is_stamped_whole_only_when_all_its_frames_fit_the_window() -> None:
    sender = a_sender()
    sender.outbox.offer([b"first"])
    emitted(sender)
    sender.outbox.offer([bytes(10 * BODY)])
    needed = sender.seq + 11
    assert sender.next_message(needed - 1, 0, T0) is None
    assert sender.seq == 1
    assert frames(emitted(sender, window=needed)[0]) == 11


def test_a_message_that_exceeds_the_window_goes_when_nothing_is_in_flight() -> None:
    sender = a_sender()
    sender.outbox.offer([b"first"])
    emitted(sender)
    sender.outbox.offer([bytes(10 * BODY)])
    window = sender.seq + 3
    assert sender.next_message(window, acknowledged_seq=0, now=T0) is None
    emission = sender.next_message(window, acknowledged_seq=1, now=T0)
    assert emission is not None
    assert frames(emission) == 11


def test_no_window_at_all_stops_even_a_sender_with_nothing_in_flight() -> None:
    sender = a_sender()
    sender.outbox.offer([b"first"])
    assert sender.next_message(0, 0, T0) is None
    assert sender.next_message(1, 0, T0) is not None


def test_a_bundle_is_cut_to_the_window() -> None:
    sender = a_sender(bundle_bytes=2_000)
    sender.outbox.offer([bytes(100)] * 40)
    emission = sender.next_message(window=5, acknowledged_seq=0, now=T0)
    assert emission is not None
    assert frames(emission) <= 5
    assert len(records(emission)) < 19


def test_a_sliver_of_window_waits_for_more_while_there_is_much_to_send() -> None:
    sender = a_sender(bundle_bytes=2_000)
    sender.outbox.offer([bytes(100)] * 400)
    emission = sender.next_message(window=100, acknowledged_seq=0, now=T0)
    assert emission is not None
    while sender.seq < 95 and (emission := sender.next_message(100, 0, T0)) is not None:
        pass
    assert sender.next_message(sender.seq + 2, acknowledged_seq=0, now=T0) is None
    assert sender.next_message(sender.seq + 2, acknowledged_seq=sender.seq, now=T0) is not None


def test_pacing_holds_back_and_says_so() -> None:
    sender = a_sender(bandwidth_start=1e6, bandwidth_max=1e6, bundle_bytes=2_000)
    sender.outbox.offer([bytes(1_900)] * 10)
    sent = len(emitted(sender))
    assert 1 <= sent < 10
    assert sender.paced
    ready = after(sender.pacer.ready_at - T0.mono)
    assert sender.next_message(WIDE, 0, after(sender.pacer.ready_at - T0.mono - 1)) is None
    assert sender.next_message(WIDE, 0, ready) is not None


def test_a_closed_window_is_not_taken_for_pacing() -> None:
    sender = a_sender(bandwidth_start=1e6, bandwidth_max=1e6)
    sender.outbox.offer([bytes(1_900)] * 10)
    emitted(sender)
    assert sender.paced
    assert sender.next_message(sender.seq, 0, T0) is None
    assert not sender.paced, "time alone does not open a window"


def test_at_the_cap_on_unstable_messages_only_keep_alives_are_sent() -> None:
    cap = 500_000
    sender = a_sender(unstable_bytes=cap, bundle_bytes=2_000)
    sender.outbox.offer([bytes(1_900)] * 400)
    emissions = emitted(sender)
    assert sender.unstable_frames * FRAME <= cap
    assert sender.outbox.bytes > 0
    frame, _ = sender.keepalive_frame(after(millis(50)))
    assert len(parsed(frame)) == 1
    sender.stable(emissions[9].runs[-1].last_timestamp)
    assert len(emitted(sender, acknowledged=sender.seq, now=after(millis(60)))) == 10


def test_stability_below_a_message_in_part_frees_none_of_it() -> None:
    sender = a_sender()
    sender.outbox.offer([bytes(5 * BODY)])
    (emission,) = emitted(sender)
    sender.stable(emission.runs[-1].last_timestamp - 1)
    assert sender.unstable_frames == 6
    sender.stable(emission.runs[-1].last_timestamp)
    assert sender.unstable_frames == 0


@pytest.mark.parametrize("size", [0, 1, BODY - 8, BODY - 7, 100_000])
def test_the_clock_moves_by_the_frames_of_the_message(size: int) -> None:
    clock = HybridClock()
    clock.observe(START + 10**9)
    sender = a_sender(clock=clock)
    sender.outbox.offer([bytes(size)])
    (emission,) = emitted(sender)
    assert emission.runs[0].timestamp == START + 10**9 + 1
    assert clock.last == START + 10**9 + frames(emission)


# Ordered membership messages


def test_a_change_takes_the_next_seq_and_a_timestamp_of_its_own() -> None:
    clock = HybridClock()
    sender = a_sender(clock=clock)
    sender.outbox.offer([b"data"])
    (emission,) = emitted(sender)
    frame, run = sender.change(encode_change(a_leave()), T0)
    assert (run.change, run.seq, sender.seq) == (True, 2, 2)
    assert run.timestamp > emission.runs[-1].last_timestamp
    assert sender.promised == run.timestamp == clock.last
    (read,) = parsed(frame)
    assert isinstance(read, Run)
    assert (read.change, read.seq, read.timestamp) == (True, 2, run.timestamp)


def test_neither_window_nor_pacing_holds_a_change_back_and_it_is_unstable_like_data() -> None:
    sender = a_sender()
    sender.change(encode_change(a_leave()), T0)
    assert sender.unstable_frames == 1
    sender.stable(sender.promised)
    assert sender.unstable_frames == 0


def test_a_change_is_no_data_that_keeps_a_sender_from_being_silent() -> None:
    sender = a_sender()
    sender.change(encode_change(a_leave()), T0)
    assert sender.data_at is None
    sender.outbox.offer([b"data"])
    emitted(sender, now=after(millis(3)))
    assert sender.data_at == T0.mono + millis(3)


def test_seqs_go_on_in_another_view() -> None:
    sender = a_sender()
    sender.outbox.offer([b"one"])
    emitted(sender)
    sender.enter(FrameMaker(TAG, A, 77, FRAME))
    sender.outbox.offer([b"two"])
    (emission,) = emitted(sender)
    assert (emission.runs[0].seq, emission.runs[0].view_tag) == (2, 77)
