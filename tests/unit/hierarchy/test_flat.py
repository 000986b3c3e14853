from __future__ import annotations

from typing import Any

from intergroup_core.config import ReportConfig
from intergroup_core.hierarchy.flat import FlatReports
from intergroup_core.hierarchy.relayed import Waits
from intergroup_core.ids import MemberId
from intergroup_core.wire.messages import LiveReport
from tests.builders import START, T0, VIEW, A, B, C, R, a_live_part, a_report, millis

NOW = T0.mono
FRAME = 1_000
VIEW_TAG = VIEW.id.tag
WAITS = Waits(margin=millis(400), patience=millis(7_000), notice=millis(2_400))


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


# Where views change (D7)


def live(me: MemberId = A, senders: tuple[MemberId, ...] = (A, B), **settings: Any) -> FlatReports:
    """A member of a view with these senders that knows of no receivers."""
    reports = flat(me, counted=senders, **settings)
    reports.enter(VIEW_TAG, senders, 1 if me in senders else None, NOW)
    return reports


def told(reports: FlatReports, member: MemberId, *, serial: int = 1, now: int = NOW, **fields: Any) -> None:
    part = {key: fields.pop(key) for key in ("counted", "counts", "ready", "stable", "name") if key in fields}
    reports.received(a_report(member, serial=serial, live=a_live_part(**part), **fields), now)


def made(reports: FlatReports, now: int = NOW) -> LiveReport:
    report = reports.make(START, {}, 100, now)
    assert report.live is not None
    return report.live


def test_senders_are_counted_because_they_are_in_the_view() -> None:
    reports = live()
    assert reports.counted
    assert reports.stable(START + 50) == 0, "B has not reported"
    told(reports, B, acknowledged=START + 40)
    assert reports.stable(START + 50) == START + 40


def test_a_receiver_is_counted_from_its_first_report_on() -> None:
    reports = live()
    told(reports, B, acknowledged=START + 40)
    reports.count(R, NOW)
    assert reports.stable(START + 50) == 0
    told(reports, R, acknowledged=START + 30, counted=False)
    assert reports.stable(START + 50) == START + 30
    assert reports.receivers == [R]


def test_a_receiver_that_does_not_know_itself_counted_is_named_until_it_does() -> None:
    reports = live()
    reports.count(R, NOW)
    told(reports, R, counted=False)
    assert made(reports).counts == (R,)
    told(reports, R, serial=2, counted=True)
    assert made(reports).counts == ()


def test_only_so_many_are_named_in_one_report() -> None:
    reports = live()
    for member in map(MemberId, range(1_000, 1_000 + 2 * FlatReports.MAX_COUNTS)):
        reports.count(member, NOW)
        told(reports, member, counted=False)
    assert len(made(reports).counts) == FlatReports.MAX_COUNTS


def test_a_receiver_knows_itself_counted_when_every_sender_named_it() -> None:
    reports = live(R)
    assert not reports.counted
    told(reports, A, counts=[R])
    assert not reports.counted
    told(reports, B, counts=[C])
    assert not reports.counted
    told(reports, B, serial=2, counts=[C, R])
    assert reports.counted
    assert made(reports).counted


def test_a_new_epoch_makes_a_receiver_unsure() -> None:
    reports = live(R)
    for sender in (A, B):
        told(reports, sender, counts=[R])
    reports.enter(VIEW_TAG ^ 1, (A, B), None, NOW)
    assert not reports.counted


def test_a_new_sender_has_to_count_a_receiver_too() -> None:
    reports = live(R)
    for sender in (A, B):
        told(reports, sender, counts=[R])
    reports.enter(VIEW_TAG, (A, B, C), None, NOW)
    assert not reports.counted
    told(reports, C, counts=[R])
    assert reports.counted


def test_one_that_is_not_counted_yet_reports_more_often() -> None:
    reports = live(R, idle_ms=160.0)
    reports.make(START, {}, 100, NOW)
    assert reports.next_deadline() == NOW + millis(20)
    for sender in (A, B):
        told(reports, sender, counts=[R])
    reports.make(START, {}, 100, NOW)
    assert reports.next_deadline() == NOW + millis(160)


