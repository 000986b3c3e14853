from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.config import RepairConfig
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.multicast.ranges import Promise, Span
from intergroup_core.multicast.requests import RequestScheduler
from intergroup_core.ports import ConstantDistance

MS = 1_000_000
T0 = 10_000 * MS
ANN, BOB, CARL = MemberId(1), MemberId(2), MemberId(3)


class Known:
    """Distances by member; everybody else is at 1 ms."""

    def __init__(self, **millis: int) -> None:
        self._millis = {{"ann": ANN, "bob": BOB, "carl": CARL}[name]: value for name, value in millis.items()}

    def to(self, member: MemberId) -> int:
        return self._millis.get(member, 1) * MS


def a_scheduler(*, distance_ns: int = MS, seed: int = 1, **config: float) -> RequestScheduler:
    return RequestScheduler(RepairConfig(**config), ConstantDistance(distance_ns), Random(seed))  # type: ignore[arg-type]


def deadline(scheduler: RequestScheduler) -> int:
    at = scheduler.next_deadline()
    assert at is not None
    return at


def asked_next(scheduler: RequestScheduler) -> list[Span]:
    return scheduler.tick(deadline(scheduler)).spans


def test_nothing_is_due_while_nothing_is_missing() -> None:
    scheduler = a_scheduler()
    scheduler.arrived(ANN, 1, 100, T0)
    assert scheduler.next_deadline() is None
    assert not scheduler.tick(T0)
    assert not scheduler.waiting(ANN)


def test_what_is_missing_is_asked_for_when_its_timer_expires() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 5, 9, T0)
    at = deadline(scheduler)
    assert not scheduler.tick(at - 1)
    assert scheduler.tick(at).spans == [Span(ANN, 5, 9)]
    assert scheduler.requests_sent == 1


def test_a_gap_noticed_again_keeps_its_timer_and_only_the_new_part_gets_one() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 5, 9, T0)
    first = deadline(scheduler)
    scheduler.missing(ANN, 5, 9, T0 + 10)
    assert deadline(scheduler) == first
    scheduler.missing(ANN, 3, 12, T0 + 20 * MS)
    assert scheduler.tick(first).spans == [Span(ANN, 5, 9)]
    scheduler.arrived(ANN, 5, 9, first)
    assert asked_next(scheduler) + asked_next(scheduler) in (
        [Span(ANN, 3, 4), Span(ANN, 10, 12)],
        [Span(ANN, 10, 12), Span(ANN, 3, 4)],
    )


def test_frames_that_arrive_leave_the_rest_with_its_timer() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 1, 9, T0)
    at = deadline(scheduler)
    scheduler.arrived(ANN, 4, 6, T0 + 1)
    assert deadline(scheduler) == at
    assert scheduler.tick(at).spans == [Span(ANN, 1, 3), Span(ANN, 7, 9)]


def test_a_gap_filled_is_not_asked_for() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 1, 9, T0)
    scheduler.arrived(ANN, 1, 5, T0 + 1)
    scheduler.arrived(ANN, 6, 20, T0 + 2)
    assert scheduler.next_deadline() is None
    assert not scheduler.waiting(ANN)


def test_parts_keep_the_back_off_of_the_whole() -> None:
    scheduler = a_scheduler(request_low=2, request_high=1)
    scheduler.missing(ANN, 1, 9, T0)
    sent = deadline(scheduler)
    scheduler.tick(sent)
    again = deadline(scheduler)
    scheduler.arrived(ANN, 5, 5, sent + 1)
    assert deadline(scheduler) == again
    assert again - sent >= 3 * 1.9 * MS


def test_adjacent_gaps_due_together_are_one_range() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 1, 4, T0)
    scheduler.missing(ANN, 5, 9, T0)
    scheduler.missing(BOB, 10, 10, T0)
    assert scheduler.tick(T0 + 100 * MS).spans == [Span(ANN, 1, 9), Span(BOB, 10, 10)]


def test_one_request_has_a_bounded_number_of_ranges_and_the_rest_follow_soon() -> None:
    scheduler = a_scheduler(request_ranges=10, distance_floor_us=100)
    for seq in range(0, 50, 2):
        scheduler.missing(ANN, seq, seq, T0)
    now = T0 + 10 * MS
    first = scheduler.tick(now).spans
    assert len(first) == 10
    assert not scheduler.tick(now)
    assert deadline(scheduler) == now + 100_000
    second = scheduler.tick(now + 100_000).spans
    third = scheduler.tick(now + 200_000).spans
    assert [len(second), len(third)] == [10, 5]
    assert {span.first for span in first + second + third} == set(range(0, 50, 2))


