from __future__ import annotations

from typing import Any

from intergroup_core.config import ReportConfig
from intergroup_core.hierarchy.flat import FlatReports
from intergroup_core.ids import MemberId
from tests.builders import START, T0, VIEW, A, B, C, R, a_report, millis

NOW = T0.mono
FRAME = 1_000
VIEW_TAG = VIEW.id.tag


def flat(me: MemberId = A, counted: tuple[MemberId, ...] = (A, B, R), **settings: Any) -> FlatReports:
    config = ReportConfig(**{"busy_ms": 2.0, "idle_ms": 100.0, "room_bytes": 400_000, "room_fraction": 0.25} | settings)
    return FlatReports(me, VIEW_TAG, counted, {A: 1, B: 1}, config, FRAME)


def test_nothing_is_stable_until_every_counted_member_has_reported() -> None:
    reports = flat()
    assert reports.stable(START + 50) == 0
    reports.received(a_report(B, acknowledged=START + 40))
    assert reports.stable(START + 50) == 0
    reports.received(a_report(R, acknowledged=START + 30))
    assert reports.stable(START + 50) == START + 30
    assert reports.stable(START + 10) == START + 10, "this member counts too"


def test_a_lone_member_is_stable_by_itself() -> None:
    assert flat(counted=(A,)).stable(START + 50) == START + 50


def test_a_member_that_is_not_counted_holds_nothing_back() -> None:
    reports = flat(counted=(A, B))
    reports.received(a_report(B, acknowledged=START + 40, room_frames=100))
    before = reports.window
    reports.received(a_report(C, acknowledged=START, room_frames=0))
    assert reports.stable(START + 50) == START + 40
    assert reports.window == before


def test_reports_of_members_that_are_not_counted_are_not_kept() -> None:
    reports = flat(counted=(A, B))
    assert not reports.received(a_report(C))


def test_only_a_newer_report_of_a_member_counts() -> None:
    reports = flat(counted=(A, B))
    assert reports.received(a_report(B, serial=5, acknowledged=START + 50))
    assert not reports.received(a_report(B, serial=5, acknowledged=START + 60))
    assert not reports.received(a_report(B, serial=4, acknowledged=START + 10))
    assert reports.stable(START + 99) == START + 50


def test_the_window_follows_the_slowest_member() -> None:
    reports = flat()
    reports.received(a_report(B, contiguous={A: 90}, room_frames=200))
    reports.received(a_report(R, contiguous={A: 50}, room_frames=30))
    assert reports.window == 80
    assert reports.slowest() == R
    assert reports.lowest_contiguous(A) == 50
    reports.received(a_report(R, serial=2, contiguous={A: 90}, room_frames=300))
    assert reports.window == 290
    assert reports.slowest() == B


def test_no_room_closes_the_window_where_the_member_is() -> None:
    reports = flat(counted=(A, B))
    reports.received(a_report(B, contiguous={A: 70}, room_frames=0))
    assert reports.window == 70


def test_before_a_member_reports_little_room_is_assumed() -> None:
    reports = flat()
    assert reports.window == FlatReports.INITIAL_FRAMES
    reports.received(a_report(B, contiguous={A: 10}, room_frames=5_000))
    assert reports.window == FlatReports.INITIAL_FRAMES


def test_the_window_of_a_later_activation_starts_there() -> None:
    config = ReportConfig()
    reports = FlatReports(A, VIEW_TAG, (A, B), {A: 500, B: 1}, config, FRAME)
    assert reports.window == 499 + FlatReports.INITIAL_FRAMES
    assert reports.lowest_contiguous(A) == 499


def test_a_lone_sender_has_no_window() -> None:
    reports = flat(counted=(A,))
    assert reports.window > 1 << 48
    assert reports.slowest() is None


def test_room_is_shared_by_the_sources() -> None:
    assert flat().room_frames(400_000) == 200
    assert flat().room_frames(FRAME) == 0
    assert flat().room_frames(0) == 0


def test_the_first_report_is_due_at_once_and_then_after_the_idle_time() -> None:
    reports = flat()
    assert reports.next_deadline() <= NOW
    reports.make(START, {A: 0, B: 0}, 10, NOW)
    assert reports.next_deadline() == NOW + millis(100)


def test_while_data_arrives_reports_come_within_the_busy_time() -> None:
    reports = flat()
    reports.make(START, {}, 200, NOW)
    reports.data_arrived(1, NOW + millis(10))
    assert reports.next_deadline() == NOW + millis(12)
    reports.data_arrived(1, NOW + millis(11))
    assert reports.next_deadline() == NOW + millis(12), "more data does not put it off"


def test_a_report_is_due_at_once_when_much_of_the_room_is_used() -> None:
    reports = flat()
    reports.make(START, {}, 200, NOW)
    reports.data_arrived(99, NOW + millis(1))
    assert reports.next_deadline() == NOW + millis(3)
    reports.data_arrived(1, NOW + millis(1.5))
    assert reports.next_deadline() == NOW + millis(1.5)
    reports.make(START, {}, 200, NOW + millis(1.5))
    reports.data_arrived(99, NOW + millis(2))
    assert reports.next_deadline() == NOW + millis(4), "a report starts the count anew"


def test_progress_is_told_within_the_busy_time() -> None:
    reports = flat()
    reports.make(START, {}, 200, NOW)
    reports.progressed(NOW + millis(5))
    assert reports.next_deadline() == NOW + millis(7)


def test_room_that_comes_back_is_told_at_once_if_little_had_been_told() -> None:
    reports = flat()
    reports.make(START, {}, 0, NOW)
    reports.room_changed(0, NOW + millis(1))
    assert reports.next_deadline() == NOW + millis(100)
    reports.room_changed(1, NOW + millis(2))
    assert reports.next_deadline() == NOW + millis(2)


def test_room_that_hardly_changed_is_told_with_the_next_report() -> None:
    reports = flat()
    reports.make(START, {}, 100, NOW)
    reports.room_changed(150, NOW + millis(1))
    reports.room_changed(20, NOW + millis(1))
    assert reports.next_deadline() == NOW + millis(100)
    reports.room_changed(201, NOW + millis(2))
    assert reports.next_deadline() == NOW + millis(2)


def test_a_report_says_what_this_member_has_and_takes() -> None:
    reports = flat(me=R)
    first = reports.make(START + 5, {A: 7, B: 9}, 33, NOW)
    assert first == a_report(R, serial=1, acknowledged=START + 5, contiguous={A: 7, B: 9}, room_frames=33)
    assert reports.make(START + 5, {A: 7, B: 9}, 33, NOW).serial == 2