def test_a_sender_answers_one_that_waits_to_be_counted_soon() -> None:
    reports = live(busy_ms=2.0)
    reports.make(START, {}, 100, NOW)
    reports.count(R, NOW)
    reports.make(START, {}, 100, NOW)
    told(reports, R, counted=False)
    assert reports.next_deadline() == NOW + millis(2)


def test_a_pin_holds_the_acknowledgment_until_the_newcomer_is_counted() -> None:
    reports = live()
    reports.pin(R, START + 10, NOW + millis(1_000))
    assert reports.pinned(START + 50, NOW) == START + 10
    reports.count(R, NOW)
    told(reports, R, counted=False)
    assert reports.pinned(START + 50, NOW) == START + 10
    told(reports, R, serial=2, counted=True)
    assert reports.pinned(START + 50, NOW) == START + 50


def test_a_pin_ends_with_its_lease() -> None:
    reports = live()
    reports.pin(R, START + 10, NOW + millis(1_000))
    assert reports.pinned(START + 50, NOW + millis(999)) == START + 10
    assert reports.pinned(START + 50, NOW + millis(1_000)) == START + 50


def test_the_lowest_pin_counts_and_a_pin_never_raises() -> None:
    reports = live()
    reports.pin(R, START + 10, NOW + millis(1_000))
    reports.pin(C, START + 20, NOW + millis(2_000))
    assert reports.pinned(START + 50, NOW) == START + 10
    assert reports.pinned(START + 5, NOW) == START + 5
    assert reports.pinned(START + 50, NOW + millis(1_500)) == START + 20


def test_a_newcomer_that_calls_again_is_pinned_where_it_starts_now() -> None:
    reports = live()
    reports.pin(R, START + 10, NOW + millis(1_000))
    reports.pin(R, START + 30, NOW + millis(1_500))
    assert reports.pinned(START + 50, NOW) == START + 30


def test_receivers_that_are_silent_for_long_are_forgotten_and_senders_are_not() -> None:
    reports = live()
    told(reports, B, acknowledged=START + 40)
    reports.count(R, NOW)
    told(reports, R, acknowledged=START + 10, now=NOW + millis(100))
    assert reports.forget_silent(millis(500), NOW + millis(600)) == []
    assert reports.forget_silent(millis(500), NOW + millis(601)) == [R]
    assert reports.stable(START + 50) == START + 40
    assert reports.receivers == []


def test_a_forgotten_receiver_is_counted_again_when_it_is_heard() -> None:
    reports = live()
    told(reports, B, acknowledged=START + 40)
    reports.count(R, NOW)
    reports.forget_silent(millis(500), NOW + millis(501))
    reports.count(R, NOW + millis(600))
    told(reports, R, serial=9, acknowledged=START + 20, counted=False)
    assert reports.stable(START + 50) == START + 20
    assert made(reports).counts == (R,)


def test_one_that_said_farewell_is_not_waited_for() -> None:
    reports = live()
    told(reports, B, acknowledged=START + 40)
    reports.count(R, NOW)
    reports.pin(R, START, NOW + millis(1_000))
    reports.uncount(R)
    assert reports.stable(START + 50) == START + 40
    assert reports.pinned(START + 50, NOW) == START + 50


def test_a_sender_that_leaves_the_view_is_a_receiver_as_long_as_it_is_heard() -> None:
    reports = live()
    told(reports, B, acknowledged=START + 40)
    reports.enter(VIEW_TAG, (A,), 1, NOW)
    assert reports.receivers == [B]
    assert reports.stable(START + 50) == START + 40
    reports.forget_silent(millis(500), NOW + millis(501))
    assert reports.stable(START + 50) == START + 50


def test_a_new_senders_room_is_assumed_small_until_it_reports() -> None:
    reports = live(senders=(A,))
    assert reports.window > 1 << 48
    reports.enter(VIEW_TAG, (A, C), 11, NOW)
    assert reports.window == 10 + FlatReports.INITIAL_FRAMES


def test_a_receiver_does_not_count_itself() -> None:
    reports = live(R)
    reports.count(R, NOW)
    assert reports.receivers == []


def test_entering_a_view_is_told_at_once() -> None:
    reports = live()
    reports.make(START, {}, 100, NOW)
    reports.enter(VIEW_TAG, (A, B, C), 1, NOW + millis(1))
    assert reports.next_deadline() <= NOW + millis(1)


