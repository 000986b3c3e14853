"""How effects are carried out, with an endpoint and sockets that do as told."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from intergroup_core.effects import Counted, Deliver, Effect, Gap, Install, Left, Multicast, Persist, SendRoom
from intergroup_core.errors import Backpressure, LocalProtocolError, MemberEnded, StateUnavailable
from intergroup_core.ids import MemberId
from intergroup_core.runtime.inbox import Event
from intergroup_core.runtime.member import Member
from intergroup_core.wire.chunk import Chunk
from tests.builders import R, a_run, a_view

CHUNK = Chunk((), a_run())
INSTALL = Install(a_view())


class ScriptedEndpoint:
    """Answers each stimulus with the effects it was given for it."""

    group, name, view = "prices", "desk", None
    me = R
    unsent_bytes = 0

    def __init__(self, **effects: list[Effect]) -> None:
        self._effects = effects

    def next_deadline(self) -> None:
        return None

    def hasten(self, early: Callable[[Sequence[Effect]], None]) -> None:
        self.early = early

    def _answer(self, stimulus: str) -> list[Effect]:
        effects = self._effects.pop(stimulus, [])
        if any(isinstance(effect, Install) for effect in effects):
            self.view = INSTALL.view  # type: ignore[assignment]
        return effects

    def start(self, now: object) -> list[Effect]:
        return self._answer("start")

    def leave(self, now: object) -> list[Effect]:
        return self._answer("leave")

    def send(self, records: object, now: object) -> list[Effect]:
        return self._answer("send")

    def room(self, free: int, now: object) -> list[Effect]:
        return []

    def receive(self, arrival: object, now: object) -> list[Effect]:
        raise AssertionError("an invariant does not hold")


class Wires:
    """What happens to listener, transmitter and store, in order."""

    def __init__(self) -> None:
        self.notes: list[object] = []
        self._here, self._there = socket.socketpair()
        self._out, self._end = socket.socketpair()
        self.drained = True
        self.full = False

    def listener(self) -> Any:
        return _Wire(self, self._here)

    def transmitter(self) -> Any:
        return _Wire(self, self._out)

    def arrive(self) -> None:
        self._there.send(b"x")

    def close(self) -> None:
        for each in (self._here, self._there, self._out, self._end):
            each.close()


class _Wire:
    drained = True

    def __init__(self, wires: Wires, wire: socket.socket) -> None:
        self._wires, self._wire = wires, wire

    def fileno(self) -> int:
        return self._wire.fileno()

    def send(self, data: bytes, segment: int, burst: int = 0) -> int:
        self._wires.notes.append(("sent", data))
        return len(data)

    def receive(self) -> object:
        return self._wire.recv(10)

    def drop_frames_of(self, me: MemberId) -> None:
        self._wires.notes.append(("filter", me))

    def close(self) -> None:
        """Closed by the test."""


class Store:
    """Saves, unless there is no room."""

    def __init__(self, wires: Wires) -> None:
        self._wires = wires

    def save(self, record: bytes) -> None:
        if self._wires.full:
            raise StateUnavailable("the disk is full")
        self._wires.notes.append(("saved", record))

    def close(self) -> None:
        """Nothing to close."""


class ClosingLog:
    """A log whose watcher closes the member as soon as something is kept."""

    free = 1_000

    def __init__(self) -> None:
        self.member: Member | None = None

    def append(self, event: Event) -> None:
        """Taken."""

    def settle(self) -> int:
        assert self.member is not None
        self.member.close()
        return 1

    def close(self) -> None:
        """Nothing to close."""


def play(
    scenario: Callable[[Member, Wires], Awaitable[None]],
    *,
    on_event: Callable[[Event], None] | None = None,
    full: bool = False,
    log: ClosingLog | None = None,
    **effects: list[Effect],
) -> None:
    async def run() -> None:
        wires = Wires()
        wires.full = full
        member = Member(
            cast(Any, ScriptedEndpoint(**effects)),
            wires.listener(),
            wires.transmitter(),
            app_queue_bytes=100_000,
            on_event=on_event,
            store=Store(wires),
            log=cast(Any, log),
        )
        if log is not None:
            log.member = member
        try:
            async with asyncio.timeout(30), member:
                await scenario(member, wires)
        finally:
            wires.close()

    asyncio.run(run())


def test_what_must_be_durable_is_so_before_anything_later_happens() -> None:
    async def scenario(member: Member, wires: Wires) -> None:
        assert wires.notes == [("sent", b"before"), ("saved", b"state"), ("sent", b"after")]

    play(scenario, start=[Multicast(b"before", 6), Persist(b"state"), Multicast(b"after", 5), Counted(True)])


def test_what_an_endpoint_hastens_is_sent_at_once_and_wakes_who_waits_for_room() -> None:
    async def scenario(member: Member, wires: Wires) -> None:
        endpoint = cast(Any, member.endpoint)
        refusals = iter([Backpressure("full")])

        def send(records: object, now: object) -> list[Effect]:
            for refusal in refusals:
                raise refusal
            endpoint.early([Multicast(b"early", 5)])
            assert wires.notes == [("sent", b"early")]
            return [Multicast(b"rest", 4)]

        endpoint.send = send
        sending = asyncio.create_task(member.send_many([b"x"]))
        await asyncio.sleep(0)
        assert not sending.done()
        endpoint.early([SendRoom(10)])
        await sending
        assert wires.notes == [("sent", b"early"), ("sent", b"rest")]

    play(scenario)


def test_a_member_that_cannot_keep_its_state_does_nothing_more_and_says_so() -> None:
    async def scenario(member: Member, wires: Wires) -> None:
        assert wires.notes == []
        assert await member.take() == INSTALL
        assert await member.take() is None
        with pytest.raises(MemberEnded, match=r"desk is out of group prices: the disk is full"):
            await member.send_many([b"x"])

    play(scenario, full=True, start=[INSTALL, Persist(b"state"), Multicast(b"after", 5)])


def test_a_member_that_is_closed_while_its_log_settles_says_nothing_more() -> None:
    async def scenario(member: Member, wires: Wires) -> None:
        member.send([b"x"])
        assert member.closed
        member.check_failure()  # ScriptedEndpoint knows no `appended`: it is not told
        assert wires.notes == [("sent", b"data")]

    play(scenario, log=ClosingLog(), send=[Multicast(b"data", 4), Deliver(CHUNK)])


def test_a_gap_changes_whose_frames_the_socket_drops() -> None:
    async def scenario(member: Member, wires: Wires) -> None:
        assert wires.notes == [("filter", MemberId(9))]
        assert await member.take() == Gap("behind", MemberId(9))

    play(scenario, start=[Gap("behind", MemberId(9))])


def test_a_member_that_has_left_ends_its_stream_after_what_was_delivered() -> None:
    async def scenario(member: Member, wires: Wires) -> None:
        member.begin_to_leave()
        member.begin_to_leave()
        await member.ended()
        assert [event async for event in member] == [INSTALL, CHUNK]
        with pytest.raises(LocalProtocolError, match="closed"):
            await member.send_many([b"x"])
        member.check_failure()

    play(scenario, start=[INSTALL], leave=[Deliver(CHUNK), Left("left")])


def test_one_that_is_put_out_says_why() -> None:
    async def scenario(member: Member, wires: Wires) -> None:
        assert [event async for event in member] == [INSTALL]
        with pytest.raises(MemberEnded, match="its clock"):
            member.check_failure()

    play(scenario, start=[INSTALL, Left("clock")])


def test_the_first_view_is_waited_for() -> None:
    async def scenario(member: Member, wires: Wires) -> None:
        waiting = asyncio.ensure_future(member.installed())
        await asyncio.sleep(0)
        assert not waiting.done()
        await member.send_many([b"x"])
        await waiting

    play(scenario, send=[INSTALL])


def test_who_waits_for_a_view_learns_that_there_will_be_none() -> None:
    async def scenario(member: Member, wires: Wires) -> None:
        waiting = asyncio.ensure_future(member.installed())
        await asyncio.sleep(0)
        await member.send_many([b"x"])
        with pytest.raises(MemberEnded, match="its clock"):
            await waiting

    play(scenario, send=[Left("clock")])


def test_leaving_from_inside_a_callback_waits_for_the_rest_of_what_was_delivered() -> None:
    seen: list[Event] = []
    members: list[Member] = []

    def leave_at_once(event: Event) -> None:
        seen.append(event)
        members[0].begin_to_leave()

    async def scenario(member: Member, wires: Wires) -> None:
        members.append(member)
        await member.send_many([b"x"])
        assert seen == [INSTALL, CHUNK]
        assert member.closed

    play(scenario, on_event=leave_at_once, send=[INSTALL, Deliver(CHUNK)], leave=[Left("left")])


def test_a_broken_invariant_ends_the_member_and_does_not_leave_its_reader_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(member: Member, wires: Wires) -> None:
        wires.arrive()
        assert await member.take() is None
        with pytest.raises(MemberEnded, match="an invariant does not hold"):
            member.check_failure()

    play(scenario)
    assert "a member of group prices ends" in caplog.text
