from __future__ import annotations

from intergroup_core.config import SendConfig
from intergroup_core.delivery.keepalive import KeepAliveTimer
from tests.builders import T0, micros, millis

NOW = T0.mono


def a_timer(gap_us: float = 100, idle_ms: float = 100) -> KeepAliveTimer:
    return KeepAliveTimer(SendConfig(keepalive_gap_us=gap_us, keepalive_idle_ms=idle_ms))


def intervals(timer: KeepAliveTimer, now: int, count: int) -> list[int]:
    """Times between keep-alives while nothing else happens."""
    found = []
    for _ in range(count):
        found.append(timer.next_deadline() - now)
        now = timer.next_deadline()
        timer.sent(now)
    return found


def test_a_new_sender_speaks_at_once() -> None:
    assert a_timer().next_deadline() <= NOW


def test_a_promise_that_is_wanted_is_due_at_once() -> None:
    timer = a_timer()
    timer.data_sent(NOW)
    timer.wanted(NOW + micros(5))
    assert timer.next_deadline() == NOW + micros(5)


def test_two_prompt_keep_alives_keep_the_gap() -> None:
    timer = a_timer(gap_us=100)
    timer.sent(NOW)
    timer.wanted(NOW + micros(30))
    assert timer.next_deadline() == NOW + micros(100)
    timer.sent(NOW + micros(100))
    timer.wanted(NOW + micros(250))
    assert timer.next_deadline() == NOW + micros(250)


def test_wanting_never_puts_it_off() -> None:
    timer = a_timer()
    timer.sent(NOW)
    due = timer.next_deadline()
    timer.wanted(due + millis(1))
    assert timer.next_deadline() == due


def test_an_idle_sender_repeats_at_doubling_intervals_up_to_the_idle_period() -> None:
    timer = a_timer(gap_us=100, idle_ms=10)
    timer.sent(NOW)
    found = intervals(timer, NOW, 7)
    assert found == [millis(1), millis(2), millis(4), millis(8), millis(10), millis(10), millis(10)]


def test_doubling_starts_again_when_a_promise_is_wanted() -> None:
    timer = a_timer()
    timer.sent(NOW)
    intervals(timer, NOW, 5)
    later = NOW + millis(500)
    timer.wanted(later)
    timer.sent(later)
    assert intervals(timer, later, 2) == [millis(1), millis(2)]


def test_data_puts_the_keep_alive_off_and_starts_the_doubling_again() -> None:
    timer = a_timer()
    timer.sent(NOW)
    intervals(timer, NOW, 5)
    later = NOW + millis(500)
    timer.data_sent(later)
    assert timer.next_deadline() == later + millis(1)


def test_the_first_repetition_is_never_later_than_the_idle_period() -> None:
    timer = a_timer(gap_us=5_000, idle_ms=20)
    timer.sent(NOW)
    assert intervals(timer, NOW, 3) == [millis(20), millis(20), millis(20)]


def test_once_nobody_waits_the_next_is_due_when_the_idle_period_is_over() -> None:
    timer = a_timer(idle_ms=100)
    timer.data_sent(NOW)
    now = timer.next_deadline()
    timer.sent(now)
    timer.rest()
    assert intervals(timer, now, 3) == [millis(100)] * 3
    timer.data_sent(now)
    assert timer.next_deadline() == now + millis(1)


def test_what_is_asked_for_is_not_put_off_though_nobody_waits() -> None:
    timer = a_timer()
    timer.sent(NOW)
    timer.wanted(NOW + millis(1))
    timer.rest()
    assert timer.next_deadline() == NOW + millis(1)
    timer.sent(NOW + millis(1))
    timer.rest()
    assert timer.next_deadline() == NOW + millis(101)
