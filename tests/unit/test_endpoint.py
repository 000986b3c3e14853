from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from intergroup_core.delivery.clock import HybridClock
from intergroup_core.effects import Deliver, Effect, Install, Multicast, Order, SendRoom, Stable, Suspect
from intergroup_core.endpoint import Endpoint
from intergroup_core.errors import Backpressure, LocalProtocolError, MessageTooLarge
from intergroup_core.ids import Instant, MemberId, Service, Timestamp, timestamp_span
from intergroup_core.multicast.ranges import Promise, Span
from intergroup_core.wire.messages import KeepAlive, RepairRequest, Report
from intergroup_core.wire.run import Run
from tests.builders import (
    DISTANCE_NS,
    START,
    T0,
    VIEW,
    A,
    B,
    C,
    R,
    S,
    a_config,
    a_control_frame,
    a_frame,
    a_keepalive,
    a_message,
    a_repair,
    a_report,
    a_request,
    a_view,
    after,
    an_arrival,
    an_endpoint,
    bursts,
    delivered,
    micros,
    millis,
    records_delivered,
    said,
)

FAST = {"bandwidth_start": 1e11, "bandwidth_max": 1e11}
PAIR = a_view(A, B)


def started(me: MemberId = A, **settings: Any) -> Endpoint:
    endpoint = an_endpoint(me, **settings)
    endpoint.start(T0)
    return endpoint


def hears(endpoint: Endpoint, *frames: bytes, now: Instant) -> list[Effect]:
    return endpoint.receive(an_arrival(*frames), now)


def ticked(endpoint: Endpoint, until: Instant) -> list[Effect]:
    """Every effect of the deadlines up to a moment, each at its own time."""
    effects: list[Effect] = []
    while (deadline := endpoint.next_deadline()) is not None and deadline <= until.mono:
        effects += endpoint.tick(after(max(deadline, T0.mono) - T0.mono))
    return effects


def promises(timestamp: int, *sources: MemberId) -> list[bytes]:
    return [a_keepalive(source, 0, timestamp) for source in sources]


def told(endpoint: Endpoint, member: MemberId, now: Instant, **fields: Any) -> list[Effect]:
    return hears(endpoint, a_control_frame(a_report(member, **fields)), now=now)


def runs_said(effects: Iterable[Effect]) -> list[Run]:
    return said(effects, Run)


# Starting


def test_a_sender_installs_its_view_and_speaks_at_once() -> None:
    effects = an_endpoint(A).start(T0)
    assert effects[0] == Install(VIEW)
    (keepalive,) = said(effects, KeepAlive)
    assert (keepalive.source, keepalive.seq, keepalive.view_tag) == (A, 0, VIEW.id.tag)
    assert keepalive.timestamp > VIEW.id.start
    (report,) = said(effects, Report)
    assert report.contiguous == ((A, 0), (B, 0), (C, 0))


def test_a_receiver_reports_and_makes_no_promises() -> None:
    effects = an_endpoint(R).start(T0)
    assert effects[0] == Install(VIEW)
    assert [type(each) for each in said(effects)] == [Report]


def test_a_member_that_only_wants_uu_says_nothing_ever() -> None:
    endpoint = an_endpoint(S, service=Service.UU, counted=(A, B, C))
    assert endpoint.start(T0) == [Install(VIEW)]
    effects = hears(endpoint, *a_message([b"x"], sender=A), now=after(millis(1)))
    assert records_delivered(effects) == [b"x"]
    assert bursts(effects) == []
    assert endpoint.next_deadline() is None


# Sending


def test_a_receiver_cannot_send() -> None:
    endpoint = started(R)
    with pytest.raises(LocalProtocolError, match=r"m77 only receives from group orders"):
        endpoint.send([b"record"], T0)
    assert not endpoint.is_sender
    assert (endpoint.send_room, endpoint.unsent_bytes) == (0, 0)


def test_what_is_sent_goes_out_at_once_in_bursts_of_whole_frames() -> None:
    config = a_config(send=FAST | {"burst_bytes": 1_000})
    endpoint = started(A, config=config)
    effects = endpoint.send([bytes(2_900)], after(millis(1)))
    sent = bursts(effects)
    assert [len(data) for data, _ in sent[:-1]] == [768] * (len(sent) - 1), "three frames of 256 fit a thousand bytes"
    assert {segment for _, segment in sent} == {256}
    assert sum(run.count for run in runs_said(effects)) == endpoint.counters.frames_sent == 14
    assert endpoint.counters.fragments_sent == 14


