from __future__ import annotations

from typing import Any

import pytest

from intergroup_core.datapath.incoming import HELD_BYTES
from intergroup_core.effects import Counted, Effect, Gap, Install, Left, Order, Persist, SendRoom
from intergroup_core.endpoint import Endpoint
from intergroup_core.errors import Backpressure, LocalProtocolError, NoQuorum
from intergroup_core.ids import MemberId, Service, View, timestamp_span
from intergroup_core.membership.quorum import QuorumRecord, key_of
from intergroup_core.wire.membership import AddRequest, FailureBlock, Farewell, Solicitation
from intergroup_core.wire.messages import KeepAlive, RepairRequest, Report
from intergroup_core.wire.run import Run
from tests.builders import (
    FAST,
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
    a_keepalive,
    a_live_part,
    a_message,
    a_report,
    after,
    delivered,
    hears,
    millis,
    runs_said,
    said,
    ticked,
)
from tests.membership_builders import (
    a_change_frame,
    a_cut,
    a_farewell,
    a_join,
    a_leave,
    a_live_endpoint,
    a_live_receiver,
    a_membership_change,
    a_solicitation,
    a_sponsorship,
    a_view_id,
    an_add,
    an_entry,
)
from tests.property.fuzz_frames import a_live_sender

NEXT = a_view_id(START + 10**6, B)


def alone(**settings: Any) -> Endpoint:
    """A sender that found nobody."""
    endpoint = a_live_endpoint(A, sender=True, **settings)
    endpoint.start(T0)
    ticked(endpoint, after(millis(1_000)))
    assert endpoint.state == "sender"
    return endpoint


def ready(change: int, *members: MemberId) -> list[bytes]:
    """Reports of senders that have everything up to an ordered change."""
    return [
        a_control_frame(a_report(member, serial=change - START, live=a_live_part(ready=change))) for member in members
    ]


# Starting


def test_a_live_member_has_no_view_until_it_is_told_one() -> None:
    endpoint = a_live_endpoint(R)
    effects = endpoint.start(T0)
    assert (endpoint.view, endpoint.state, endpoint.is_sender) == (None, "bootstrap", False)
    assert not any(isinstance(effect, Install) for effect in effects)
    assert [type(message) for message in said(effects)] == [Solicitation]


def test_an_unreliable_receiver_takes_part_in_nothing() -> None:
    endpoint = a_live_endpoint(R, service=Service.UU)
    effects = endpoint.start(T0) + ticked(endpoint, after(millis(5_000)))
    assert said(effects) == []
    assert endpoint.next_deadline() is None
    assert delivered(hears(endpoint, *a_message(sender=B), now=after(millis(1)))) == [(B, 1)]
    assert endpoint.view is None


def test_an_unreliable_receiver_that_sends_looks_for_the_group() -> None:
    endpoint = a_live_endpoint(R, service=Service.UU)
    endpoint.start(T0)
    assert said(endpoint.send([b"mine"], after(millis(1))), Solicitation)
    assert endpoint.state == "bootstrap"


def test_an_unreliable_receiver_leaves_at_once() -> None:
    endpoint = a_live_endpoint(R, service=Service.UU)
    endpoint.start(T0)
    assert endpoint.leave(after(millis(1))) == [Left("left")]


def test_a_member_that_was_sponsored_installs_the_view_and_reports_itself_uncounted() -> None:
    endpoint = a_live_endpoint(R)
    endpoint.start(T0)
    effects = hears(endpoint, a_control_frame(a_sponsorship(newcomer=R)), now=T0)
    (install,) = [effect for effect in effects if isinstance(effect, Install)]
    assert install.view.members == (A, B, C)
    (report,) = said(effects, Report)
    assert report.live is not None
    assert not report.live.counted
    assert report.live.name == f"m{R:x}"


def test_what_the_network_refused_holds_back_a_member_that_begins_only_then() -> None:
    """The shell has something that waits, whatever brought it about."""
    endpoint = a_live_endpoint(A, sender=True, config=a_config(send=FAST))
    endpoint.start(T0)
    endpoint.congested(T0)
    ticked(endpoint, after(millis(1_000)))
    assert endpoint.state == "sender"
    assert runs_said(endpoint.send([b"waits"], after(millis(1_001)))) == []
    assert [run.seq for run in runs_said(endpoint.writable(after(millis(1_002))))] == [1]