# Readiness for ordered changes (M13)


def test_a_change_waits_until_every_other_sender_is_ready_for_it() -> None:
    reports = live(senders=(A, B, C))
    told(reports, B, ready=START + 10)
    assert not reports.all_ready(START + 10)
    told(reports, C, ready=START + 9)
    assert not reports.all_ready(START + 10)
    told(reports, C, serial=2, ready=START + 12)
    assert reports.all_ready(START + 10)


def test_receivers_do_not_hold_a_change_back() -> None:
    reports = live()
    reports.count(R, NOW)
    told(reports, R, ready=0)
    told(reports, B, ready=START + 10)
    assert reports.all_ready(START + 10)


def test_being_ready_is_told_at_once_and_often_while_others_are_not() -> None:
    reports = live(idle_ms=160.0)
    made(reports)
    reports.ready(START + 10, NOW + millis(1))
    assert reports.next_deadline() == NOW + millis(1)
    assert made(reports, NOW + millis(1)).ready == START + 10
    assert reports.next_deadline() == NOW + millis(21)


def test_names_are_told_while_nothing_arrives_and_remembered() -> None:
    reports = live()
    reports.name = "pricing"
    assert made(reports).name == "pricing"
    reports.data_arrived(1, NOW)
    assert made(reports).name == ""
    assert made(reports).name == "pricing"
    reports.count(R, NOW)
    told(reports, R, name="viewer")
    told(reports, R, serial=2)
    assert reports.names == {R: "viewer"}
    reports.uncount(R)
    assert reports.names == {}


# What receivers take as stable


def test_a_receiver_goes_by_what_senders_take_as_stable() -> None:
    reports = live(R)
    told(reports, A, acknowledged=START + 90, stable=START + 20)
    assert reports.stable(START + 50) == 0, "B has not said"
    told(reports, B, acknowledged=START + 90, stable=START + 30)
    assert reports.stable(START + 50) == START + 20
    told(reports, A, serial=2, acknowledged=START + 90, stable=START + 70)
    assert reports.stable(START + 50) == START + 30
    assert reports.stable(START + 10) == START + 10


def test_another_receivers_report_does_not_change_what_a_receiver_takes_as_stable() -> None:
    reports = live(R)
    for sender in (A, B):
        told(reports, sender, stable=START + 40)
    reports.count(C, NOW)
    told(reports, C, acknowledged=START + 5)
    assert reports.stable(START + 50) == START + 40


def test_in_an_empty_view_a_receiver_goes_by_those_that_left_last_for_they_know_whom_they_counted() -> None:
    reports = live(R)
    for sender in (A, B):
        told(reports, sender, acknowledged=START + 20, stable=START + 20)
    reports.enter(VIEW_TAG, (), None, NOW)
    told(reports, A, serial=2, acknowledged=START + 50, stable=START + 40)
    told(reports, B, serial=2, acknowledged=START + 50, stable=START + 30)
    assert reports.stable(START + 50) == START + 30, "a receiver this one never heard of is behind"
    reports.uncount(B)
    assert reports.stable(START + 50) == START + 40
    reports.forget_silent(millis(500), NOW + millis(501))
    assert reports.stable(START + 50) == START + 50


def test_in_an_empty_view_every_receiver_that_is_heard_is_waited_for() -> None:
    reports = live(R, senders=(A,))
    reports.enter(VIEW_TAG, (), None, NOW)
    reports.count(C, NOW)
    told(reports, A, acknowledged=START + 50, stable=START + 50)
    told(reports, C, acknowledged=START + 30, stable=START + 10)
    assert reports.stable(START + 50) == START + 30
    reports.uncount(A)
    assert reports.stable(START + 50) == START + 30


def test_a_sender_that_leaves_an_empty_view_behind_still_waits_for_those_it_counted() -> None:
    reports = live(senders=(A,))
    reports.count(R, NOW)
    told(reports, R, acknowledged=START + 30)
    reports.enter(VIEW_TAG, (), None, NOW)
    assert reports.stable(START + 50) == START + 30


def test_a_report_says_what_the_reporter_takes_as_stable() -> None:
    report = live().make(START, {}, 100, NOW, START + 7)
    assert report.live is not None
    assert report.live.stable == START + 7
