"""Receivers that fall silent because the hierarchy speaks for them, and senders that hear of it."""

from __future__ import annotations

from intergroup_core.hierarchy.flat import FlatReports
from intergroup_core.ids import MemberId
from tests.builders import START, A, B, C, R, a_live_part, a_report, millis
from tests.unit.hierarchy.test_flat import NOW, VIEW_TAG, WAITS, flat


def say_last_words(reports: FlatReports, times: int, now: int = NOW) -> int:
    """Let a receiver that may be silent report so many times; when that was over."""
    for _ in range(times):
        reports.relay(True, now)
        now += millis(50)
    return now


def a_silent_receiver(now: int = NOW) -> FlatReports:
    """R, in a view of A and B that both know of silent receivers."""
    reports = flat(me=R, counted=(A, B))
    reports.enter(VIEW_TAG, (A, B), None, now)
    for sender in (A, B):
        reports.received(a_report(sender, serial=1, live=a_live_part(indirect=True)), now)
    say_last_words(reports, FlatReports.RELAY_REPORTS + 1, now - millis(1_000))
    assert reports.silent
    return reports


def test_a_receiver_goes_on_saying_that_it_falls_silent_until_every_sender_knows() -> None:
    reports = flat(me=R, counted=(A, B))
    reports.enter(VIEW_TAG, (A, B), None, NOW)
    reports.received(a_report(A, serial=1, live=a_live_part(indirect=True)), NOW)
    reports.received(a_report(B, serial=1, live=a_live_part()), NOW)
    now = say_last_words(reports, 2 * FlatReports.RELAY_REPORTS)
    assert not reports.silent, "B did not hear it"
    reports.received(a_report(B, serial=2, live=a_live_part(indirect=True)), now)
    reports.relay(True, now)
    assert reports.silent


def test_a_silent_receiver_speaks_up_when_a_sender_knows_of_no_silent_ones() -> None:
    reports = a_silent_receiver()
    reports.postpone(NOW)
    reports.received(a_report(B, serial=2, live=a_live_part()), NOW)
    assert reports.next_deadline() <= NOW + millis(50)
    reports.relay(True, NOW)
    assert not reports.silent
    assert reports.make(START, {}, 1, NOW).live.relayed  # type: ignore[union-attr]


def test_a_silent_receiver_does_not_count_on_a_sender_that_knows_of_no_silent_ones() -> None:
    reports = a_silent_receiver()
    assert reports.heeded
    reports.received(a_report(B, serial=2, live=a_live_part()), NOW)
    assert not reports.heeded


def test_on_its_way_to_silence_a_receiver_is_waited_for_as_before() -> None:
    reports = flat(me=R, counted=(A, B))
    reports.enter(VIEW_TAG, (A, B), None, NOW)
    for sender in (A, B):
        reports.received(a_report(sender, serial=1, live=a_live_part(counts=(R,))), NOW)
    reports.relay(True, NOW)
    assert reports.heeded


def test_a_sender_that_hears_of_silent_receivers_says_so_soon() -> None:
    reports = flat()
    reports.enter(VIEW_TAG, (A, B), 1, NOW)
    reports.make(START, {}, 1, NOW)
    reports.received(a_report(R, live=a_live_part(relayed=True)), NOW)
    assert reports.next_deadline() <= NOW + millis(2)
    assert reports.make(START, {}, 1, NOW).live.indirect  # type: ignore[union-attr]


def test_one_that_reports_again_does_not_take_itself_for_counted() -> None:
    reports = flat(me=R, counted=(A, B))
    reports.enter(VIEW_TAG, (A, B), None, NOW)
    for sender in (A, B):
        reports.received(a_report(sender, serial=1, live=a_live_part(counts=(R,), indirect=True)), NOW)
    assert reports.counted
    reports.relay(True, NOW)
    reports.relay(False, NOW)
    assert not reports.counted


def everybody(member: MemberId) -> bool:
    return True