def test_a_sponsorship_that_comes_twice_counts_once() -> None:
    endpoint = a_live_receiver(R)
    effects = hears(endpoint, a_control_frame(a_sponsorship(B, R, position=START + 99)), now=after(millis(1)))
    assert not any(isinstance(effect, Install) for effect in effects)


# Counting


def test_a_receiver_tells_when_all_senders_count_it() -> None:
    receiver = a_live_receiver(R)
    frames = [a_control_frame(a_report(each, live=a_live_part(counts=[R]))) for each in (A, B, C)]
    effects = hears(receiver, *frames[:2], now=after(millis(1)))
    assert Counted(True) not in effects
    assert Counted(True) in hears(receiver, frames[2], now=after(millis(2)))


def test_a_sender_knows_receivers_by_name_until_they_say_farewell() -> None:
    sender = a_live_sender()
    hears(sender, a_control_frame(a_report(R, live=a_live_part(counted=False, name="viewer"))), now=after(millis(1)))
    assert sender.receivers == {R: "viewer"}
    hears(sender, a_control_frame(a_farewell(R)), now=after(millis(2)))
    assert sender.receivers == {}


def test_a_receiver_that_falls_silent_is_forgotten() -> None:
    sender = a_live_sender()
    hears(sender, a_control_frame(a_report(R, live=a_live_part(counted=False))), now=after(millis(1)))
    for ms in range(100, 4_000, 100):
        frames = [a_keepalive(B, 1, START + 3_000 + ms), a_keepalive(C, 0, START + 3_000 + ms)]
        hears(sender, *frames, now=after(millis(ms)))
        sender.tick(after(millis(ms)))
    assert sender.receivers == {}


def test_a_report_of_an_unknown_view_is_dropped_and_counted() -> None:
    sender = a_live_sender()
    hears(sender, a_control_frame(a_report(R, live=a_live_part()), view_tag=NEXT.tag), now=after(millis(1)))
    assert sender.receivers == {}
    assert sender.counters.dropped == {"view": 1}


# Sending


def test_what_is_sent_before_the_member_is_a_sender_waits() -> None:
    endpoint = a_live_endpoint(R, config=a_config(send=FAST))
    endpoint.start(T0)
    assert runs_said(endpoint.send([b"early"], after(millis(1)))) == []
    effects = hears(endpoint, a_control_frame(a_sponsorship(newcomer=R)), now=after(millis(2)))
    assert said(effects, AddRequest)
    effects = hears(
        endpoint,
        a_change_frame(an_add(R), A, 1, START + 10),
        *(a_keepalive(each, 0, START + 20) for each in (B, C)),
        *ready(START + 10, A, B, C),
        now=after(millis(3)),
    )
    assert endpoint.state == "sender"
    (run,) = runs_said(effects + ticked(endpoint, after(millis(3))))
    assert (run.source, run.seq) == (R, 1)
    assert run.timestamp > START + 10, "its clock is above its Add (M3)"


def test_a_queue_that_is_full_before_there_is_a_view_refuses() -> None:
    endpoint = a_live_endpoint(R, config=a_config(send={"queue_bytes": 5_000}, group={"max_message_bytes": 5_000}))
    endpoint.start(T0)
    endpoint.send([bytes(4_000)], T0)
    with pytest.raises(Backpressure):
        endpoint.send([bytes(4_000)], T0)


def test_after_leaving_nothing_is_accepted() -> None:
    endpoint = a_live_endpoint(R)
    endpoint.start(T0)
    assert endpoint.leave(T0) == [Left("left")]
    with pytest.raises(LocalProtocolError, match="left"):
        endpoint.send([b"late"], T0)


def test_a_sender_without_a_quorum_is_told_so() -> None:
    record = QuorumRecord(VIEW.id, 1, frozenset(map(key_of, "abc"))).to_bytes()
    endpoint = alone(config=a_config(group={"quorum": "majority"}), record=record, site="a")
    with pytest.raises(NoQuorum, match="majority"):
        endpoint.send([b"mine"], after(millis(1_001)))


def test_a_record_that_is_garbage_is_as_good_as_none() -> None:
    endpoint = alone(config=a_config(group={"quorum": "majority"}), record=b"garbage")
    endpoint.send([b"mine"], after(millis(1_001)))


