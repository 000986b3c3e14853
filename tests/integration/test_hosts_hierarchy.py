"""The control hierarchy on three hosts: who is behind is named, and a dead receiver holds nobody back for long."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest

from intergroup_core.benchmarks.testbed import why_no_namespaces
from tests.integration.groups import a_group_name
from tests.integration.hosts import Hosts, hosts
from tests.integration.processes import INTERGROUP, Program, Programs, Row, programs

_MISSING = why_no_namespaces()
pytestmark = pytest.mark.skipif(_MISSING is not None, reason=str(_MISSING))


@pytest.fixture
def testbed() -> Iterator[Hosts]:
    with hosts(3) as there:
        yield there


class Group:
    """A sender on the first host and a named reader on each of the others."""

    def __init__(self, testbed: Hosts, started: Programs, name: str, sender: Program, readers: list[Program]) -> None:
        self._testbed = testbed
        self.started = started
        self.name = name
        self.sender = sender
        self.readers = readers

    async def state(self) -> Row:
        """Of the sender."""
        self.sender.state = None
        self.sender.tell("state")
        await self.started.until(lambda: self.sender.state is not None)
        assert self.sender.state is not None
        return self.sender.state

    async def members(self) -> Row:
        """What `intergroup members` prints on the last host."""
        command = (INTERGROUP, "members", self.name, "--json", "--interface", "e0")
        listing = await self.started.start("members", *command, within=self._testbed.within(2))
        assert await listing.ended() == 0
        (found,) = listing.rows
        return found


def play(testbed: Hosts, scenario: Callable[[Group], Awaitable[None]]) -> None:
    async def run() -> None:
        name = a_group_name()
        async with programs() as started:
            sender = await started.peer(name, "anna", interval_ms=5.0, interface="e0", within=testbed.within(0))
            readers = [
                await started.recv(name, "--name", reader, interface="e0", within=testbed.within(host))
                for host, reader in ((1, "ben"), (2, "cleo"))
            ]
            await started.until(lambda: all(len(reader.data) > 20 for reader in readers))
            await scenario(Group(testbed, started, name, sender, readers))

    asyncio.run(run())


def test_members_are_counted_and_buffers_return_to_empty_after_load(testbed: Hosts) -> None:
    async def scenario(group: Group) -> None:
        found = await group.members()
        assert (found["count"], found["senders"][0]["name"]) == (3, "anna")
        assert {peer["name"] for peer in found["receivers"]} == {"ben", "cleo"}
        group.sender.tell("stop")
        await group.started.until(lambda: group.sender.sent is not None)
        while (await group.state())["buffered"]:
            await asyncio.sleep(0.05)
        assert group.sender.state is not None
        assert group.sender.state["sent_bytes"] > 0

    play(testbed, scenario)


def test_a_stopped_receiver_is_named_and_once_given_up_holds_nothing(
    testbed: Hosts, record_property: Callable[[str, object], None]
) -> None:
    async def scenario(group: Group) -> None:
        stopped = time.monotonic()
        agent = await group.started.agent_pid(testbed.within(1))
        os.kill(agent, signal.SIGSTOP)
        found = await group.members()
        while found["slowest"] != f"{socket.gethostname()}-{agent}" or found["behind_s"] < 1:
            assert time.monotonic() - stopped < 60, f"nobody named the stopped receiver: {found}"
            found = await group.members()
        record_property("seconds_until_a_stopped_receiver_was_named", round(time.monotonic() - stopped, 1))
        since = (await group.state())["sent_bytes"]
        # While it was waited for, everything sent since was kept for it; then all but the last moments is gone.
        while True:
            state = await group.state()
            if state["buffered"] * 4 < state["sent_bytes"] - since:
                break
            assert time.monotonic() - stopped < 90, f"buffers are still held: {state}"
            await asyncio.sleep(0.2)
        record_property("seconds_until_it_held_nothing", round(time.monotonic() - stopped, 1))
        os.kill(agent, signal.SIGCONT)

    play(testbed, scenario)
