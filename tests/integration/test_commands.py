"""`intergroup send`, `recv` and `members` as processes on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

import intergroup_core as ig
from intergroup_core.cli.rows import COLUMNS
from intergroup_core.runtime.home import HOME_VARIABLE
from tests.integration.groups import PATIENCE_SECONDS, a_group_name
from tests.integration.processes import INTERGROUP, Programs, programs
from tests.integration.sites import sites


def play(scenario: Callable[[Programs], Awaitable[None]]) -> None:
    async def run() -> None:
        async with programs() as started:
            await scenario(started)

    asyncio.run(run())


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [INTERGROUP, *arguments, "--interface", "lo"]
    with sites() as there:
        return subprocess.run(
            command,
            input=given,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            env=os.environ | {HOME_VARIABLE: str(there.home())},
        )


def test_lines_sent_here_are_lines_received_there() -> None:
    async def scenario(started: Programs) -> None:
        group = a_group_name()
        anchor = await started.peer(group, "anchor")
        reader = await started.recv(group, "--count", "4")
        await started.until(lambda: bool(reader.views))
        sender = await started.start("send", INTERGROUP, "send", group, "--name", "desk", "--interface", "lo")
        sender.tell("one\ntwo\n\nthr\N{LATIN SMALL LETTER E WITH ACUTE}e")
        sender.end_input()
        assert await sender.ended() == 0
        assert sender.errors == b""
        assert await reader.ended() == 0
        assert reader.values == ["one", "two", "", "thrée"]
        assert all(tuple(row) == COLUMNS for row in reader.rows)
        assert {row["sender"] for row in reader.data} == {"desk"}
        assert [row["position"] for row in reader.rows] == sorted(row["position"] for row in reader.rows)
        await started.until(lambda: anchor.members == {"anchor"} and len(anchor.views) > 1)
        assert anchor.views[-1]["departed"] == ["desk"]

    play(scenario)


async def limited(member: ig.GroupMember, count: int) -> AsyncIterator[ig.Message]:
    """The next records."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while count:
            event = await anext(member)
            if isinstance(event, ig.Message):
                yield event
                count -= 1


def test_a_file_is_sent_at_a_rate(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"\xff\n" * 30)

    async def scenario(started: Programs) -> None:
        group = a_group_name()
        async with ig.join(group, name="watch", interface="lo", in_process=True) as watch:
            sender = await started.start(
                *("send", INTERGROUP, "send", group, "--file", str(tmp_path / "lines"), "--rate", "100"),
                *("--interface", "lo"),
            )
            times = [event.timestamp async for event in limited(watch, 30)]
            assert await sender.ended() == 0
            # All at once would take milliseconds. Half of 0.29 s is left for a first record that waited for its agent.
            assert timedelta(seconds=0.145) <= times[-1] - times[0] < timedelta(seconds=PATIENCE_SECONDS)

    play(scenario)


def test_a_reader_that_is_there_first_misses_nothing() -> None:
    async def scenario(started: Programs) -> None:
        group = a_group_name()
        readers = [await started.recv(group, "--count", "200", "--delivery", each) for each in ("rto", "rso")]
        async with ig.join(group, sender=True, name="desk", interface="lo", in_process=True) as desk:
            await started.until(lambda: all(reader.views for reader in readers))
            await desk.send_many([b"\xff%d" % number for number in range(200)])
            for reader in readers:
                assert await reader.ended() == 0
                assert len(reader.data) == 200
                assert {row["value"] for row in reader.data} == {None}
                assert reader.data[0]["value_base64"] == "/zA="

    play(scenario)


def test_nothing_within_the_time_ends_with_3() -> None:
    done = run("recv", a_group_name(), "--count", "1", "--timeout", "0.3")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"", b"")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_the_group(number: signal.Signals, code: int) -> None:
    async def scenario(started: Programs) -> None:
        group = a_group_name()
        anchor = await started.peer(group, "anchor")
        await started.until(lambda: bool(anchor.views))
        reader = await started.recv(group)
        await started.until(lambda: bool(reader.views))
        sender = await started.start("send", INTERGROUP, "send", group, "--name", "desk", "--interface", "lo")
        sender.tell("hello")
        await started.until(lambda: reader.values == ["hello"])
        sender.signal(number)
        reader.signal(number)
        assert [await sender.ended(), await reader.ended()] == [code, code]
        assert sender.errors == reader.errors == b""
        await started.until(lambda: anchor.members == {"anchor"} and len(anchor.views) > 1)
        assert anchor.views[-1]["departed"] == ["desk"]

    play(scenario)


def test_an_interrupted_program_with_an_event_loop_leaves_too() -> None:
    async def scenario(started: Programs) -> None:
        group = a_group_name()
        anchor, other = await started.peer(group, "anchor"), await started.peer(group, "other")
        await started.until(lambda: anchor.members == {"anchor", "other"})
        other.signal(signal.SIGINT)
        await other.ended()
        await started.until(lambda: anchor.members == {"anchor"})
        assert anchor.views[-1]["departed"] == ["other"]

    play(scenario)


def test_a_reader_of_the_output_that_goes_away_ends_it_quietly() -> None:
    async def scenario(started: Programs) -> None:
        group = a_group_name()
        read_end, write_end = os.pipe()
        reader = await asyncio.create_subprocess_exec(
            *(INTERGROUP, "recv", group, "--interface", "lo"),
            stdout=write_end,
            stderr=asyncio.subprocess.PIPE,
            env=started.environment(),
        )
        os.close(write_end)
        try:
            async with (
                asyncio.timeout(PATIENCE_SECONDS),
                ig.join(group, sender=True, name="d", interface="lo", in_process=True) as desk,
            ):
                loop = asyncio.get_running_loop()
                first = await loop.run_in_executor(None, os.read, read_end, 1_000)
                assert b"-- view: d" in first
                os.close(read_end)
                await desk.send(b"into the void")
                _, errors = await reader.communicate()
                assert (reader.returncode, errors) == (141, b"")
        finally:
            if reader.returncode is None:
                reader.kill()
                await reader.wait()

    play(scenario)


def test_members_are_listed_by_name_and_id(tmp_path: Path) -> None:
    async def scenario(started: Programs) -> None:
        group = a_group_name()
        # Sites of other tests die, and whoever was counted through them is counted twice until that is noticed.
        settings = tmp_path / "own.toml"
        settings.write_text(f'[network]\ninterface = "lo"\n[hierarchy]\nname = "{group}"\n')
        config = ig.Config.load(settings)
        async with (
            ig.join(group, sender=True, name="anna", config=config, in_process=True) as anna,
            ig.join(group, name="carl", config=config, in_process=True) as carl,
        ):
            await carl.joined()
            command = (INTERGROUP, "members", group, "--json", "--config", str(settings))
            listing = await started.start("members", *command)
            assert await listing.ended() == 0
            (found,) = listing.rows
            assert found["senders"] == [{"name": "anna", "id": anna.id}]
            assert found["receivers"] == [{"name": "carl", "id": carl.id}]
            assert (found["group_name"], found["view_id"]) == (group, (await anna.members()).view_id)
            assert found["count"] == 2

    play(scenario)


def test_members_of_a_group_where_nobody_sends_ends_with_3() -> None:
    group = a_group_name()
    done = run("members", group, "--timeout", "0.5", "--json")
    assert done.returncode == 3
    found = json.loads(done.stdout)
    assert (found["group_name"], found["view_id"], found["senders"], found["receivers"]) == (group, None, [], [])
    assert (found["count"], found["slowest"], found["behind_s"]) == (None, None, None)
    assert b"no sender of group" in done.stderr