def test_a_view_is_persisted_before_anything_is_sent_in_it() -> None:
    endpoint = a_live_endpoint(A, sender=True)
    effects = endpoint.start(T0) + endpoint.send([b"mine"], T0) + ticked(endpoint, after(millis(1_000)))
    kinds = [type(effect) for effect in effects]
    sent = next(index for index, effect in enumerate(effects) if said([effect], Run))
    assert kinds.index(Persist) < kinds.index(Install) < sent


def test_a_sender_halts_in_a_repair() -> None:
    sender = a_live_sender()
    hears(sender, a_control_frame(a_join(B)), now=after(millis(1)))
    effects = sender.send([b"not now"], after(millis(2))) + ticked(sender, after(millis(15)))
    assert runs_said(effects) == []
    assert said(effects, KeepAlive) == []


def test_room_in_the_queue_is_told_without_a_view_too() -> None:
    endpoint = a_live_endpoint(R)
    endpoint.start(T0)
    assert endpoint.send_room > 0
    assert not any(isinstance(effect, SendRoom) for effect in endpoint.tick(after(millis(1))))


# Ordered changes


def test_an_add_takes_effect_when_all_senders_have_what_precedes_it() -> None:
    receiver = a_live_receiver(R)
    add = a_change_frame(an_add(S), A, 1, START + 10)
    hears(receiver, add, *(a_keepalive(each, 0, START + 20) for each in (B, C)), now=after(millis(1)))
    assert receiver.view is not None
    assert receiver.view.members == (A, B, C)
    hears(receiver, *ready(START + 10, A, B), now=after(millis(2)))
    assert receiver.view.members == (A, B, C)
    hears(receiver, *ready(START + 10, C), now=after(millis(3)))
    assert receiver.view.members == (A, B, S, C)
    assert receiver.view.id == a_view_id(START + 10, A, 1)


def test_data_before_and_after_a_change_is_delivered_around_it() -> None:
    receiver = a_live_receiver(R)
    effects = hears(
        receiver,
        *a_message(sender=A, seq=1, timestamp=START + 9),
        a_change_frame(a_leave(), A, 2, START + 10),
        *a_message(sender=B, seq=1, timestamp=START + 11),
        *(a_keepalive(each, seq, START + 20) for each, seq in ((B, 1), (C, 0))),
        *ready(START + 10, A, B, C),
        now=after(millis(1)),
    )
    places = [type(effect).__name__ for effect in effects if not said([effect])]
    assert places == ["Deliver", "Install", "Deliver"]
    assert delivered(effects) == [(A, 1), (B, 1)]


def test_one_that_was_added_and_says_nothing_is_waited_for() -> None:
    receiver = a_live_receiver(R)
    hears(
        receiver,
        a_change_frame(an_add(S), A, 1, START + 10),
        *(a_keepalive(each, 0, START + 20) for each in (B, C)),
        *ready(START + 10, A, B, C),
        now=after(millis(1)),
    )
    data = a_message(sender=A, seq=2, timestamp=START + 15)
    assert delivered(hears(receiver, *data, now=after(millis(2)))) == []
    assert delivered(hears(receiver, a_keepalive(S, 0, START + 16), now=after(millis(3)))) == [(A, 2)]


def test_source_order_has_its_views_in_the_order_inside() -> None:
    receiver = a_live_receiver(R, service=Service.RSO)
    effects = hears(
        receiver,
        *a_message(sender=B, seq=1, timestamp=START + 30),
        a_change_frame(an_add(S), A, 1, START + 10),
        *(a_keepalive(each, seq, START + 40) for each, seq in ((A, 1), (B, 1), (C, 0))),
        a_keepalive(S, 0, START + 40),
        *ready(START + 10, A, B, C),
        now=after(millis(1)),
    )
    effects += hears(receiver, a_keepalive(S, 0, START + 41), now=after(millis(2)))
    assert delivered(effects) == [(B, 1)]
    assert delivered(effects, Order) == [(B, 1)]
    order = [type(effect) for effect in effects if isinstance(effect, (Install, Order))]
    assert order == [Install, Order]


# Frames of views and sources that are not known yet (M0)


def early(seq: int = 1, size: int = 5, source: MemberId = B) -> bytes:
    return a_message([bytes(size)], sender=source, seq=seq, timestamp=NEXT.start + seq, view_tag=NEXT.tag)[0]


