"""T4.5: data and keep-alive messages, and what holds a sender back."""

from __future__ import annotations

import itertools
from typing import Any

from intergroup_core.effects import Effect
from intergroup_core.endpoint import Endpoint
from intergroup_core.ids import timestamp_span
from intergroup_core.multicast.ranges import Span
from intergroup_core.wire.messages import KeepAlive
from intergroup_core.wire.run import Run
from tests.builders import (
    START,
    T0,
    A,
    B,
    a_config,
    a_control_frame,
    a_keepalive,
    a_report,
    a_request,
    a_view,
    after,
    an_arrival,
    an_endpoint,
    millis,
    said,
)

PAIR = a_view(A, B)


def a_sender(**send: Any) -> Endpoint:
    sender = an_endpoint(A, view=PAIR, config=a_config(send=send))
    sender.start(T0)
    return sender


def ticked(sender: Endpoint, until_ms: int) -> list[Effect]:
    effects: list[Effect] = []
    while (deadline := sender.next_deadline()) is not None and deadline <= after(millis(until_ms)).mono:
        effects += sender.tick(after(deadline - T0.mono))
    return effects


def test_each_data_message_increments_the_sequence_number() -> None:
    sender = a_sender()
    runs = [run for at in (10, 20, 30) for run in said(sender.send([b"x"], after(millis(at))), Run)]
    assert [run.seq for run in runs] == [1, 2, 3]


def test_the_header_is_filled_with_sender_seq_and_time() -> None:
    sender = a_sender()
    (run,) = said(sender.send([b"x"], after(millis(10))), Run)
    assert (run.source, run.seq, run.view_tag) == (A, 1, PAIR.id.tag)
    assert run.timestamp >= START + timestamp_span(millis(10))


def test_when_the_timer_expires_a_keep_alive_is_sent_and_the_timer_is_reset() -> None:
    sender = a_sender(keepalive_idle_ms=20.0)
    kept = said(ticked(sender, 500), KeepAlive)
    assert 20 <= len(kept) <= 30
    stamps = [keepalive.timestamp for keepalive in kept]
    assert stamps == sorted(set(stamps))


def test_data_resets_the_timer() -> None:
    sender = a_sender(keepalive_gap_us=20_000.0, keepalive_idle_ms=20.0)
    ticked(sender, 19)
    kept: list[KeepAlive] = []
    for at in range(20, 300, 10):
        effects = sender.send([b"x"], after(millis(at))) + ticked(sender, at + 9)
        kept += said(effects, KeepAlive)
    assert kept == []


def test_a_keep_alive_has_the_seq_of_the_last_data_and_a_greater_timestamp() -> None:
    sender = a_sender()
    runs = said(sender.send([bytes(2_000)], after(millis(10))), Run)
    (keepalive, *_) = said(ticked(sender, 100), KeepAlive)
    assert keepalive.seq == runs[-1].last_seq
    assert keepalive.timestamp > runs[-1].last_timestamp


def sent_in_100_ms(*, requests: int) -> int:
    """Bytes of a steady load that go out after so many loss reports."""
    sender = a_sender(
        bandwidth_start=2e6, bandwidth_max=2e6, bandwidth_min=1e5, bandwidth_doubling_ms=600_000.0, bandwidth_cut=0.5
    )
    sender.send([b"first"], after(millis(1)))
    for index in range(requests):
        request = a_control_frame(a_request(B, Span(A, 1, 1)))
        sender.receive(an_arrival(request), after(millis(2 + 6 * index)))
    room = a_report(B, contiguous={A: 1}, room_frames=100_000)
    sender.receive(an_arrival(a_control_frame(room)), after(millis(99)))
    before = sender.counters.bytes_sent
    sender.send([bytes(1_900)] * 200, after(millis(100)))
    ticked(sender, 200)
    return sender.counters.bytes_sent - before


def test_a_retransmission_request_reduces_the_bandwidth() -> None:
    whole, half, quarter = sent_in_100_ms(requests=0), sent_in_100_ms(requests=1), sent_in_100_ms(requests=2)
    assert 0.4 * whole < half < 0.6 * whole
    assert 0.4 * half < quarter < 0.6 * half


def test_the_bandwidth_is_raised_while_no_losses_are_reported() -> None:
    sender = a_sender(bandwidth_start=1e6, bandwidth_max=1e8, bandwidth_doubling_ms=50.0)
    sent = []
    for window in range(4):
        before = sender.counters.bytes_sent
        for at in range(50 * window, 50 * (window + 1), 5):
            seen = START + timestamp_span(millis(at))
            room = a_report(B, serial=at + 1, acknowledged=seen, contiguous={A: 0}, room_frames=100_000)
            sender.receive(an_arrival(a_keepalive(B, 0, seen), a_control_frame(room)), after(millis(at)))
            while sender.send_room > 400_000:
                sender.send([bytes(1_900)] * 10, after(millis(at)))
            ticked(sender, at + 4)
        sent.append(sender.counters.bytes_sent - before)
    assert all(later > 1.5 * earlier for earlier, later in itertools.pairwise(sent))


def test_with_too_many_outstanding_messages_only_keep_alives_are_sent_until_they_are_stable() -> None:
    sender = a_sender(bandwidth_start=1e9, bandwidth_max=1e9, unstable_bytes=500_000)
    room = {"contiguous": {A: 0}, "room_frames": 100_000}
    sender.receive(an_arrival(a_control_frame(a_report(B, **room))), T0)
    sender.send([bytes(1_900)] * 500, after(millis(1)))
    ticked(sender, 20)
    outstanding = sender.counters.frames_sent
    assert 450_000 < outstanding * 256 <= 500_000
    effects = ticked(sender, 300)
    assert sender.counters.frames_sent == outstanding
    assert len(said(effects, KeepAlive)) >= 2
    stable = START + timestamp_span(millis(200))
    told = a_report(B, serial=2, acknowledged=stable, contiguous={A: outstanding}, room_frames=100_000)
    effects = sender.receive(an_arrival(a_keepalive(B, 0, stable), a_control_frame(told)), after(millis(301)))
    effects += ticked(sender, 402)
    assert said(effects, Run)