def test_another_members_request_makes_this_one_wait_for_its_answer() -> None:
    scheduler = a_scheduler(request_low=2, request_high=1)
    scheduler.missing(ANN, 1, 9, T0)
    scheduler.overheard(BOB, ANN, 1, 9, T0 + MS)
    assert deadline(scheduler) >= T0 + MS + 6 * MS
    assert scheduler.suppressed == 1
    assert scheduler.requests_sent == 0


def test_only_the_part_that_was_asked_for_waits() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 1, 9, T0)
    at = deadline(scheduler)
    scheduler.overheard(BOB, ANN, 4, 6, T0 + 1)
    assert scheduler.tick(at).spans == [Span(ANN, 1, 3), Span(ANN, 7, 9)]
    scheduler.arrived(ANN, 1, 3, at)
    scheduler.arrived(ANN, 7, 9, at)
    assert asked_next(scheduler) == [Span(ANN, 4, 6)]


def test_further_requests_of_the_same_round_do_not_back_it_off_again() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 1, 9, T0)
    scheduler.overheard(BOB, ANN, 1, 9, T0 + MS)
    backed_off = deadline(scheduler)
    half = T0 + MS + (backed_off - T0 - MS) // 2
    scheduler.overheard(CARL, ANN, 1, 9, half - 1)
    assert deadline(scheduler) == backed_off
    assert scheduler.suppressed == 1
    scheduler.overheard(CARL, ANN, 1, 9, half + 1)
    assert deadline(scheduler) > backed_off
    assert scheduler.suppressed == 2


def test_a_request_for_something_else_changes_nothing() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 1, 9, T0)
    at = deadline(scheduler)
    scheduler.overheard(BOB, ANN, 10, 20, T0 + 1)
    scheduler.overheard(BOB, CARL, 1, 9, T0 + 1)
    assert deadline(scheduler) == at
    assert scheduler.suppressed == 0


def test_duplicates_are_counted_per_loss_even_when_they_come_in_pieces_or_late() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 1, 10, T0)
    scheduler.overheard(BOB, ANN, 1, 10, T0 + 1)
    scheduler.overheard(CARL, ANN, 1, 5, T0 + 2)
    scheduler.arrived(ANN, 1, 10, T0 + 3)
    scheduler.overheard(CARL, ANN, 6, 10, T0 + 4)
    scheduler.missing(ANN, 20, 20, T0 + 100 * MS)
    assert scheduler.window(ANN).average_duplicates == pytest.approx(0.25 * 1.0)


def test_the_first_request_heard_is_no_duplicate() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 1, 10, T0)
    scheduler.overheard(BOB, ANN, 1, 10, T0 + 1)
    scheduler.missing(ANN, 20, 20, T0 + 100 * MS)
    assert scheduler.window(ANN).average_duplicates == 0


@pytest.mark.parametrize(("millis", "closest"), [(2, False), (4, True)])
def test_a_duplicate_from_much_farther_than_my_own_request_shows_that_i_am_the_closest(
    millis: int, closest: bool
) -> None:
    scheduler = RequestScheduler(RepairConfig(duplicate_target=0.2), Known(ann=1, bob=millis), Random(1))
    scheduler.missing(ANN, 1, 1, T0)
    sent = deadline(scheduler)
    scheduler.tick(sent)
    window = scheduler.window(ANN)
    low, high = window.low, window.high
    scheduler.overheard(BOB, ANN, 1, 1, sent + 1)
    scheduler.arrived(ANN, 1, 1, sent + MS)
    scheduler.missing(ANN, 2, 2, T0 + 100 * MS)
    assert (window.low < low and window.high < high) == closest


def test_sources_have_timer_parameters_of_their_own() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 1, 1, T0)
    scheduler.tick(deadline(scheduler))
    assert scheduler.window(ANN).low < scheduler.window(BOB).low


def test_a_repetition_does_not_come_before_the_usual_answer() -> None:
    scheduler = a_scheduler(request_low=0.5, request_high=1)
    now = T0
    for seq in range(60):
        scheduler.missing(ANN, seq, seq, now)
        now = deadline(scheduler)
        scheduler.tick(now)
        now += 20 * MS
        assert seq < 30 or deadline(scheduler) > now
        scheduler.arrived(ANN, seq, seq, now)


def test_back_off_ends_at_the_longest_wait_and_members_there_do_not_ask_in_step() -> None:
    waits = []
    for seed in range(20):
        scheduler = a_scheduler(seed=seed, backoff_max_ms=50, give_up_ms=600_000)
        scheduler.missing(ANN, 1, 1, T0)
        now = T0
        for _ in range(12):
            before, now = now, deadline(scheduler)
            assert scheduler.tick(now).spans == [Span(ANN, 1, 1)]
            assert now - before <= 50 * MS
        waits.append(deadline(scheduler) - now)
    assert all(25 * MS <= wait <= 50 * MS for wait in waits)
    assert len(set(waits)) == 20