def test_held_frames_are_taken_when_their_view_begins() -> None:
    receiver = a_live_receiver(R)
    hears(receiver, early(1), early(2), now=after(millis(1)))
    assert receiver.counters.frames_held == 2
    change = a_membership_change(B, view=NEXT, entries=[an_entry(B)], cuts=[a_cut({A: 0, B: 0, C: 0})])
    effects = hears(receiver, a_control_frame(change), now=after(millis(2)))
    assert delivered(effects) == [(B, 1), (B, 2)]


def test_held_frames_have_a_bound() -> None:
    receiver = a_live_receiver(R)
    size = 60_000
    for seq in range(1, HELD_BYTES // size + 5):
        hears(receiver, early(seq, size), now=after(millis(1)))
    assert receiver.counters.frames_held <= HELD_BYTES // size
    assert receiver.counters.dropped["held"] >= 4


def test_what_was_not_held_is_asked_for_when_its_view_begins() -> None:
    receiver = a_live_receiver(R)
    hears(receiver, early(2), now=after(millis(1)))
    change = a_membership_change(B, view=NEXT, entries=[an_entry(B)], cuts=[a_cut({A: 0, B: 0, C: 0})])
    effects = hears(receiver, a_control_frame(change), now=after(millis(2)))
    assert delivered(effects) == []
    asked = said(ticked(receiver, after(millis(50))), RepairRequest)
    assert asked[0].ranges == ((B, 1, 1),)


def test_frames_of_a_past_view_are_dropped_and_counted() -> None:
    receiver = a_live_receiver(R)
    change = a_membership_change(B, view=NEXT, entries=[an_entry(B)], cuts=[a_cut({A: 0, B: 0, C: 0})])
    hears(receiver, a_control_frame(change), now=after(millis(1)))
    effects = hears(receiver, *a_message(sender=B, seq=1, timestamp=START + 9), now=after(millis(2)))
    assert delivered(effects) == []
    assert receiver.counters.dropped == {"view": 1}
    assert receiver.state == "receiver"


def test_a_frame_of_the_right_seq_and_the_wrong_view_is_not_delivered() -> None:
    """Without the tag it would look contiguous (M0)."""
    receiver = a_live_receiver(R)
    frames = [early(1), *(a_keepalive(each, 0, NEXT.start + 10**6) for each in (A, C))]
    assert delivered(hears(receiver, *frames, now=after(millis(1)))) == []


# A new incarnation


def test_a_gap_makes_another_member_of_it_and_says_how_much_is_unsure() -> None:
    receiver = a_live_receiver(R)
    frames = [*a_message(sender=C, seq=1, timestamp=START + 6), *(a_keepalive(each, 0, START + 9) for each in (A, B))]
    hears(receiver, *frames, now=after(millis(1)))
    change = a_membership_change(B, view=NEXT, entries=[an_entry(B)], cuts=[a_cut({A: 0, B: 0, C: 0})])
    effects = hears(receiver, a_control_frame(change), now=after(millis(2)))
    (gap,) = [effect for effect in effects if isinstance(effect, Gap)]
    assert (gap.incarnation, gap.unsure) == (receiver.me, 0)
    assert receiver.view is None
    calls = said(effects + ticked(receiver, after(millis(100))), Solicitation)
    assert {call.member for call in calls} == {gap.incarnation}


def test_a_new_incarnation_starts_above_what_was_delivered() -> None:
    receiver = a_live_receiver(R)
    frames = [*a_message(sender=C, seq=1, timestamp=START + 6), *(a_keepalive(each, 0, START + 9) for each in (A, B))]
    hears(receiver, *frames, now=after(millis(1)))
    change = a_membership_change(B, view=NEXT, entries=[an_entry(B)], cuts=[a_cut({A: 0, B: 0, C: 0})])
    hears(receiver, a_control_frame(change), now=after(millis(2)))
    view = View(id=NEXT, members=(B,))
    answer = a_sponsorship(B, receiver.me, view=view, position=NEXT.start)
    effects = hears(receiver, a_control_frame(answer), now=after(millis(3)))
    assert receiver.view is not None
    assert receiver.view.id == NEXT
    effects += hears(receiver, early(1), now=after(millis(4)))
    assert delivered(effects) == [(B, 1)]


def test_an_answer_for_a_new_incarnation_that_lies_below_what_was_delivered_is_not_taken() -> None:
    """Another component may answer that is behind what this member delivered: nothing may be delivered twice (M5)."""
    receiver = a_live_receiver(R)
    frames = [*a_message(sender=C, seq=1, timestamp=START + 6), *(a_keepalive(each, 0, START + 9) for each in (A, B))]
    assert delivered(hears(receiver, *frames, now=after(millis(1)))) == [(C, 1)]
    change = a_membership_change(B, view=NEXT, entries=[an_entry(B)], cuts=[a_cut({A: 0, B: 0, C: 0})])
    hears(receiver, a_control_frame(change), now=after(millis(2)))
    behind = a_sponsorship(C, receiver.me, position=START)
    effects = hears(receiver, a_control_frame(behind), *frames, now=after(millis(3)))
    assert delivered(effects) == []


# Leaving


def test_a_receiver_says_farewell() -> None:
    receiver = a_live_receiver(R)
    effects = receiver.leave(after(millis(1)))
    assert said(effects, Farewell) == [a_farewell(R)]
    assert effects[-1] == Left("left")
    assert receiver.state == "left"


def test_one_that_left_is_silent() -> None:
    receiver = a_live_receiver(R)
    receiver.leave(after(millis(1)))
    assert receiver.next_deadline() is None
    assert receiver.tick(after(millis(5_000))) == []
    assert hears(receiver, *a_message(), a_control_frame(a_solicitation(S)), now=after(millis(5_001))) == []


# Clocks (D4)


def test_one_to_whom_several_others_look_wild_leaves_because_of_its_clock() -> None:
    receiver = a_live_receiver(R)
    wild = START + timestamp_span(millis(3_600_000))
    effects: list[Effect] = []
    for ms, member in enumerate((A, B, C), start=1):
        effects += hears(receiver, a_keepalive(member, 0, wild), now=after(millis(ms)))
    effects += ticked(receiver, after(millis(3_000)))
    assert Left("clock") in effects


def test_one_wild_member_does_not_drive_others_out() -> None:
    receiver = a_live_receiver(R)
    wild = START + timestamp_span(millis(3_600_000))
    effects = hears(receiver, a_keepalive(A, 0, wild), now=after(millis(1)))
    assert receiver.counters.clock_refused == 1
    assert not any(isinstance(effect, Left) for effect in effects)
    assert receiver.state == "receiver"


# Pauses of this member (M8)


def a_sender_that_misses_a_frame() -> Endpoint:
    sender = a_live_sender()
    hears(sender, *a_message(sender=B, seq=3, timestamp=START + 4_000), now=after(millis(1)))
    sender.tick(after(millis(2)))
    assert sender.counters.losses_detected == 1
    return sender


def test_one_that_was_paused_accuses_nobody_of_what_it_did_not_get_meanwhile() -> None:
    sender = a_sender_that_misses_a_frame()
    effects = sender.tick(after(millis(60_000)))
    assert said(effects, FailureBlock) == []
    assert said(effects, RepairRequest), "it asks again"
    assert "sender>consensus: blocked" not in sender.counters.transitions


def test_one_that_was_not_paused_accuses_after_the_configured_time() -> None:
    sender = a_sender_that_misses_a_frame()
    effects: list[Effect] = []
    for ms in range(50, 12_000, 50):
        now = after(millis(ms))
        promises = [a_keepalive(each, seq, START + 5_000 + ms) for each, seq in ((B, 3), (C, 0))]
        effects += hears(sender, *promises, now=now) + sender.tick(now)
    (block,) = said(effects, FailureBlock)
    assert (block.process, block.seq) == (B, 2)


def test_a_promise_that_does_not_come_is_no_reason_to_accuse() -> None:
    receiver = a_live_receiver(R)
    effects = hears(receiver, *a_message(sender=A, seq=1, timestamp=START + 10), now=after(millis(1)))
    for ms in range(50, 12_000, 50):
        now = after(millis(ms))
        alive = [a_keepalive(each, timestamp=START + 5) for each in (B, C)]
        effects += hears(receiver, *alive, now=now) + receiver.tick(now)
    assert not any(isinstance(effect, Gap) for effect in effects)
    assert receiver.state == "receiver"


def test_a_promise_that_does_not_come_from_a_silent_source_ends_in_a_gap() -> None:
    receiver = a_live_receiver(R)
    effects = hears(receiver, *a_message(sender=A, seq=1, timestamp=START + 10), now=after(millis(1)))
    for ms in range(50, 12_000, 50):
        effects += receiver.tick(after(millis(ms)))
    assert any(isinstance(effect, Gap) for effect in effects)
