from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.config import RepairConfig
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.multicast.ranges import Span
from intergroup_core.multicast.repairs import RepairScheduler
from intergroup_core.ports import ConstantDistance
from intergroup_core.wire.exchange import Exchange

MS = 1_000_000
T0 = 10_000 * MS
FRAME = 1_000
ANN, BOB, CARL = MemberId(1), MemberId(2), MemberId(3)


def a_scheduler(*, distance_ns: int = MS, seed: int = 1, **config: float) -> RepairScheduler:
    return RepairScheduler(RepairConfig(**config), ConstantDistance(distance_ns), Random(seed), FRAME)  # type: ignore[arg-type]


def deadline(scheduler: RepairScheduler) -> int:
    at = scheduler.next_deadline()
    assert at is not None
    return at


def repaired_next(scheduler: RepairScheduler) -> list[Span]:
    return scheduler.tick(deadline(scheduler)).spans


def seqs(spans: list[Span]) -> list[int]:
    return [seq for span in spans for seq in range(span.first, span.last + 1)]


def test_what_was_asked_for_is_repaired_when_its_timer_expires() -> None:
    scheduler = a_scheduler()
    scheduler.requested(BOB, ANN, 5, 9, T0)
    at = deadline(scheduler)
    assert not scheduler.tick(at - 1)
    assert scheduler.tick(at).spans == [Span(ANN, 5, 9)]
    assert scheduler.next_deadline() is None
    assert (scheduler.repairs_sent, scheduler.frames_sent) == (1, 5)