def test_what_nobody_answers_is_reported_now_and_again_and_still_asked_for() -> None:
    scheduler = a_scheduler(give_up_ms=100, backoff_max_ms=30)
    scheduler.missing(ANN, 1, 4, T0)
    reports, asked = [], 0
    while (now := deadline(scheduler)) < T0 + 500 * MS:
        due = scheduler.tick(now)
        reports += [(span, now) for span in due.given_up]
        asked += now > T0 + 100 * MS and bool(due.spans)
    assert reports == [(Span(ANN, 1, 4), T0 + periods * 100 * MS) for periods in (1, 2, 3, 4)]
    assert scheduler.given_up == 4
    assert asked >= 400 // 30


def test_patience_starts_again_with_every_part_that_comes() -> None:
    scheduler = a_scheduler(give_up_ms=100)
    scheduler.missing(ANN, 1, 4, T0)
    scheduler.arrived(ANN, 1, 2, T0 + 60 * MS)
    reports = []
    while (now := deadline(scheduler)) < T0 + 250 * MS:
        reports += [(span, now) for span in scheduler.tick(now).given_up]
    assert reports == [(Span(ANN, 3, 4), T0 + 160 * MS)]


def test_a_recovered_loss_is_handed_on_with_its_time_and_distance_once_complete() -> None:
    recovered: list[tuple[MemberId, int, int]] = []
    scheduler = RequestScheduler(
        RepairConfig(), ConstantDistance(MS), Random(1), lambda *measured: recovered.append(measured)
    )
    scheduler.missing(ANN, 1, 4, T0)
    scheduler.arrived(ANN, 2, 2, T0 + MS)
    scheduler.arrived(ANN, 1, 1, T0 + MS)
    assert recovered == []
    scheduler.arrived(ANN, 3, 8, T0 + 5 * MS)
    assert recovered == [(ANN, 5 * MS, MS)]


def test_dropped_frames_are_neither_asked_for_nor_recovered() -> None:
    recovered: list[int] = []
    scheduler = RequestScheduler(
        RepairConfig(), ConstantDistance(MS), Random(1), lambda source, waited, _: recovered.append(waited)
    )
    scheduler.missing(ANN, 1, 9, T0)
    scheduler.drop(ANN, 6)
    assert asked_next(scheduler) == [Span(ANN, 7, 9)]
    scheduler.drop(ANN, 100)
    assert scheduler.next_deadline() is None
    assert not scheduler.waiting(ANN)
    assert recovered == []


def test_a_cancelled_source_is_forgotten_and_others_are_not() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 1, 9, T0)
    scheduler.missing(BOB, 1, 9, T0)
    scheduler.want_promise(ANN, Timestamp(5), T0)
    scheduler.cancel_source(ANN)
    assert not scheduler.waiting(ANN)
    assert not scheduler.wants_promise(ANN)
    due = scheduler.tick(T0 + 100 * MS)
    assert (due.spans, due.promises) == ([Span(BOB, 1, 9)], [])


def test_a_wanted_promise_is_asked_for_and_raising_it_does_not_restart_its_timer() -> None:
    scheduler = a_scheduler()
    scheduler.want_promise(ANN, Timestamp(5), T0)
    at = deadline(scheduler)
    scheduler.want_promise(ANN, Timestamp(8), at - 1)
    scheduler.want_promise(ANN, Timestamp(6), at - 1)
    due = scheduler.tick(at)
    assert due.promises == [(ANN, 8)]
    assert due.spans == []
    assert deadline(scheduler) > at


def test_a_promise_high_enough_ends_the_wish_and_a_lower_one_does_not() -> None:
    scheduler = a_scheduler()
    scheduler.want_promise(ANN, Timestamp(5), T0)
    scheduler.promise_arrived(ANN, Timestamp(4))
    assert scheduler.wants_promise(ANN)
    scheduler.promise_arrived(ANN, Timestamp(5))
    assert not scheduler.wants_promise(ANN)
    assert scheduler.next_deadline() is None


def test_another_request_for_as_high_a_promise_spares_this_one() -> None:
    scheduler = a_scheduler()
    scheduler.want_promise(ANN, Timestamp(5), T0)
    at = deadline(scheduler)
    scheduler.overheard_promise(BOB, ANN, Timestamp(4), T0 + 1)
    assert deadline(scheduler) == at
    scheduler.overheard_promise(BOB, ANN, Timestamp(5), T0 + 1)
    assert deadline(scheduler) > at
    assert scheduler.suppressed == 1


