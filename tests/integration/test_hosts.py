"""Five senders and three readers on three hosts, while processes die, pause and lose each other."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

import pytest

from intergroup_core.benchmarks.testbed import why_no_namespaces
from tests.integration.groups import a_group_name
from tests.integration.hosts import Hosts, hosts
from tests.integration.processes import Program, Programs, check_nothing_skipped, check_same_between_views, programs

INTERVAL_MS = 20.0
PLACES = {"a1": 0, "a2": 0, "b1": 1, "b2": 1, "c1": 2}
"""Senders and the numbers of their hosts."""

_MISSING = why_no_namespaces()
pytestmark = pytest.mark.skipif(_MISSING is not None, reason=str(_MISSING))


@pytest.fixture
def testbed() -> Iterator[Hosts]:
    with hosts(3) as there:
        yield there


class Group:
    """The senders and readers of one test."""

    def __init__(self, started: Programs, senders: Sequence[Program], readers: Sequence[Program]) -> None:
        self.started = started
        self.senders = {sender.name: sender for sender in senders}
        self.readers = readers

    async def until_views(self, members: set[str], *names: str, readers: Sequence[Program] = ()) -> float:
        """Wait for a view of these members at the named senders and readers; when the last one had it."""
        watched = [*(self.senders[name] for name in names), *readers]
        await self.started.until(lambda: all(each.members == members for each in watched))
        return max(each.last_view_at for each in watched)

    async def until_more(self, programs: Sequence[Program], of: set[str]) -> None:
        """Wait until each has delivered something new of every one of these."""
        counts = {program: len(program.rows) for program in programs}

        def all_heard() -> bool:
            return all(each.last_row_of.get(name, -1) >= counts[each] for each in programs for name in of)

        await self.started.until(all_heard)

    async def stop_sending(self, *names: str) -> dict[str, int]:
        """How many records each of them sent."""
        stopped = [self.senders[name] for name in names]
        for sender in stopped:
            sender.tell("stop")
        await self.started.until(lambda: all(sender.sent is not None for sender in stopped))
        return {sender.name: sender.sent or 0 for sender in stopped}


def play(testbed: Hosts, scenario: Callable[[Group], Awaitable[None]]) -> None:
    async def run() -> None:
        group = a_group_name()
        async with programs() as started:
            senders = [
                await started.peer(group, name, interval_ms=INTERVAL_MS, interface="e0", within=testbed.within(host))
                for name, host in PLACES.items()
            ]
            readers = [await started.recv(group, interface="e0", within=testbed.within(host)) for host in range(3)]
            there = Group(started, senders, readers)
            await there.until_views(set(PLACES), *PLACES, readers=readers)
            await there.until_more([*senders, *readers], of=set(PLACES))
            await scenario(there)
            for program in (*senders, *readers):
                check_nothing_skipped(program)
            compared = check_same_between_views([*senders, *readers])
            assert compared > 0 or len(readers[0].views) < 2

    asyncio.run(run())


def texts(name: str, count: int) -> list[str]:
    return [f"{name}:{number}" for number in range(count)]


def of_sender(program: Program, name: str) -> list[str]:
    return [value for value in program.values if value.startswith(f"{name}:")]


def test_a_sender_that_is_killed_is_left_behind_and_nothing_of_the_others_is_lost(
    testbed: Hosts, record_property: Callable[[str, object], None]
) -> None:
    async def scenario(group: Group) -> None:
        survivors = set(PLACES) - {"b1"}
        killed = time.monotonic()
        group.senders["b1"].signal(signal.SIGKILL)
        installed = await group.until_views(survivors, *survivors, readers=group.readers)
        record_property("seconds_from_kill_to_view", round(installed - killed, 2))
        assert all(reader.views[-1]["departed"] == ["b1"] for reader in group.readers)
        sent = await group.stop_sending(*survivors)
        watched = [group.senders[name] for name in sorted(survivors)]
        await group.started.until(
            lambda: all(
                of_sender(each, name)[-1] == f"{name}:{sent[name] - 1}" for each in watched for name in survivors
            )
        )
        # Everybody was there from the view of all five on; before it they joined one by one.
        everyone = min((each.views for each in watched), key=len)
        common = next(row["view_id"] for row in everyone if set(row["members"]) == set(PLACES))
        streams = [[row["value"] for row in since(each, common)] for each in watched]
        assert all(stream == streams[0] for stream in streams)
        for name in survivors:
            assert of_sender(group.senders[name], name) == texts(name, sent[name])

    play(testbed, scenario)


def since(program: Program, view_id: str) -> list[dict[str, str]]:
    start = next(at for at, row in enumerate(program.rows) if row["kind"] == "view" and row["view_id"] == view_id)
    return [row for row in program.rows[start:] if row["kind"] == "data"]


def test_two_parts_go_on_by_themselves_and_meet_again(
    testbed: Hosts, record_property: Callable[[str, object], None]
) -> None:
    async def scenario(group: Group) -> None:
        mainland, island = {"a1", "a2", "b1", "b2"}, {"c1"}
        parted = time.monotonic()
        testbed.part([0, 1], [2])
        times = await asyncio.gather(
            group.until_views(mainland, *mainland, readers=group.readers[:2]),
            group.until_views(island, *island, readers=group.readers[2:]),
        )
        record_property("seconds_from_partition_to_views", round(max(times) - parted, 2))
        await group.until_more([*(group.senders[name] for name in mainland), *group.readers[:2]], of=mainland)
        await group.until_more([group.senders["c1"], group.readers[2]], of=island)
        joined = time.monotonic()
        testbed.join()
        met = await group.until_views(set(PLACES), *PLACES, readers=group.readers)
        record_property("seconds_from_join_to_view", round(met - joined, 2))
        assert group.senders["c1"].views[-1]["branches"]
        await group.until_more([*group.senders.values(), *group.readers], of=set(PLACES))
        sent = await group.stop_sending(*PLACES)
        for name, sender in group.senders.items():
            await group.started.until(
                lambda name=name, sender=sender: sender.last_of(name) == f"{name}:{sent[name] - 1}"
            )
            assert of_sender(sender, name) == texts(name, sent[name])

    play(testbed, scenario)


def test_a_process_that_was_stopped_comes_back(testbed: Hosts, record_property: Callable[[str, object], None]) -> None:
    async def scenario(group: Group) -> None:
        others = set(PLACES) - {"b2"}
        group.senders["b2"].signal(signal.SIGSTOP)
        await group.until_views(others, *others, readers=group.readers)
        resumed = time.monotonic()
        group.senders["b2"].signal(signal.SIGCONT)
        back = await group.until_views(set(PLACES), *PLACES, readers=group.readers)
        record_property("seconds_from_waking_to_view", round(back - resumed, 2))
        await group.until_more([*group.senders.values(), *group.readers], of=set(PLACES))

    play(testbed, scenario)


def test_a_reader_that_was_stopped_goes_on_or_says_what_it_skips(
    testbed: Hosts, record_property: Callable[[str, object], None]
) -> None:
    async def scenario(group: Group) -> None:
        reader, sender = group.readers[1], group.senders["a1"]
        agent = await group.started.agent_pid(testbed.within(1))
        os.kill(agent, signal.SIGSTOP)
        stopped = len(sender.rows)
        # More than three seconds of five senders, after which a receiver is not waited for any more.
        await group.started.until(lambda: len(sender.rows) > stopped + 900)
        resumed = time.monotonic()
        os.kill(agent, signal.SIGCONT)
        wanted = sender.rows[-1]["position"]
        await group.started.until(lambda: reader.rows[-1]["position"] >= wanted)
        record_property("seconds_from_waking_to_the_present", round(time.monotonic() - resumed, 2))
        record_property("gaps", [row["reason"] for row in reader.rows if row["kind"] == "gap"])
        await group.until_more(group.readers, of=set(PLACES))

    play(testbed, scenario)
