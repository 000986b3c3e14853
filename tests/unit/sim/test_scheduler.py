from __future__ import annotations

import pytest

from intergroup_core.sim.clock import START_WALL_NS, MemberClock
from intergroup_core.sim.scheduler import Scheduler, SimulationStuck


def test_events_run_in_the_order_of_time_and_then_of_making() -> None:
    scheduler, ran = Scheduler(), []
    for name, at in (("late", 20), ("first", 10), ("second", 10), ("never", 31)):
        scheduler.at(at, ran.append, (name, at))
    scheduler.run_until(30)
    assert ran == [("first", 10), ("second", 10), ("late", 20)]
    assert scheduler.now == 30


def test_what_an_event_schedules_in_the_past_happens_now() -> None:
    scheduler, seen = Scheduler(), []
    scheduler.at(10, lambda: scheduler.at(3, lambda: seen.append(scheduler.now)))
    scheduler.run_until(10)
    assert seen == [10]


def test_time_that_stands_still_is_an_error() -> None:
    scheduler = Scheduler()

    def again() -> None:
        scheduler.after(0, again)

    again()
    with pytest.raises(SimulationStuck, match="events at 0 ns"):
        scheduler.run_until(1)


def test_members_have_their_own_monotonic_zero_and_wall_offset() -> None:
    scheduler = Scheduler()
    one = MemberClock(scheduler, mono_base=7)
    other = MemberClock(scheduler, mono_base=1_000, wall_offset_ns=-50)
    scheduler.run_until(100)
    assert (one.now().mono, other.now().mono) == (107, 1_100)
    assert one.now().wall - other.now().wall == 50
    assert one.virtual(one.now().mono) == other.virtual(other.now().mono) == 100


def test_a_coarse_clock_stands_still_between_its_ticks_and_can_be_set() -> None:
    scheduler = Scheduler()
    clock = MemberClock(scheduler, resolution_ns=1_000)
    scheduler.run_until(1_999)
    assert clock.now().wall == START_WALL_NS + 1_000
    clock.step(-5_000)
    assert clock.now().wall == START_WALL_NS - 4_000
    assert clock.now().mono == 1_999
