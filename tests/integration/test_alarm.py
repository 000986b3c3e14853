"""Deadlines on an event loop."""

from __future__ import annotations

import asyncio
import time

from intergroup_core.runtime.alarm import Alarm


def rung_at(*deadlines_after_ns: int) -> tuple[int, list[int]]:
    """Arm an alarm with deadlines, from now on, and say when it rang until nothing was left to ring."""

    async def scenario() -> tuple[int, list[int]]:
        rang: list[int] = []
        first = asyncio.Event()

        def ring() -> None:
            rang.append(time.monotonic_ns())
            first.set()

        alarm = Alarm(asyncio.get_running_loop(), ring)
        try:
            begin = time.monotonic_ns()
            for after in deadlines_after_ns:
                alarm.wake_by(begin + after)
            async with asyncio.timeout(30):
                await first.wait()
            return begin, rang
        finally:
            alarm.close()

    return asyncio.run(scenario())


def test_it_rings_not_before_its_deadline() -> None:
    begin, rang = rung_at(3_000_000)
    assert len(rang) == 1
    assert rang[0] >= begin + 3_000_000


def test_an_earlier_deadline_replaces_a_later_one() -> None:
    begin, rang = rung_at(3_600_000_000_000, 1_000_000)
    assert begin + 1_000_000 <= rang[0] < begin + 3_600_000_000_000


def test_a_later_deadline_replaces_an_earlier_one() -> None:
    begin, rang = rung_at(1_000_000, 4_000_000)
    assert len(rang) == 1
    assert rang[0] >= begin + 4_000_000


def test_a_deadline_put_off_while_the_timer_runs_is_kept_and_no_other() -> None:
    async def scenario() -> tuple[int, list[int]]:
        rang: list[int] = []
        done = asyncio.Event()

        def ring() -> None:
            rang.append(time.monotonic_ns())
            done.set()

        alarm = Alarm(asyncio.get_running_loop(), ring)
        begin = time.monotonic_ns()
        alarm.wake_by(begin + 2_000_000)
        for _ in range(5):
            await asyncio.sleep(0)
        alarm.wake_by(begin + 5_000_000)
        async with asyncio.timeout(30):
            await done.wait()
        alarm.close()
        return begin, rang

    begin, rang = asyncio.run(scenario())
    assert len(rang) == 1
    assert rang[0] >= begin + 5_000_000


def test_a_deadline_that_is_past_rings_once() -> None:
    _, rang = rung_at(-1_000_000, -2_000_000)
    assert len(rang) == 1


def test_it_can_be_armed_again_after_it_rang() -> None:
    async def scenario() -> int:
        rings = 0
        done = asyncio.Event()

        def ring() -> None:
            nonlocal rings
            rings += 1
            if rings == 5:
                done.set()
            else:
                alarm.wake_by(time.monotonic_ns() + (100_000 if rings % 2 else -1))

        alarm = Alarm(asyncio.get_running_loop(), ring)
        alarm.wake_by(time.monotonic_ns() + 100_000)
        async with asyncio.timeout(30):
            await done.wait()
        alarm.close()
        return rings

    assert asyncio.run(scenario()) == 5


def test_a_closed_alarm_rings_no_more() -> None:
    async def scenario() -> list[int]:
        rang: list[int] = []
        alarm = Alarm(asyncio.get_running_loop(), lambda: rang.append(1))
        alarm.wake_by(0)
        alarm.close()
        await asyncio.sleep(0)
        return rang

    assert asyncio.run(scenario()) == []
