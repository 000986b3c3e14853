"""How an endpoint paces, promises, recovers and knows what is stable."""

from __future__ import annotations

from intergroup_core.effects import Deliver, Multicast, Stable, Suspect
from intergroup_core.ids import Service, Timestamp, timestamp_span
from intergroup_core.multicast.ranges import Promise, Span
from intergroup_core.wire.messages import KeepAlive, RepairRequest, Report
from tests.builders import (
    DISTANCE_NS,
    FAST,
    PAIR,
    START,
    T0,
    A,
    B,
    C,
    R,
    S,
    a_config,
    a_control_frame,
    a_keepalive,
    a_message,
    a_request,
    a_view,
    after,
    an_arrival,
    bursts,
    delivered,
    hears,
    micros,
    millis,
    records_delivered,
    runs_said,
    said,
    started,
    ticked,
    told,
)

# Flow control


def test_the_window_follows_the_slowest_receiver_and_no_room_stops_the_sender() -> None:
    endpoint = started(A, view=a_view(A), counted=(A, R, S), config=a_config(send=FAST | {"bundle_bytes": 100}))
    told(endpoint, R, T0, contiguous={A: 0}, room_frames=10)
    told(endpoint, S, T0, contiguous={A: 0}, room_frames=4)
    assert endpoint.slowest == S
    effects = endpoint.send([bytes(90)] * 20, after(millis(1)))
    assert [run.last_seq for run in runs_said(effects)][-1] == 4
    effects = told(endpoint, S, after(millis(2)), serial=2, contiguous={A: 4}, room_frames=0)
    assert runs_said(effects) == []
    assert endpoint.unsent_bytes > 0
    effects = told(endpoint, S, after(millis(3)), serial=3, contiguous={A: 4}, room_frames=100)
    assert runs_said(effects)[-1].last_seq == 10, "now the other one is the slowest"
    assert endpoint.slowest == R


def test_while_the_window_is_closed_nothing_is_stamped_and_keep_alives_are_no_lie() -> None:
    endpoint = started(A, view=PAIR, config=a_config(send=FAST))
    told(endpoint, B, T0, contiguous={A: 0}, room_frames=0)
    assert runs_said(endpoint.send([b"waits"], after(millis(1)))) == []
    kept = said(ticked(endpoint, after(millis(50))), KeepAlive)
    assert kept
    assert {keepalive.seq for keepalive in kept} == {0}
    (run,) = runs_said(told(endpoint, B, after(millis(51)), serial=2, contiguous={A: 0}, room_frames=9))
    assert run.seq == 1
    assert run.timestamp > max(keepalive.timestamp for keepalive in kept)


def test_a_message_larger_than_the_window_goes_whole_once_nothing_is_in_flight() -> None:
    endpoint = started(A, view=PAIR, config=a_config(send=FAST))
    told(endpoint, B, T0, contiguous={A: 0}, room_frames=5)
    endpoint.send([b"first"], after(millis(1)))
    assert runs_said(endpoint.send([bytes(10_000)], after(millis(1)))) == []
    effects = told(endpoint, B, after(millis(2)), serial=2, contiguous={A: 1}, room_frames=5)
    assert sum(run.count for run in runs_said(effects)) == 49


def test_a_receiver_tells_its_room_and_promptly_when_it_comes_back() -> None:
    endpoint = started(R)
    endpoint.room(0, after(millis(1)))
    (report,) = said(ticked(endpoint, after(millis(201))), Report)
    assert report.room_frames == 0
    effects = endpoint.room(300_000, after(millis(210)))
    (report,) = said(effects, Report)
    assert report.room_frames == 300_000 // 256 // 3


def test_a_full_message_buffer_is_no_room() -> None:
    config = a_config(
        group={"max_message_bytes": 10_000},
        send={"unstable_bytes": 90_000, "bundle_bytes": 2_000},
        repair={"buffer_bytes": 100_000},
    )
    endpoint = started(R, service=Service.RSO, config=config)
    record, seq, room = bytes(5_000), 1, None
    for burst in range(30):
        frames = a_message([record], sender=A, seq=seq, timestamp=START + 1_000 * burst + 1, body=208)
        seq += len(frames)
        effects = hears(endpoint, *frames, now=after(millis(burst)))
        effects += ticked(endpoint, after(millis(burst + 1) - 1))
        for report in said(effects, Report):
            room = report.room_frames
        if room == 0:
            break
    assert room == 0
    assert endpoint.buffered_bytes >= 100_000
    assert endpoint.buffered_bytes == endpoint.most_buffered_bytes


