from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from intergroup_core.counters import Counters
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.multicast.ranges import Promise, Span
from intergroup_core.multicast.reliable import RecoveryDue, ReliableMulticast
from intergroup_core.ports import ConstantDistance
from intergroup_core.wire.exchange import clock_at
from intergroup_core.wire.messages import KeepAlive, RepairRequest
from tests.builders import (
    DISTANCE_NS,
    START,
    T0,
    VIEW,
    A,
    B,
    C,
    a_config,
    a_keepalive,
    a_repair,
    a_request,
    a_run,
    frames_of,
    millis,
    parsed,
)

NOW = T0.mono
LONG = millis(100)
VIEW_TAG = VIEW.id.tag
D = MemberId(0x0D)


def a_multicast(
    me: MemberId = A,
    counters: Counters | None = None,
    recovered: Callable[[MemberId, int, int], None] | None = None,
    seed: int = 1,
) -> ReliableMulticast:
    return ReliableMulticast(
        me,
        VIEW_TAG,
        {A: 1, B: 1, C: 1},
        START,
        a_config(),
        ConstantDistance(DISTANCE_NS),
        Random(seed),
        counters if counters is not None else Counters(),
        recovered,
    )


def keepalive(source: MemberId, seq: int, timestamp: int, *, repaired: bool = False) -> KeepAlive:
    frame = a_keepalive(source, seq, timestamp)
    (read,) = parsed(a_repair(frame) if repaired else frame)
    assert isinstance(read, KeepAlive)
    return read


def due_within(multicast: ReliableMulticast, start: int, length: int) -> RecoveryDue:
    """Everything that becomes due in a while, each at its own deadline."""
    everything = RecoveryDue()
    while (deadline := multicast.next_deadline()) is not None and deadline <= start + length:
        due = multicast.tick(deadline)
        everything.request = everything.request or due.request
        everything.repairs += due.repairs
        everything.keepalives += due.keepalives
        everything.given_up += due.given_up
        if everything.request is not None:
            break
    return everything


def untimed(request: RepairRequest | None) -> RepairRequest | None:
    """Without the time at which it was asked."""
    return None if request is None else replace(request, clock=0)


def test_frames_in_order_ask_for_nothing() -> None:
    counters = Counters()
    multicast = a_multicast(counters=counters)
    assert [run.seq for run in multicast.arrived(a_run(B, 1, START + 1, "||"), NOW)] == [1]
    assert [run.seq for run in multicast.arrived(a_run(B, 3, START + 3, "||"), NOW)] == [3]
    assert multicast.next_deadline() is None
    assert multicast.contiguous() == {A: 0, B: 4, C: 0}
    assert counters.losses_detected == 0


def test_a_gap_is_asked_for_after_a_delay_scaled_by_distance() -> None:
    counters = Counters()
    multicast = a_multicast(counters=counters)
    multicast.arrived(a_run(B, 4, START + 4, "|"), NOW)
    deadline = multicast.next_deadline()
    assert deadline is not None
    assert NOW + 2 * DISTANCE_NS <= deadline <= NOW + 4 * DISTANCE_NS
    assert multicast.tick(deadline - 1).request is None
    request = multicast.tick(deadline).request
    assert untimed(request) == a_request(A, Span(B, 1, 3))
    assert request is not None
    assert request.clock == clock_at(deadline)
    assert counters.losses_detected == 3
    assert counters.requests_sent == 1


def test_a_keep_alive_tells_of_the_loss_of_the_last_frames() -> None:
    multicast = a_multicast()
    multicast.arrived(a_run(B, 1, START + 1, "|"), NOW)
    assert not multicast.keepalive(keepalive(B, 3, START + 50), NOW)
    assert untimed(due_within(multicast, NOW, LONG).request) == a_request(A, Span(B, 2, 3))


def test_a_keep_alive_for_what_is_here_asks_for_nothing() -> None:
    multicast = a_multicast()
    multicast.arrived(a_run(B, 1, START + 1, "|"), NOW)
    assert multicast.keepalive(keepalive(B, 1, START + 50), NOW)
    assert multicast.promise_reached(B) == START + 50
    assert multicast.next_deadline() is None


def test_the_promise_of_a_keep_alive_holds_once_the_gap_is_filled() -> None:
    multicast = a_multicast()
    multicast.keepalive(keepalive(B, 2, START + 50), NOW)
    multicast.arrived(a_run(B, 1, START + 1, "|"), NOW)
    assert multicast.promise_reached(B) == START + 1
    multicast.arrived(a_run(B, 2, START + 2, "|", repaired=True), NOW)
    assert multicast.promise_reached(B) == START + 50


def test_what_arrives_is_not_asked_for_and_ends_the_loss() -> None:
    waits: list[tuple[MemberId, int, int]] = []
    multicast = a_multicast(recovered=lambda source, waited, distance: waits.append((source, waited, distance)))
    multicast.arrived(a_run(B, 4, START + 4, "|"), NOW)
    multicast.arrived(a_run(B, 1, START + 1, "|||"), NOW + millis(1))
    assert due_within(multicast, NOW, LONG).request is None
    assert waits == [(B, millis(1), DISTANCE_NS)]