def test_a_record_that_is_too_large_is_named_and_nothing_is_sent() -> None:
    endpoint = started(A)
    with pytest.raises(MessageTooLarge, match="record 1 has 100001 bytes"):
        endpoint.send([b"fine", bytes(100_001)], T0)
    assert endpoint.unsent_bytes == 0
    assert endpoint.tick(T0) == []


def test_a_full_queue_refuses_and_takes_nothing_and_tells_when_there_is_room() -> None:
    endpoint = started(A, view=PAIR, config=a_config(send=FAST))
    told(endpoint, B, T0, contiguous={A: 0}, room_frames=0)
    record = bytes(90_000)
    while endpoint.send_room > len(record):
        endpoint.send([record], T0)
    queued, room = endpoint.unsent_bytes, endpoint.send_room
    with pytest.raises(Backpressure):
        endpoint.send([b"small", record], T0)
    assert (endpoint.unsent_bytes, endpoint.send_room) == (queued, room)
    assert queued + room == 1_000_000
    effects: list[Effect] = []
    for serial in range(2, 100):
        now, beyond = after(millis(serial)), START + timestamp_span(millis(1_000 + serial))
        fields = {"contiguous": {A: endpoint.counters.frames_sent}, "acknowledged": beyond, "room_frames": 500}
        effects += hears(endpoint, a_keepalive(B, 0, beyond), now=now)
        effects += told(endpoint, B, now, serial=serial, **fields)
    assert endpoint.unsent_bytes == 0
    assert len(delivered(effects)) == 11
    (notice,) = [effect for effect in effects if isinstance(effect, SendRoom)]
    assert notice.bytes_free >= len(record) + len(b"small"), "what was refused fits"


def test_what_the_network_refused_waits_until_it_takes_data_again() -> None:
    endpoint = started(A, config=a_config(send=FAST))
    endpoint.congested(T0)
    assert bursts(endpoint.send([b"waits"], after(millis(1)))) == []
    assert bursts(endpoint.tick(after(millis(500)))) == [], "nor keep-alives nor reports: they would overtake"
    assert endpoint.next_deadline() is None
    effects = endpoint.writable(after(millis(600)))
    (run,) = runs_said(effects)
    assert run.seq == 1


def test_own_messages_come_back_from_the_network_without_effect() -> None:
    endpoint = started(A, view=a_view(A), config=a_config(send=FAST))
    effects = endpoint.send([b"mine"], after(millis(1)))
    assert delivered(effects) == [(A, 1)]
    echoed = endpoint.receive(an_arrival(*bursts(effects)), after(millis(1)))
    assert delivered(echoed) == []
    assert endpoint.buffered_bytes == 0, "a lone member's messages are stable when delivered"


def test_frames_that_claim_to_be_mine_and_are_not_change_nothing() -> None:
    endpoint = started(A, config=a_config(send=FAST))
    forged = a_frame(sender=A, seq=1, timestamp=START + 500, payload=b"forged")
    hears(endpoint, forged, now=after(millis(1)))
    assert endpoint.buffered_bytes == 0
    effects = endpoint.send([b"mine"], after(millis(2)))
    effects += hears(endpoint, *promises(START + 10**9, B, C), now=after(millis(3)))
    assert records_delivered(effects) == [b"mine"]


def test_a_lone_sender_sends_a_message_larger_than_its_room() -> None:
    config = a_config("lan", send=FAST)
    endpoint = started(A, view=a_view(A), config=config)
    endpoint.send([b"small"], after(millis(1)))
    endpoint.send([bytes(8_000_000)], after(millis(2)))
    ticked(endpoint, after(millis(500)))
    assert endpoint.unsent_bytes == 0


# Receiving and ordering


def test_a_message_is_delivered_when_every_sender_has_promised_its_timestamp() -> None:
    endpoint = started(R)
    assert delivered(hears(endpoint, *a_message([b"x"], sender=A, timestamp=START + 100), now=after(millis(1)))) == []
    assert delivered(hears(endpoint, *promises(START + 100, B), now=after(millis(1)))) == []
    assert delivered(hears(endpoint, *promises(START + 100, C), now=after(millis(1)))) == [(A, 1)]
    assert endpoint.counters.messages_delivered == 1
    assert endpoint.counters.keepalive_deliveries == 1


