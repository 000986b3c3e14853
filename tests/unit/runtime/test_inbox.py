"""The queue between deliveries and an application that reads at its own pace."""

from __future__ import annotations

import asyncio

import pytest

from intergroup_core.effects import Install
from intergroup_core.errors import LocalProtocolError
from intergroup_core.runtime.inbox import Inbox
from intergroup_core.wire.chunk import Chunk
from tests.builders import a_run, a_view

FRAME = 56


def a_chunk(seq: int = 1) -> Chunk:
    """One message in one frame."""
    return Chunk((), a_run(seq=seq))


def an_install() -> Install:
    return Install(a_view())


def an_inbox(frames: int, told: list[int]) -> Inbox:
    return Inbox(frames * FRAME, told.append)


def test_events_come_out_in_the_order_they_went_in() -> None:
    inbox = an_inbox(10, [])
    events = [an_install(), a_chunk(1), a_chunk(2), an_install()]
    for event in events:
        inbox.put(event)
    assert asyncio.run(_take(inbox, 4)) == events


def test_what_waits_is_told_as_room_taken_once_per_stimulus() -> None:
    told: list[int] = []
    inbox = an_inbox(10, told)
    inbox.put(a_chunk(1))
    inbox.put(a_chunk(2))
    inbox.settle()
    assert told == [8 * FRAME]


def test_a_view_takes_no_room() -> None:
    told: list[int] = []
    inbox = an_inbox(10, told)
    inbox.put(an_install())
    inbox.settle()
    assert told == []


def test_room_is_never_negative_when_more_was_on_its_way() -> None:
    told: list[int] = []
    inbox = an_inbox(1, told)
    for seq in (1, 2, 3):
        inbox.put(a_chunk(seq))
    inbox.settle()
    assert told == [0]
    assert inbox.most_bytes == 3 * FRAME


def test_room_that_a_reader_makes_is_told_in_steps_and_when_empty() -> None:
    told: list[int] = []
    inbox = an_inbox(32, told)
    for seq in range(1, 11):
        inbox.put(a_chunk(seq))
    inbox.settle()
    told.clear()
    asyncio.run(_take(inbox, 10))
    assert told == [26 * FRAME, 30 * FRAME, 32 * FRAME]


def test_a_reader_that_waits_is_woken() -> None:
    async def scenario() -> object:
        inbox = an_inbox(10, [])
        reader = asyncio.ensure_future(inbox.take())
        await asyncio.sleep(0)
        inbox.put(an_install())
        return await reader

    assert asyncio.run(scenario()) == an_install()


def test_closing_ends_a_reader_after_what_is_left() -> None:
    async def scenario() -> list[object]:
        inbox = an_inbox(10, [])
        inbox.put(an_install())
        taken = [await inbox.take()]
        reader = asyncio.ensure_future(inbox.take())
        await asyncio.sleep(0)
        inbox.close()
        return [*taken, await reader]

    assert asyncio.run(scenario()) == [an_install(), None]


def test_events_at_hand_are_taken_together_up_to_a_number_of_bytes() -> None:
    inbox = an_inbox(10, [])
    for seq in (1, 2, 3, 4):
        inbox.put(a_chunk(seq))
    assert [len(inbox.take_ready(FRAME + 1)), len(inbox.take_ready(0)), len(inbox.take_ready(100 * FRAME))] == [2, 1, 1]
    assert inbox.take_ready(1) == []


def test_two_readers_at_a_time_are_refused() -> None:
    async def scenario() -> None:
        inbox = an_inbox(10, [])
        first = asyncio.ensure_future(inbox.take())
        await asyncio.sleep(0)
        with pytest.raises(LocalProtocolError, match="one task at a time"):
            await inbox.take()
        inbox.put(an_install())
        assert await first == an_install()

    asyncio.run(scenario())


def test_a_reader_that_was_cancelled_loses_nothing() -> None:
    async def scenario() -> object:
        inbox = an_inbox(10, [])
        reader = asyncio.ensure_future(inbox.take())
        await asyncio.sleep(0)
        inbox.put(an_install())
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        return await inbox.take()

    assert asyncio.run(scenario()) == an_install()


def test_one_that_leaves_holds_nobody_up_and_its_stream_ends_at_the_limit() -> None:
    told: list[int] = []
    inbox = an_inbox(2, told)
    inbox.put(a_chunk(1))
    inbox.settle()
    inbox.leave()
    for seq in (2, 3, 4):
        inbox.put(a_chunk(seq))
    inbox.settle()
    assert told == [FRAME, 2 * FRAME]
    assert [event.first_seq for event in inbox.take_ready(100 * FRAME) if isinstance(event, Chunk)] == [1, 2]
    inbox.put(a_chunk(5))
    assert not len(inbox)


def test_what_nobody_will_read_is_dropped() -> None:
    told: list[int] = []
    inbox = an_inbox(2, told)
    inbox.put(a_chunk(1))
    inbox.settle()
    inbox.discard()
    inbox.put(a_chunk(2))
    assert told == [FRAME, 2 * FRAME]
    assert (len(inbox), inbox.bytes) == (0, 0)


async def _take(inbox: Inbox, count: int) -> list[object]:
    return [await inbox.take() for _ in range(count)]