def test_an_application_that_does_not_read_stops_its_own_member_too() -> None:
    endpoint = started(A, view=PAIR, config=a_config(send=FAST))
    told(endpoint, B, T0, contiguous={A: 0}, room_frames=500)
    endpoint.room(0, T0)
    assert runs_said(endpoint.send([b"waits"], after(millis(1)))) == []
    assert len(runs_said(endpoint.room(400_000, after(millis(2))))) == 1


def test_requests_for_my_messages_cut_the_bandwidth_once_a_round_trip() -> None:
    endpoint = started(A, config=a_config(send=FAST))
    endpoint.send([b"x"], after(millis(1)))
    for serial in range(10):
        hears(endpoint, a_control_frame(a_request(B, Span(A, 1, 1))), now=after(millis(2) + serial))
    assert endpoint.counters.bandwidth_cuts == 1
    hears(endpoint, a_control_frame(a_request(B, Span(A, 1, 1))), now=after(millis(10)))
    assert endpoint.counters.bandwidth_cuts == 2
    hears(endpoint, a_control_frame(a_request(B, Span(C, 1, 1))), now=after(millis(50)))
    assert endpoint.counters.bandwidth_cuts == 2, "losses of others are no reason"


def test_pacing_spreads_a_load_over_time() -> None:
    config = a_config(send={"bandwidth_start": 1e6, "bandwidth_max": 1e6})
    endpoint = started(A, view=a_view(A), config=config)
    endpoint.send([bytes(1_900)] * 50, after(millis(1)))
    ticked(endpoint, after(millis(41)))
    sent_after_40ms = 50 * 1_904 - endpoint.unsent_bytes
    assert 25_000 < sent_after_40ms < 60_000
    ticked(endpoint, after(millis(300)))
    assert endpoint.unsent_bytes == 0


# Keep-alives


def test_data_above_its_last_promise_makes_an_idle_sender_answer_at_once() -> None:
    endpoint = started(A, config=a_config("lan"))
    now = after(millis(9))
    assert ticked(endpoint, now)
    timestamp = START + timestamp_span(millis(9))
    effects = hears(endpoint, *a_message([b"x"], sender=B, timestamp=timestamp), now=now)
    (keepalive,) = said(effects, KeepAlive)
    assert keepalive.timestamp > timestamp


def test_two_prompt_keep_alives_are_a_gap_apart() -> None:
    endpoint = started(A, config=a_config("lan"))
    first, second = after(millis(10)), after(millis(10) + micros(30))
    ticked(endpoint, first)
    base = START + timestamp_span(millis(20))
    assert said(hears(endpoint, *a_message([b"x"], sender=B, timestamp=base), now=first), KeepAlive)
    effects = hears(endpoint, *a_message([b"x"], sender=B, seq=2, timestamp=base + 500), now=second)
    assert said(effects, KeepAlive) == []
    deadline = endpoint.next_deadline()
    assert deadline == first.mono + micros(100)
    (keepalive,) = said(endpoint.tick(after(deadline - T0.mono)), KeepAlive)
    assert keepalive.timestamp > base + 500


def test_keep_alives_never_trigger_keep_alives() -> None:
    endpoint = started(A, config=a_config("lan"))
    now = after(millis(5))
    ticked(endpoint, now)
    effects = hears(endpoint, a_keepalive(B, 0, START + timestamp_span(millis(50))), now=now)
    assert said(effects, KeepAlive) == []


def test_an_idle_sender_repeats_its_promise_at_doubling_intervals() -> None:
    endpoint = started(A, view=PAIR, config=a_config("lan"))
    times = []
    while len(times) < 10:
        deadline = endpoint.next_deadline()
        assert deadline is not None
        if said(endpoint.tick(after(deadline - T0.mono)), KeepAlive):
            times.append(deadline - T0.mono)
    intervals = [later - earlier for earlier, later in zip([0, *times], times, strict=False)]
    assert intervals[:8] == [millis(length) for length in (1, 2, 4, 8, 16, 32, 64, 100)]
    assert set(intervals[7:]) == {millis(100)}


def test_a_request_for_my_promise_is_answered_at_once() -> None:
    endpoint = started(A, counted=(A, B, C, R), config=a_config("lan"))
    ticked(endpoint, after(millis(300)))
    wanted = a_request(R, Promise(A, Timestamp(START + 5)))
    effects = hears(endpoint, a_control_frame(wanted), now=after(millis(350)))
    assert len(said(effects, KeepAlive)) == 1