def test_senders_that_were_not_heard_for_long_are_trusted_again_after_as_long() -> None:
    reports = a_silent_receiver()
    limit = millis(1_000)
    assert reports.hears_senders(limit, NOW + limit, everybody)
    reports.received(a_report(A, serial=2, live=a_live_part(indirect=True)), NOW + limit)
    assert not reports.hears_senders(limit, NOW + limit + 1, everybody), "B is silent"
    for serial, at in ((3, NOW + limit + 2), (4, NOW + 2 * limit)):
        for sender in (A, B):
            reports.received(a_report(sender, serial=serial, live=a_live_part(indirect=True)), at)
    assert not reports.hears_senders(limit, NOW + 2 * limit + 1, everybody)
    assert reports.hears_senders(limit, NOW + 2 * limit + 2, everybody)


def test_a_sender_in_another_hierarchy_is_as_good_as_not_heard() -> None:
    reports = a_silent_receiver()
    limit = millis(1_000)
    assert not reports.hears_senders(limit, NOW, lambda member: member == A)
    assert reports.hears_senders(limit, NOW, everybody)
    for sender in (A, B):
        reports.received(a_report(sender, serial=2, live=a_live_part(indirect=True)), NOW + limit)
    assert reports.hears_senders(limit, NOW + limit, lambda member: member == A)
    assert not reports.hears_senders(limit, NOW + limit + 1, lambda member: member == A)


def test_a_new_sender_has_a_while_to_be_heard() -> None:
    reports = a_silent_receiver()
    limit = millis(1_000)
    assert reports.hears_senders(limit, NOW, everybody)
    reports.enter(VIEW_TAG, (A, B, C), None, NOW + limit)
    for sender in (A, B):
        reports.received(a_report(sender, serial=2, live=a_live_part(indirect=True)), NOW + limit)
    assert reports.hears_senders(limit, NOW + 2 * limit, everybody)
    assert not reports.hears_senders(limit, NOW + 2 * limit + 1, everybody)


def test_a_receiver_reports_again_while_a_sender_cannot_go_by_the_hierarchy() -> None:
    reports = a_silent_receiver()
    reports.received(a_report(B, serial=2, live=a_live_part()), NOW)
    now = say_last_words(reports, FlatReports.UNHEEDED_REPORTS + 1)
    assert reports.relaying
    now = say_last_words(reports, FlatReports.UNHEEDED_REPORTS, now)
    assert not reports.relaying
    reports.received(a_report(B, serial=3, live=a_live_part(indirect=True)), now)
    reports.relay(True, now)
    assert reports.relaying


def test_a_sender_that_lost_the_hierarchy_takes_reports_for_what_they_are() -> None:
    reports = flat(counted=(A, B))
    reports.enter(VIEW_TAG, (A, B), 1, NOW)
    reports.received(a_report(B, acknowledged=START + 40, live=a_live_part()), NOW)
    reports.received(a_report(R, serial=1, acknowledged=START + 10, live=a_live_part(relayed=True)), NOW)
    reports.told(None, WAITS, NOW)
    assert reports.stable(START + 50) == 0
    lost = NOW + WAITS.patience + 1
    reports.told(None, WAITS, lost)
    assert not reports.make(START, {}, 1, lost).live.indirect  # type: ignore[union-attr]
    reports.count(R, lost)
    reports.received(a_report(R, serial=2, acknowledged=START + 20, live=a_live_part(relayed=True)), lost)
    assert reports.stable(START + 50) == 0, "others may not have heard that it asks for reports"
    reports.told(None, WAITS, lost + WAITS.notice + 1)
    assert reports.stable(START + 50) == START + 20


def test_last_words_are_not_said_all_at_once() -> None:
    reports = flat(me=R, counted=(A, B))
    reports.enter(VIEW_TAG, (A, B), None, NOW)
    for sender in (A, B):
        reports.received(a_report(sender, serial=1, live=a_live_part(indirect=True)), NOW)
    for millisecond in range(149):
        reports.relay(True, NOW + millis(millisecond))
    assert not reports.silent
    reports.relay(True, NOW + millis(150))
    assert reports.silent