def test_the_order_is_by_timestamp_then_sender_whatever_arrived_first() -> None:
    endpoint = started(R)
    effects = hears(
        endpoint,
        *a_message([b"c"], sender=C, timestamp=START + 100),
        *a_message([b"b"], sender=B, timestamp=START + 101),
        *a_message([b"a"], sender=A, timestamp=START + 100),
        *[a_keepalive(source, 1, START + 200) for source in (A, B, C)],
        now=after(millis(1)),
    )
    assert records_delivered(effects) == [b"a", b"c", b"b"]


def test_a_duplicate_is_delivered_once() -> None:
    endpoint = started(R)
    frames = a_message([b"x" * 300], sender=A, timestamp=START + 100, body=80)
    effects = hears(endpoint, *frames, *frames, *promises(START + 200, B, C), now=after(millis(1)))
    effects += hears(endpoint, *map(a_repair, frames), now=after(millis(2)))
    assert delivered(effects) == [(A, 4)]
    assert endpoint.counters.duplicates_received == 8


@pytest.mark.parametrize("service", [Service.RSO, Service.RTO])
def test_the_activation_point_is_the_first_frame_delivered(service: Service) -> None:
    endpoint = started(R, service=service, activations={A: 3})
    frames = [
        frame
        for seq in range(1, 6)
        for frame in a_message([b"%d" % seq], sender=A, seq=seq, timestamp=START + 100 + seq)
    ]
    effects = hears(endpoint, *frames, *promises(START + 500, B, C), now=after(millis(1)))
    assert records_delivered(effects) == [b"3", b"4", b"5"]
    (report,) = said(ticked(endpoint, after(millis(100))), Report)
    assert dict(report.contiguous)[A] == 5
    assert endpoint.counters.losses_detected == 0, "what is before it is not missed"


def test_a_senders_own_first_frame_has_its_activation_seq() -> None:
    endpoint = started(A, activations={A: 9}, config=a_config(send=FAST))
    (run,) = runs_said(endpoint.send([b"x"], after(millis(1))))
    assert run.seq == 9


def test_a_keep_alive_for_a_missing_frame_promises_only_when_the_gap_is_filled() -> None:
    endpoint = started(R, view=PAIR)
    lost = a_message([b"lost"], sender=B, timestamp=START + 90)
    effects = hears(endpoint, *a_message([b"x"], sender=A, timestamp=START + 100), now=after(millis(1)))
    effects += hears(endpoint, a_keepalive(B, 1, START + 200), now=after(millis(1)))
    assert delivered(effects) == [], "what is missing could come before"
    effects = hears(endpoint, a_repair(lost[0], sender=A), a_keepalive(A, 1, START + 200), now=after(millis(5)))
    assert records_delivered(effects) == [b"lost", b"x"]


def test_a_half_received_large_message_does_not_block_others() -> None:
    endpoint = started(R, view=PAIR)
    large = a_message([bytes(400)], sender=A, timestamp=START + 100, body=80)
    effects = hears(endpoint, *large[:3], *a_message([b"b"], sender=B, timestamp=START + 102), now=after(millis(1)))
    assert records_delivered(effects) == [b"b"]
    effects = hears(endpoint, *large[3:], a_keepalive(B, 1, START + 200), now=after(millis(2)))
    assert records_delivered(effects) == [bytes(400)]


def test_a_large_message_survives_loss_reordering_and_repair() -> None:
    sender = started(A, view=PAIR, counted=(A, B, R), config=a_config(send=FAST))
    receiver = started(R, view=PAIR)
    record = bytes(range(256)) * 40
    (run, *_) = runs_said(sender.send([record], after(millis(1))))
    frames = [run.frames[index].tobytes() for index in range(run.count)]
    hears(receiver, *reversed(frames[30:]), *frames[5:20], now=after(millis(2)))
    requests = said(ticked(receiver, after(millis(20))), RepairRequest)
    asked = sorted({seq for request in requests for _, first, last in request.ranges for seq in range(first, last + 1)})
    assert asked == [*range(1, 6), *range(21, 31)]
    hears(sender, *map(a_control_frame, requests), now=after(millis(21)))
    repairs = bursts(ticked(sender, after(millis(30))))
    effects = receiver.receive(an_arrival(*repairs), after(millis(31)))
    assert delivered(effects) == []
    effects += hears(receiver, *promises(START + 10**9, B), now=after(millis(33)))
    assert records_delivered(effects) == [record]
    assert sender.counters.repair_bytes_sent > 0


