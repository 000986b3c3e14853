"""A child's side of a local group."""

from __future__ import annotations

from intergroup_core.hierarchy.attachment import MAX_SENT
from tests.hierarchy_builders import (
    CHIEF,
    KEY,
    ME,
    MS,
    OTHER,
    SECOND_KEY,
    THIRD,
    S,
    T,
    a_ccon,
    acks,
    an_attachment,
    an_lcon,
    clock,
)


def echoed(sent: int, held_us: int = 0) -> dict[str, object]:
    return {"echoes": {ME: (clock(sent), held_us)}}


def test_a_message_counts_once_it_was_heard_before_what_is_in_every_minimum() -> None:
    child = an_attachment()
    child.sent(clock(T), [KEY], T)
    # It came at T + 10 ms; by T + 5 ms only is everything counted.
    child.receive_coordinator(a_ccon(sent=T + 50 * MS, counted=45_000, **echoed(T, 40_000)), 2, T + 60 * MS)
    assert child.counted_at(KEY) is None
    child.receive_coordinator(a_ccon(sent=T + 90 * MS, counted=70_000), 2, T + 100 * MS)
    assert child.counted_at(KEY) == T
    assert child.all_counted([KEY], T)
    assert not child.all_counted([KEY], T + 1)
    assert not child.all_counted([KEY, SECOND_KEY], T)


def test_it_counts_since_it_was_sent_however_late_the_news_is() -> None:
    child = an_attachment()
    child.sent(clock(T), [KEY], T)
    late = T + 500 * S
    child.receive_coordinator(a_ccon(sent=T + 90 * MS, counted=0, **echoed(T, 40_000)), 2, late)
    assert child.counted_at(KEY) == T


def test_what_is_taken_back_counts_only_after_it_is_said_again() -> None:
    child = an_attachment()
    child.sent(clock(T), [KEY], T)
    child.forget(KEY)
    child.receive_coordinator(a_ccon(sent=T + 90 * MS, counted=0, **echoed(T, 40_000)), 2, T + S)
    assert child.counted_at(KEY) is None
    assert child.all_counted([], T)


def test_many_messages_after_the_one_that_was_echoed_do_not_push_it_out() -> None:
    child = an_attachment()
    child.sent(clock(T), [KEY], T)
    child.receive_coordinator(a_ccon(sent=T + 50 * MS, counted=50_000, **echoed(T, 40_000)), 2, T + 60 * MS)
    for number in range(2 * MAX_SENT):
        child.sent(clock(T + number * MS) + 1, [KEY], T + number * MS)
    child.receive_coordinator(a_ccon(sent=T + 90 * MS, counted=10), 2, T + 100 * MS)
    assert child.counted_at(KEY) == T


def test_the_system_acknowledgment_stays_while_the_coordinator_does_not_know_it() -> None:
    child = an_attachment()
    child.receive_coordinator(a_ccon(sent=T, acknowledgments=acks(5)), 2, T)
    child.receive_coordinator(a_ccon(sent=T + 1_000), 2, T)
    assert child.system == acks(5)


def test_an_older_message_of_the_coordinator_changes_nothing() -> None:
    child = an_attachment()
    child.receive_coordinator(a_ccon(sent=T + S, children=7, acknowledgments=acks(9)), 2, T)
    child.receive_coordinator(a_ccon(sent=T, children=3, acknowledgments=acks(5)), 2, T)
    assert (child.children, child.system) == (7, acks(9))
    assert child.has_newer_than(clock(T))
    assert not child.has_newer_than(clock(T + S))


def test_a_silent_coordinator_or_one_that_does_not_hear_this_site_is_lost() -> None:
    silent, deaf = an_attachment(), an_attachment()
    assert not silent.forget_silent(S, T + S)
    assert silent.forget_silent(S, T + S + 1)
    for second in range(3):
        deaf.receive_coordinator(a_ccon(sent=T + second * S), 2, T + second * S)
    assert not deaf.forget_silent(S, T + 2 * S)
    deaf.receive_coordinator(a_ccon(sent=T + 3 * S), 2, T + 2 * S + 1)
    assert deaf.forget_silent(S, T + 2 * S + 1)


def test_who_stood_still_itself_loses_nobody() -> None:
    child = an_attachment()
    child.excuse(10 * S)
    assert not child.forget_silent(S, T + 10 * S)


def test_distances_in_the_group_are_measured_or_go_by_way_of_the_coordinator() -> None:
    child = an_attachment(distance_us=5_000)
    told = a_ccon(local_distances={OTHER: 2_000, THIRD: 3_000}, coordinator_distances={CHIEF + 1: 40_000})
    child.receive_coordinator(told, 2, T)
    assert child.distance_to(OTHER) == 7_000
    child.receive_sibling(an_lcon(OTHER, echoes={ME: (clock(T), 0)}), 2, T + 8 * MS)
    assert child.distance_to(OTHER) == 4_000
    assert child.distance_to(THIRD) == 8_000
    assert child.from_coordinator == {CHIEF + 1: 40_000}


def test_coordinators_that_nobody_mentions_any_more_are_forgotten() -> None:
    child = an_attachment()
    child.receive_coordinator(a_ccon(sent=T, coordinator_distances={OTHER: 40_000}), 2, T)
    for second in range(1, 10):
        child.receive_coordinator(a_ccon(sent=T + second * S, **echoed(T)), 2, T + second * S)
        child.forget_silent(S, T + second * S)
    assert child.from_coordinator == {}