def test_a_lost_keep_alive_is_asked_for_and_repaired_verbatim_by_a_third_member() -> None:
    blocked = started(A, config=a_config(send=FAST))
    third = started(C, seed=2)
    effects = blocked.send([b"waits"], after(millis(1)))
    assert delivered(effects) == []
    (keepalive_of_third,) = said(third.receive(an_arrival(*bursts(effects)), after(millis(2))), KeepAlive)
    lost = a_keepalive(B, 0, START + timestamp_span(millis(3)))
    hears(third, lost, now=after(millis(3)))
    assert delivered(hears(blocked, keepalive_of_third.frame, now=after(millis(3)))) == []

    asked = ticked(blocked, after(millis(40)))
    requests = said(asked, RepairRequest)
    assert requests, "ordered delivery stalled for some distances"
    assert [source for source, _ in requests[0].promises] == [B]
    hears(third, a_control_frame(requests[0]), now=after(millis(41)))
    answered = ticked(third, after(millis(44)))
    (repaired,) = [keepalive for keepalive in said(answered, KeepAlive) if keepalive.repaired]
    assert repaired.frame == lost
    assert any(lost in data for data, _ in bursts(answered))
    effects = blocked.receive(an_arrival(*bursts(answered)), after(millis(45)))
    assert records_delivered(effects) == [b"waits"]
    requests = said(ticked(blocked, after(millis(200))), RepairRequest)
    assert requests == [], "what came is not asked for again"


# Recovery and stability


def test_what_nobody_answers_is_suspected_by_name() -> None:
    endpoint = started(R, config=a_config(repair={"give_up_ms": 300}))
    hears(endpoint, *a_message([b"x"], sender=B, seq=4, timestamp=START + 9), now=after(millis(1)))
    suspects = [effect for effect in ticked(endpoint, after(millis(1_000))) if isinstance(effect, Suspect)]
    assert suspects
    assert (suspects[0].member, suspects[0].seq) == (B, 1)
    assert "000000000000000b" in suspects[0].reason
    assert endpoint.counters.suspicions == len(suspects)


def test_what_every_counted_member_acknowledged_leaves_the_buffer() -> None:
    endpoint = started(A, view=PAIR, counted=(A, B, R), config=a_config(send=FAST))
    (run,) = runs_said(endpoint.send([b"x"], after(millis(1))))
    hears(endpoint, a_keepalive(B, 0, run.timestamp + 5), now=after(millis(2)))
    assert endpoint.acknowledged >= run.timestamp
    assert endpoint.buffered_bytes == run.nbytes
    effects = told(endpoint, B, after(millis(3)), acknowledged=run.timestamp + 3)
    assert endpoint.stable == START
    effects = told(endpoint, R, after(millis(3)), acknowledged=run.timestamp)
    assert [effect for effect in effects if isinstance(effect, Stable)] == [Stable(run.last_timestamp)]
    assert endpoint.buffered_bytes == 0
    assert endpoint.stable == run.timestamp
    assert endpoint.most_buffered_bytes == run.nbytes


def test_stability_is_never_above_what_this_member_delivered_itself() -> None:
    endpoint = started(R, counted=(A, R), view=a_view(A, B))
    hears(endpoint, *a_message([b"x"], sender=A, timestamp=START + 100), now=after(millis(1)))
    told(endpoint, A, after(millis(1)), acknowledged=START + 500)
    assert endpoint.stable < START + 100
    assert endpoint.buffered_bytes > 0


def test_an_unreliable_sender_acknowledges_by_the_order_it_follows_inside() -> None:
    endpoint = started(A, service=Service.UU, view=PAIR)
    effects = hears(
        endpoint, *a_message([b"half"] * 60, sender=B, timestamp=START + 100, body=80)[:2], now=after(millis(1))
    )
    assert delivered(effects) == []
    assert endpoint.acknowledged == START + 99


def test_a_repair_is_heard_by_all_so_one_request_serves_everybody() -> None:
    endpoint = started(R)
    hears(endpoint, *a_message([b"x"], sender=B, seq=2, timestamp=START + 9), now=after(millis(1)))
    hears(endpoint, a_control_frame(a_request(C, Span(B, 1, 1))), now=after(millis(1) + 1))
    assert said(ticked(endpoint, after(millis(1) + 4 * DISTANCE_NS)), RepairRequest) == []
    assert endpoint.counters.losses_detected == 1


def test_every_effect_of_a_stimulus_is_handed_over_once() -> None:
    endpoint = started(A, view=a_view(A), config=a_config(send=FAST))
    effects = endpoint.send([b"x"], after(millis(1)))
    assert [type(effect) for effect in effects if not isinstance(effect, Stable)].count(Deliver) == 1
    assert not any(isinstance(effect, (Deliver, Multicast)) for effect in endpoint.tick(after(millis(1))))