def test_a_part_that_arrives_is_not_asked_for_and_the_rest_is() -> None:
    multicast = a_multicast()
    multicast.arrived(a_run(B, 10, START + 10, "|"), NOW)
    multicast.arrived(a_run(B, 4, START + 4, "||"), NOW)
    request = due_within(multicast, NOW, LONG).request
    assert request is not None
    asked = {seq for _, first, last in request.ranges for seq in range(first, last + 1)}
    assert asked <= {1, 2, 3, 6, 7, 8, 9}


def test_another_members_request_for_the_same_spares_mine() -> None:
    counters = Counters()
    multicast = a_multicast(counters=counters)
    multicast.arrived(a_run(B, 2, START + 2, "|"), NOW)
    multicast.requested(a_request(C, Span(B, 1, 1)), NOW + 1)
    assert due_within(multicast, NOW, 4 * DISTANCE_NS).request is None
    multicast.tick(NOW + 4 * DISTANCE_NS)
    assert counters.requests_suppressed == 1


def test_a_request_for_what_is_here_is_answered_by_anybody() -> None:
    multicast = a_multicast()
    run = a_run(B, 1, START + 1, "|.|")
    multicast.arrived(run, NOW)
    multicast.requested(a_request(C, Span(B, 2, 9)), NOW)
    deadline = multicast.next_deadline()
    assert deadline is not None
    assert NOW + DISTANCE_NS <= deadline <= NOW + 2 * DISTANCE_NS
    repairs = multicast.tick(deadline).repairs
    assert [frame for part in repairs for frame in frames_of(part)] == frames_of(run)[1:]


def test_own_frames_are_here_and_are_repaired() -> None:
    multicast = a_multicast()
    run = a_run(A, 1, START + 1, "||")
    multicast.sent(run)
    assert multicast.contiguous()[A] == 2
    assert multicast.buffer.bytes == run.nbytes
    multicast.requested(a_request(C, Span(A, 1, 2)), NOW)
    assert [frame for part in due_within(multicast, NOW, LONG).repairs for frame in frames_of(part)] == frames_of(run)


def test_a_repair_by_another_spares_mine() -> None:
    counters = Counters()
    multicast = a_multicast(counters=counters)
    multicast.arrived(a_run(B, 1, START + 1, "|"), NOW)
    multicast.requested(a_request(C, Span(B, 1, 1)), NOW)
    multicast.arrived(a_run(B, 1, START + 1, "|", repaired=True), NOW + 1)
    assert due_within(multicast, NOW, LONG).repairs == []
    multicast.tick(NOW + LONG)
    assert counters.repairs_suppressed == 1
    assert counters.repairs_received == 1
    assert counters.duplicates_received == 1


def test_what_nobody_holds_here_is_not_repaired() -> None:
    multicast = a_multicast()
    multicast.requested(a_request(C, Span(B, 1, 5), Promise(B, Timestamp(START + 5))), NOW)
    multicast.requested(a_request(C, Span(MemberId(0xDEAD), 1, 5)), NOW)
    assert multicast.next_deadline() is None


def test_a_wanted_promise_is_asked_for_until_it_comes() -> None:
    multicast = a_multicast()
    multicast.want_promise(B, START + 40, NOW)
    request = due_within(multicast, NOW, LONG).request
    assert untimed(request) == RepairRequest(
        requester=A, view_tag=VIEW_TAG, ranges=(), promises=((B, Timestamp(START + 40)),)
    )
    multicast.keepalive(keepalive(B, 0, START + 40), NOW + millis(5))
    multicast.promise_reached(B)
    assert due_within(multicast, NOW, LONG).request is None


def test_a_promise_is_not_asked_for_while_frames_of_that_source_are() -> None:
    multicast = a_multicast()
    multicast.arrived(a_run(B, 2, START + 2, "|"), NOW)
    multicast.want_promise(B, START + 40, NOW)
    assert untimed(due_within(multicast, NOW, LONG).request) == a_request(A, Span(B, 1, 1))


def test_a_third_member_repairs_a_keep_alive_verbatim() -> None:
    multicast = a_multicast()
    old, new = keepalive(B, 0, START + 40), keepalive(B, 0, START + 60)
    multicast.keepalive(new, NOW)
    multicast.keepalive(old, NOW)
    multicast.requested(a_request(C, Promise(B, Timestamp(START + 30))), NOW + millis(50))
    assert due_within(multicast, NOW, LONG).keepalives == [new.frame]


def test_a_keep_alive_too_low_for_who_asks_is_not_repeated() -> None:
    multicast = a_multicast()
    multicast.keepalive(keepalive(B, 0, START + 40), NOW)
    multicast.requested(a_request(C, Promise(B, Timestamp(START + 41))), NOW + millis(50))
    assert due_within(multicast, NOW, LONG).keepalives == []


