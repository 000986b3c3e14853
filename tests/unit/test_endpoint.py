from __future__ import annotations

from collections.abc import Sequence

import pytest

from intergroup_core.delivery.clock import HybridClock
from intergroup_core.effects import Effect, Install, Multicast, Order, Outcome, Persist, SendRoom
from intergroup_core.errors import Backpressure, LocalProtocolError, MessageTooLarge
from intergroup_core.ids import Service, timestamp_span
from intergroup_core.multicast.ranges import Span
from intergroup_core.wire.messages import KeepAlive, RepairRequest, Report
from tests.builders import (
    FAST,
    PAIR,
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
    hears,
    millis,
    promises,
    records_delivered,
    runs_said,
    said,
    started,
    ticked,
    told,
)
from tests.membership_builders import a_change_frame, an_add

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


# What goes before the rest of a stimulus is worked out


def test_what_others_wait_for_goes_before_anything_is_delivered() -> None:
    endpoint = started(A)
    early: list[tuple[list[Effect], int]] = []
    endpoint.hasten(lambda effects: early.append((list(effects), endpoint.counters.messages_delivered)))
    sent_at = START + timestamp_span(millis(1))
    frames = [*a_message([b"x"], sender=B, timestamp=sent_at), *promises(sent_at + 10, C)]
    rest = hears(endpoint, *frames, now=after(millis(1)))
    assert records_delivered(rest) == [b"x"]
    assert said(rest, KeepAlive) == []
    ((answer, delivered_by_then),) = early
    (keepalive,) = said(answer, KeepAlive)
    assert keepalive.timestamp > sent_at
    assert delivered_by_then == 0


def test_what_is_sent_goes_early_and_once() -> None:
    endpoint = started(A)
    early: list[Effect] = []
    endpoint.hasten(early.extend)
    rest = endpoint.send([b"x"], after(millis(1)))
    assert [run.count for run in runs_said(early)] == [1]
    assert runs_said(rest) == []


def test_what_the_network_refuses_early_holds_back_what_comes_after() -> None:
    endpoint = started(A, view=a_view(A), config=a_config(send=FAST | {"bundle_bytes": 500}))
    refused: list[Effect] = []

    def refuse(effects: Sequence[Effect]) -> None:
        refused.extend(effects)
        endpoint.congested(after(millis(1)))

    endpoint.hasten(refuse)
    endpoint.send([bytes(400)] * 3, after(millis(1)))
    first = len(runs_said(refused))
    assert first > 0
    assert endpoint.next_deadline() is None, "a member the network takes nothing from waits for it alone"
    endpoint.send([b"later"], after(millis(2)))
    assert len(runs_said(refused)) == first


@pytest.mark.parametrize("other", [Persist(b"state"), Install(VIEW)])
def test_nothing_overtakes_what_is_not_for_the_network(other: Effect) -> None:
    outcome = Outcome([Multicast(b"before", 6), other, Multicast(b"after", 5)])
    early: list[Effect] = []
    outcome.early = early.extend
    outcome.hasten()
    assert early == []
    assert len(outcome) == 3


def test_where_nobody_asked_for_it_nothing_goes_early() -> None:
    outcome = Outcome([Multicast(b"data", 4)])
    outcome.hasten()
    assert outcome == [Multicast(b"data", 4)]


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


# A view that stays


@pytest.mark.parametrize("service", [Service.RTO, Service.RSO])
def test_ordered_membership_messages_mean_nothing_in_a_view_that_stays(service: Service) -> None:
    receiver = started(R, service=service)
    effects = hears(
        receiver,
        a_change_frame(an_add(S), A, 1, START + 1),
        *a_message([b"data"], sender=A, seq=2, timestamp=START + 2),
        *promises(START + 9, B, C),
        now=after(millis(1)),
    )
    assert records_delivered(effects) == [b"data"], "nobody waits for one that a message claims to add"
    assert receiver.view == VIEW