def test_source_order_does_not_wait_for_the_other_sources() -> None:
    endpoint = started(R, service=Service.RSO)
    effects = hears(endpoint, *a_message([b"x"], sender=A, timestamp=START + 100), now=after(millis(1)))
    assert records_delivered(effects) == [b"x"]
    assert not any(isinstance(effect, Order) for effect in effects)


def test_a_sender_follows_the_timestamp_order_whatever_its_application_chose() -> None:
    for service in (Service.UU, Service.RSO):
        endpoint = started(A, service=service)
        effects = hears(
            endpoint,
            *a_message([b"late"], sender=C, timestamp=START + 200),
            *a_message([b"early"], sender=B, timestamp=START + 100),
            now=after(millis(1)),
        )
        assert delivered(effects) == [(C, 1), (B, 1)]
        assert delivered(effects, Order) == [(B, 1)]
        effects = hears(endpoint, a_keepalive(B, 1, START + 300), now=after(millis(1)))
        assert (delivered(effects), delivered(effects, Order)) == ([], [(C, 1)])


def test_unreliable_delivery_never_hands_over_a_repair() -> None:
    for me in (A, S):
        endpoint = started(me, service=Service.UU, counted=(A, B, C))
        (frame,) = a_message([b"x"], sender=B, timestamp=START + 100)
        assert delivered(hears(endpoint, a_repair(frame, sender=C), now=after(millis(1)))) == []
        assert endpoint.counters.repairs_ignored == 1
        assert delivered(hears(endpoint, frame, now=after(millis(2)))) == [(B, 1)]


def test_a_member_with_the_unreliable_service_delivers_its_own_messages() -> None:
    endpoint = started(A, service=Service.UU, config=a_config(send=FAST))
    assert delivered(endpoint.send([b"mine"], after(millis(1)))) == [(A, 1)]


def test_frames_of_another_view_or_of_strangers_are_dropped_and_counted() -> None:
    endpoint = started(R)
    effects = hears(
        endpoint,
        *a_message([b"x"], sender=A, view_tag=1),
        *a_message([b"x"], sender=S),
        a_keepalive(A, 5, START + 9, view_tag=1),
        a_keepalive(S, 5, START + 9),
        a_control_frame(a_report(S)),
        a_control_frame(a_request(S, Span(A, 1, 1))),
        now=after(millis(1)),
    )
    assert effects == []
    assert endpoint.counters.dropped == {"view": 4, "member": 2}
    assert endpoint.counters.losses_detected == 0


# Clocks


def test_a_frame_from_a_wild_clock_is_refused_and_asked_for_until_time_has_caught_up() -> None:
    clock = HybridClock()
    endpoint = started(R, view=PAIR, clock=clock, config=a_config(group={"clock_bound_ms": 100}))
    wild = START + timestamp_span(millis(150))
    frames = a_message([b"wild"], sender=A, timestamp=wild)
    hears(endpoint, *frames, now=after(millis(1)))
    assert endpoint.counters.clock_refused == 1
    assert clock.last < wild
    assert endpoint.buffered_bytes == 0
    (request,) = said(ticked(endpoint, after(millis(6))), RepairRequest)
    assert request.ranges == ((A, 1, 1),)
    effects = hears(endpoint, a_repair(frames[0]), a_keepalive(B, 0, wild), now=after(millis(60)))
    assert records_delivered(effects) == [b"wild"]
    assert clock.last == wild


def test_a_wild_keep_alive_promises_nothing() -> None:
    endpoint = started(R, view=PAIR, config=a_config(group={"clock_bound_ms": 100}))
    effects = hears(endpoint, *a_message([b"x"], sender=A, timestamp=START + 100), now=after(millis(1)))
    effects += hears(endpoint, a_keepalive(B, 0, START + timestamp_span(millis(150))), now=after(millis(1)))
    assert delivered(effects) == []
    assert endpoint.counters.clock_refused == 1


def test_what_a_sender_stamps_is_above_everything_it_has_seen() -> None:
    endpoint = started(A, config=a_config(send=FAST))
    seen = START + timestamp_span(millis(500))
    hears(endpoint, *a_message([b"x"], sender=B, timestamp=seen), now=after(millis(1)))
    (run,) = runs_said(endpoint.send([b"reply"], after(millis(2))))
    assert run.timestamp > seen


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
