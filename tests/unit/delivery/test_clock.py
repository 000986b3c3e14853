from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.delivery.clock import ClockGuard, HybridClock
from intergroup_core.ids import MAX_TIMESTAMP, Instant, timestamp_at, timestamp_span
from tests.builders import START, T0, A, B, after, millis

SECOND = 10**9


def test_a_timestamp_follows_the_wall_clock_when_that_is_ahead() -> None:
    clock = HybridClock()
    assert clock.stamp(1, T0) == timestamp_at(T0.wall)
    assert clock.stamp(1, after(SECOND)) == timestamp_at(after(SECOND).wall)


def test_several_timestamps_are_consecutive_and_the_next_one_is_above_them() -> None:
    clock = HybridClock()
    first = clock.stamp(5, T0)
    assert clock.last == first + 4
    assert clock.stamp(1, T0) == first + 5


def test_what_was_seen_is_below_what_is_stamped_later() -> None:
    clock = HybridClock()
    clock.observe(START + 10**9)
    assert clock.stamp(1, T0) == START + 10**9 + 1
    clock.observe(START)
    assert clock.last == START + 10**9 + 1


def test_even_the_very_next_timestamp_is_not_given_twice() -> None:
    clock = HybridClock()
    first = clock.stamp(1, T0)
    clock.observe(first + 1)
    assert clock.stamp(1, T0) == first + 2


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("stamp"), st.integers(1, 5_000), st.integers(-(10**9), 10**9)),
            st.tuples(st.just("observe"), st.integers(-(10**12), 10**12), st.just(0)),
        ),
        max_size=60,
    )
)
def test_timestamps_strictly_increase_whatever_the_wall_clock_and_others_do(steps: list[tuple[str, int, int]]) -> None:
    clock, previous = HybridClock(), 0
    for action, amount, drift in steps:
        if action == "observe":
            clock.observe(START + amount)
            previous = max(previous, START + amount)
            continue
        now = Instant(T0.mono, T0.wall + drift)
        first = clock.stamp(amount, now)
        assert first > previous
        assert first >= timestamp_at(now.wall)
        previous = first + amount - 1
    assert clock.last >= previous


def a_guard(bound_s: float = 30) -> ClockGuard:
    return ClockGuard([A, B], START, round(bound_s * SECOND), T0.mono)


def in_future(seconds: float) -> int:
    return START + timestamp_span(round(seconds * SECOND))


def at(seconds: float) -> int:
    return T0.mono + round(seconds * SECOND)


def test_a_timestamp_may_run_ahead_by_the_bound_and_no_further() -> None:
    assert a_guard().admits(A, in_future(30), at(0))
    assert not a_guard().admits(A, in_future(30) + 1, at(0))


def test_elapsed_time_counts_on_top_of_the_bound() -> None:
    assert a_guard().admits(A, in_future(50), at(20))
    assert not a_guard().admits(A, in_future(50) + 1, at(20))


def test_a_senders_own_previous_timestamp_is_where_its_next_is_measured_from() -> None:
    guard = a_guard()
    assert guard.admits(A, in_future(25), at(0))
    assert guard.admits(A, in_future(55), at(0))
    assert not guard.admits(B, in_future(55), at(0)), "what one sender did is no licence for another"


def test_a_refused_timestamp_moves_nothing() -> None:
    guard = a_guard()
    for _ in range(100):
        assert not guard.admits(A, in_future(31), at(0))
    assert guard.admits(A, in_future(30), at(0))


def test_an_old_timestamp_is_good_and_moves_nothing_back() -> None:
    guard = a_guard()
    assert guard.admits(A, in_future(25), at(0))
    assert guard.admits(A, in_future(1), at(0))
    assert guard.admits(A, in_future(54), at(0))


def test_a_slow_sender_may_follow_the_groups_delivered_time() -> None:
    guard = a_guard(bound_s=1)
    assert not guard.admits(A, in_future(10), at(0))
    guard.delivered(in_future(10), at(0))
    assert guard.admits(A, in_future(11), at(0))
    assert not guard.admits(B, in_future(12.5), at(1))
    assert guard.admits(B, in_future(12), at(1))


def test_the_bound_is_in_the_clocks_own_unit() -> None:
    guard = ClockGuard([A], START, millis(1), T0.mono)
    assert guard.admits(A, START + timestamp_span(millis(1)), T0.mono)
    assert not guard.admits(A, START + timestamp_span(millis(3)), T0.mono)


def test_what_a_source_had_promised_before_one_came_is_believed_from_the_start() -> None:
    guard = a_guard(bound_s=1)
    assert not guard.admits(A, in_future(60), at(0))
    guard.begin(A, in_future(60), at(0))
    assert guard.admits(A, in_future(61), at(0))
    assert not guard.admits(B, in_future(61), at(0))


def test_a_promise_without_end_says_nothing_of_a_sources_clock() -> None:
    guard = a_guard(bound_s=1)
    guard.begin(A, MAX_TIMESTAMP, at(0))
    assert not guard.admits(A, in_future(60), at(0))