def test_a_source_that_promises_nothing_is_reported_but_one_that_is_behind_is_not() -> None:
    silent, behind = a_scheduler(give_up_ms=100), a_scheduler(give_up_ms=100)
    for scheduler in (silent, behind):
        for step in range(10):
            scheduler.want_promise(ANN, Timestamp(step + 10), T0 + step * 20 * MS)
            if scheduler is behind:
                scheduler.promise_arrived(ANN, Timestamp(step + 9))
    reports: dict[str, list[Span | Promise]] = {"silent": [], "behind": []}
    for name, scheduler in (("silent", silent), ("behind", behind)):
        while (now := deadline(scheduler)) < T0 + 200 * MS:
            reports[name] += scheduler.tick(now).given_up
    assert reports == {"silent": [Promise(ANN, Timestamp(19))], "behind": []}


def test_promises_do_not_move_the_timer_parameters() -> None:
    scheduler = a_scheduler()
    window = scheduler.window(ANN)
    before = (window.low, window.high)
    for step in range(10):
        scheduler.want_promise(ANN, Timestamp(step), T0)
        scheduler.tick(deadline(scheduler))
        scheduler.promise_arrived(ANN, Timestamp(step))
    assert (window.low, window.high) == before


steps = st.lists(
    st.tuples(
        st.sampled_from(["missing", "arrived", "overheard", "drop", "tick"]),
        st.integers(0, 30),
        st.integers(0, 10),
        st.integers(0, 10_000_000),
    ),
    max_size=40,
)


@given(steps)
def test_whatever_happens_exactly_what_is_missing_goes_on_being_asked_for(
    steps: list[tuple[str, int, int, int]],
) -> None:
    scheduler = a_scheduler(give_up_ms=600_000)
    missing: set[int] = set()
    now = T0
    for what, first, count, pause in steps:
        now += pause
        touched = set(range(first, first + count + 1))
        match what:
            case "missing":
                scheduler.missing(ANN, first, first + count, now)
                missing |= touched
            case "arrived":
                scheduler.arrived(ANN, first, first + count, now)
                missing -= touched
            case "overheard":
                scheduler.overheard(BOB, ANN, first, first + count, now)
            case "drop":
                scheduler.drop(ANN, first)
                missing -= set(range(first + 1))
            case _:
                asked = scheduler.tick(now).spans
                assert {seq for span in asked for seq in range(span.first, span.last + 1)} <= missing
        assert scheduler.waiting(ANN) == bool(missing)
    later: set[int] = set()
    while missing - later:
        now = max(now, deadline(scheduler))
        for span in scheduler.tick(now).spans:
            later |= set(range(span.first, span.last + 1))
    assert later == missing
    scheduler.arrived(ANN, 0, 100, now)
    assert scheduler.next_deadline() is None


def test_what_lies_beyond_a_cut_is_not_asked_for_any_more() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 5, 12, T0)
    scheduler.missing(BOB, 5, 12, T0)
    scheduler.drop_after(ANN, 8)
    due = scheduler.tick(T0 + 100 * MS)
    assert set(due.spans) == {Span(ANN, 5, 8), Span(BOB, 5, 12)}


def test_dropping_everything_of_a_source_ends_its_waiting() -> None:
    scheduler = a_scheduler()
    scheduler.missing(ANN, 5, 12, T0)
    scheduler.drop_after(ANN, 4)
    scheduler.drop_after(BOB, 4)
    assert not scheduler.waiting(ANN)
    assert scheduler.tick(T0 + 60_000 * MS).given_up == []


def test_a_promise_that_nobody_waits_for_is_forgotten() -> None:
    scheduler = a_scheduler()
    scheduler.want_promise(ANN, Timestamp(5), T0)
    scheduler.forget_promise(ANN)
    scheduler.forget_promise(BOB)
    assert not scheduler.wants_promise(ANN)
    assert scheduler.tick(T0 + 60_000 * MS).given_up == []


def test_the_time_in_which_this_member_stood_still_is_no_silence_of_others() -> None:
    scheduler = a_scheduler(give_up_ms=1_000.0)
    scheduler.missing(ANN, 5, 5, T0)
    scheduler.forgive(T0 + 60_000 * MS)
    due = scheduler.tick(T0 + 60_000 * MS)
    assert (due.given_up, due.spans) == ([], [Span(ANN, 5, 5)])
    assert scheduler.tick(T0 + 60_999 * MS).given_up == []
    assert scheduler.tick(T0 + 61_001 * MS).given_up == [Span(ANN, 5, 5)]