def test_data_answers_a_request_for_a_promise_where_it_promises_enough() -> None:
    multicast = a_multicast()
    run = a_run(B, 1, START + 50, "||")
    multicast.arrived(run, NOW)
    multicast.requested(a_request(C, Promise(B, Timestamp(START + 51))), NOW + millis(50))
    assert [frames_of(part) for part in due_within(multicast, NOW, LONG).repairs] == [frames_of(run)[1:]]


def test_a_member_that_hears_a_source_often_still_repairs_for_one_that_does_not() -> None:
    multicast = a_multicast()
    repeated: list[bytes] = []
    for at in range(1, 200):
        now = NOW + millis(at)
        multicast.keepalive(keepalive(B, 0, START + at), now)
        if at % 20 == 0:
            multicast.requested(a_request(C, Promise(B, Timestamp(START + at - 5))), now + 1)
        repeated += due_within(multicast, now, millis(1)).keepalives
    assert repeated


def test_a_keep_alive_that_another_repeated_is_not_repeated_again() -> None:
    multicast = a_multicast()
    multicast.keepalive(keepalive(B, 0, START + 40), NOW)
    multicast.requested(a_request(C, Promise(B, Timestamp(START + 30))), NOW)
    multicast.keepalive(keepalive(B, 0, START + 40, repaired=True), NOW + 1)
    assert due_within(multicast, NOW, LONG).keepalives == []


def test_frames_that_were_not_believed_are_asked_for() -> None:
    multicast = a_multicast()
    multicast.refused(a_run(B, 1, START + 1, "||"), NOW)
    assert multicast.contiguous()[B] == 0
    assert untimed(due_within(multicast, NOW, LONG).request) == a_request(A, Span(B, 1, 2))


def test_a_request_without_an_answer_is_given_up_by_name() -> None:
    multicast = a_multicast()
    multicast.arrived(a_run(B, 3, START + 3, "|"), NOW)
    given_up: list[Span | Promise] = []
    now = NOW
    while not given_up and now < NOW + millis(30_000):
        deadline = multicast.next_deadline()
        assert deadline is not None
        now = deadline
        given_up = multicast.tick(now).given_up
    assert given_up == [Span(B, 1, 2)]
    assert now >= NOW + millis(10_000)


def test_frames_of_a_gap_are_kept_for_repairs_before_they_are_contiguous() -> None:
    multicast = a_multicast()
    run = a_run(B, 5, START + 5, "||")
    assert multicast.arrived(run, NOW) == []
    assert multicast.buffer.bytes == run.nbytes
    multicast.requested(a_request(C, Span(B, 5, 6)), NOW)
    found = [frame for part in due_within(multicast, NOW, 2 * DISTANCE_NS).repairs for frame in frames_of(part)]
    assert found == frames_of(run)


# Sources that come and go


def test_a_new_source_is_followed_from_its_activation_point() -> None:
    multicast = a_multicast()
    multicast.follow(D, 5, START + 40)
    assert multicast.contiguous()[D] == 4
    assert [run.seq for run in multicast.arrived(a_run(D, 5, START + 50), NOW)] == [5]


def test_a_source_that_is_followed_goes_on_and_what_it_skips_is_not_asked_for() -> None:
    multicast = a_multicast()
    multicast.arrived(a_run(B, 1, START + 1), NOW)
    multicast.exists(B, 5, NOW)
    multicast.follow(B, 4, START + 40)
    assert multicast.contiguous()[B] == 3
    due = multicast.tick(NOW + LONG)
    assert due.request is not None
    assert due.request.ranges == ((B, 4, 5),)


def test_nothing_is_asked_of_a_source_that_was_forgotten_and_what_is_here_of_it_is_repaired() -> None:
    multicast = a_multicast()
    multicast.arrived(a_run(B, 1, START + 1), NOW)
    multicast.arrived(a_run(B, 4, START + 4), NOW)
    multicast.forget(B)
    assert B not in multicast.contiguous()
    assert multicast.tick(NOW + LONG).request is None
    multicast.requested(a_request(C, Span(B, 1, 4)), NOW + LONG)
    repaired = [run.seq for run in multicast.tick(NOW + 3 * LONG).repairs]
    assert repaired == [1, 4]


def test_what_a_view_ends_with_is_asked_for_and_nothing_beyond() -> None:
    multicast = a_multicast()
    multicast.arrived(a_run(B, 9, START + 9), NOW)
    multicast.want(B, 4, NOW)
    due = multicast.tick(NOW + LONG)
    assert due.request is not None
    assert due.request.ranges == ((B, 1, 4),)


def test_requests_name_the_view_they_are_made_in() -> None:
    multicast = a_multicast()
    multicast.enter(VIEW_TAG ^ 1)
    multicast.arrived(a_run(B, 2, START + 2), NOW)
    due = multicast.tick(NOW + LONG)
    assert due.request is not None
    assert due.request.view_tag == VIEW_TAG ^ 1