def test_a_repair_names_the_request_it_answers_and_how_long_that_has_waited() -> None:
    scheduler = a_scheduler()
    scheduler.requested(BOB, ANN, 5, 9, T0, 4_711)
    at = deadline(scheduler)
    assert scheduler.tick(at).exchange == Exchange(BOB, 4_711, (at - T0) // 1_000)
    assert scheduler.tick(at).exchange is None


def test_what_is_scheduled_is_not_scheduled_twice() -> None:
    scheduler = a_scheduler()
    scheduler.requested(BOB, ANN, 5, 9, T0)
    at = deadline(scheduler)
    scheduler.requested(CARL, ANN, 5, 9, T0 + 1)
    scheduler.requested(CARL, ANN, 8, 12, at)
    assert scheduler.tick(at).spans == [Span(ANN, 5, 9)]
    assert repaired_next(scheduler) == [Span(ANN, 10, 12)]


def test_another_members_repair_cancels_the_same_part_of_this_ones() -> None:
    scheduler = a_scheduler()
    scheduler.requested(BOB, ANN, 1, 9, T0)
    at = deadline(scheduler)
    scheduler.repaired(ANN, 4, 6, T0 + 1)
    assert scheduler.tick(at).spans == [Span(ANN, 1, 3), Span(ANN, 7, 9)]


def test_who_is_asked_again_for_what_it_repeated_lets_others_go_first() -> None:
    """Its repairs may reach everybody but who asks, and would silence all others."""
    for seed in range(20):
        unheard, other = a_scheduler(seed=seed), a_scheduler(seed=seed + 100)
        unheard.requested(BOB, ANN, 5, 9, T0)
        repeated_at = deadline(unheard)
        assert unheard.tick(repeated_at).spans == [Span(ANN, 5, 9)]
        other.repaired(ANN, 5, 9, repeated_at)
        asked_again = repeated_at + 10 * MS
        for scheduler in (unheard, other):
            scheduler.requested(BOB, ANN, 5, 9, asked_again)
        assert deadline(other) < deadline(unheard)
        assert repaired_next(unheard) == [Span(ANN, 5, 9)], "where nobody else does, it answers after all"


def test_what_waits_because_it_was_in_vain_teaches_nothing_of_delays() -> None:
    scheduler, patient = a_scheduler(), a_scheduler()
    for each in (scheduler, patient):
        each.requested(BOB, ANN, 5, 9, T0)
        each.tick(deadline(each))
    scheduler.requested(BOB, ANN, 5, 9, T0 + 50 * MS)  # again
    patient.requested(BOB, ANN, 15, 19, T0 + 50 * MS)  # something else
    for each in (scheduler, patient):
        each.tick(deadline(each))
    assert scheduler.window.average_delay == pytest.approx(patient.window.average_delay, rel=1e-6)


def test_who_repeated_only_the_end_of_what_is_asked_for_waits_with_that_alone() -> None:
    scheduler = a_scheduler()
    scheduler.requested(BOB, ANN, 8, 9, T0)
    scheduler.tick(deadline(scheduler))
    scheduler.requested(BOB, ANN, 1, 5, T0 + 20 * MS)
    fresh = deadline(scheduler)
    scheduler.tick(fresh)
    scheduler.requested(BOB, ANN, 8, 9, T0 + 40 * MS)
    assert deadline(scheduler) - (T0 + 40 * MS) > fresh - (T0 + 20 * MS)


def test_a_repair_cancelled_frame_by_frame_is_suppressed_once() -> None:
    scheduler = a_scheduler()
    scheduler.requested(BOB, ANN, 1, 9, T0)
    for seq in range(1, 10):
        scheduler.repaired(ANN, seq, seq, T0 + seq)
    assert scheduler.next_deadline() is None
    assert scheduler.suppressed == 1
    assert scheduler.repairs_sent == 0


@pytest.mark.parametrize("mine", [True, False])
def test_a_request_that_crossed_the_repair_is_held_down(mine: bool) -> None:
    scheduler = a_scheduler()
    scheduler.requested(BOB, ANN, 1, 9, T0)
    now = deadline(scheduler)
    if mine:
        scheduler.tick(now)
    else:
        scheduler.repaired(ANN, 1, 9, now)
    scheduler.requested(CARL, ANN, 3, 7, now + 3 * MS - 1)
    assert scheduler.next_deadline() is None
    assert scheduler.held_down == 1
    scheduler.requested(CARL, ANN, 3, 7, now + 3 * MS)
    assert repaired_next(scheduler) == [Span(ANN, 3, 7)]


def test_only_what_was_repaired_is_held_down() -> None:
    scheduler = a_scheduler()
    scheduler.repaired(ANN, 3, 4, T0)
    scheduler.repaired(ANN, 7, 7, T0)
    scheduler.requested(BOB, ANN, 1, 9, T0 + MS)
    assert seqs(scheduler.tick(T0 + 100 * MS).spans) == [1, 2, 5, 6, 8, 9]


def test_beyond_what_it_remembers_the_newest_repairs_are_still_held_down() -> None:
    scheduler = a_scheduler()
    for seq in range(0, 20_000, 2):
        scheduler.repaired(ANN, seq, seq, T0)
    scheduler.repaired(ANN, 20_000, 20_000, T0 + 1)
    scheduler.requested(BOB, ANN, 20_000, 20_000, T0 + 2)
    assert scheduler.next_deadline() is None
    scheduler.requested(BOB, ANN, 0, 0, T0 + 2)
    assert repaired_next(scheduler) == [Span(ANN, 0, 0)]


def test_duplicate_repairs_are_counted_per_loss_even_frame_by_frame() -> None:
    scheduler = a_scheduler()
    scheduler.requested(BOB, ANN, 1, 10, T0)
    now = deadline(scheduler)
    scheduler.tick(now)
    for seq in range(1, 11):
        scheduler.repaired(ANN, seq, seq, now + seq)
    scheduler.requested(BOB, ANN, 20, 20, T0 + 100 * MS)
    assert scheduler.window.average_duplicates == pytest.approx(0.25 * 1.0)


def test_a_repair_of_what_this_member_had_no_part_in_is_no_duplicate() -> None:
    scheduler = a_scheduler()
    scheduler.repaired(ANN, 1, 10, T0)
    scheduler.repaired(ANN, 1, 10, T0 + 1)
    scheduler.requested(BOB, ANN, 20, 20, T0 + 100 * MS)
    assert scheduler.window.average_duplicates == 0


def test_repairs_stay_within_their_bandwidth_and_every_frame_is_sent_in_the_end() -> None:
    scheduler = a_scheduler(bandwidth=1e6)
    scheduler.requested(BOB, ANN, 1, 1_000, T0)
    sent: list[int] = []
    while (now := scheduler.next_deadline()) is not None:
        spans = scheduler.tick(now).spans
        assert spans, "a deadline that brings nothing would spin"
        sent += seqs(spans)
        elapsed = (now - T0) / 1e9
        assert len(sent) * FRAME <= 64 * FRAME + elapsed * 1e6
    assert sent == list(range(1, 1_001))
    assert 0.9 <= elapsed <= 1.0
    assert scheduler.repairs_sent == 1


def test_a_repair_held_up_by_bandwidth_goes_on_in_runs() -> None:
    scheduler = a_scheduler(bandwidth=100e6)
    scheduler.requested(BOB, ANN, 1, 10_000, T0)
    ticks = 0
    while (now := scheduler.next_deadline()) is not None:
        scheduler.tick(now)
        ticks += 1
    assert ticks <= 1 + 10_000 // 50 + 1


def test_what_bandwidth_held_up_can_still_be_cancelled() -> None:
    scheduler = a_scheduler(bandwidth=1e6)
    scheduler.requested(BOB, ANN, 1, 200, T0)
    now = deadline(scheduler)
    assert seqs(scheduler.tick(now).spans) == list(range(1, 65))
    scheduler.repaired(ANN, 65, 150, now + 1)
    left: list[int] = []
    while (at := scheduler.next_deadline()) is not None:
        assert at > now
        left += seqs(scheduler.tick(at).spans)
    assert left == list(range(151, 201))


def test_dropped_frames_are_not_repaired() -> None:
    scheduler = a_scheduler()
    scheduler.requested(BOB, ANN, 1, 9, T0)
    scheduler.drop(ANN, 6)
    assert repaired_next(scheduler) == [Span(ANN, 7, 9)]
    scheduler.requested(BOB, ANN, 10, 12, T0)
    scheduler.drop(ANN, 12)
    assert scheduler.next_deadline() is None


def test_a_cancelled_source_is_forgotten_and_others_are_not() -> None:
    scheduler = a_scheduler()
    scheduler.requested(CARL, ANN, 1, 9, T0)
    scheduler.requested(CARL, BOB, 1, 9, T0)
    scheduler.requested_promise(CARL, ANN, T0)
    scheduler.cancel_source(ANN)
    due = scheduler.tick(T0 + 100 * MS)
    assert (due.spans, due.promises) == ([Span(BOB, 1, 9)], [])


def test_a_promise_is_repaired_once_for_all_who_asked() -> None:
    scheduler = a_scheduler()
    scheduler.requested_promise(BOB, ANN, T0)
    at = deadline(scheduler)
    scheduler.requested_promise(CARL, ANN, T0 + 1)
    assert T0 + MS <= at <= T0 + 2 * MS
    assert scheduler.tick(at).promises == [ANN]
    assert scheduler.next_deadline() is None


def test_another_members_repair_of_a_promise_cancels_this_ones() -> None:
    scheduler = a_scheduler()
    scheduler.requested_promise(BOB, ANN, T0, Timestamp(5))
    scheduler.promise_repaired(ANN, T0 + 1, Timestamp(5))
    assert scheduler.next_deadline() is None
    assert scheduler.suppressed == 1


def test_a_promise_just_repaired_is_held_down_unless_there_is_a_higher_one() -> None:
    scheduler = a_scheduler()
    scheduler.requested_promise(BOB, ANN, T0, Timestamp(5))
    now = deadline(scheduler)
    scheduler.tick(now)
    scheduler.requested_promise(BOB, ANN, now + MS, Timestamp(5))
    assert scheduler.next_deadline() is None
    scheduler.requested_promise(BOB, ANN, now + MS, Timestamp(6))
    assert scheduler.tick(deadline(scheduler)).promises == [ANN]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["requested", "repaired", "tick"]),
            st.integers(0, 30),
            st.integers(0, 10),
            st.integers(1, 5_000_000),
        ),
        max_size=40,
    )
)
def test_a_frame_is_repaired_only_on_request_and_not_within_the_hold_down(
    steps: list[tuple[str, int, int, int]],
) -> None:
    scheduler = a_scheduler(bandwidth=1e5)
    wanted: set[int] = set()
    last_repair: dict[int, int] = {}
    now = T0

    def tick(at: int) -> None:
        sent = seqs(scheduler.tick(at).spans)
        assert len(sent) == len(set(sent))
        assert set(sent) <= wanted
        wanted.difference_update(sent)
        last_repair.update(dict.fromkeys(sent, at))

    for what, first, count, pause in steps:
        now += pause
        touched = set(range(first, first + count + 1))
        match what:
            case "requested":
                scheduler.requested(BOB, ANN, first, first + count, now)
                wanted |= {seq for seq in touched if now - last_repair.get(seq, 0) >= 3 * MS}
            case "repaired":
                scheduler.repaired(ANN, first, first + count, now)
                wanted -= touched
                last_repair.update(dict.fromkeys(touched, now))
            case _:
                tick(now)
    while (at := scheduler.next_deadline()) is not None:
        now = max(now, at)
        tick(now)
    assert wanted == set()
