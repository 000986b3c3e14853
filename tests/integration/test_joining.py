"""Joining, sending, reading and leaving from Python, over loopback."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import intergroup_core as ig
from tests.integration.groups import PATIENCE_SECONDS, a_group_name, loopback

# Nobody has to wait long for an answer inside one process.
SOON = {"membership": {"bootstrap_wait_ms": 60, "linger_ms": 60}}
LO: dict[str, Any] = {"config": loopback(**SOON), "in_process": True}


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await scenario()

    asyncio.run(bounded())


async def read_until(member: ig.GroupMember, holds: Callable[[list[ig.Message]], bool]) -> list[ig.Message]:
    """Records up to the one that makes something hold."""
    messages: list[ig.Message] = []
    while not holds(messages):
        event = await anext(member)
        if isinstance(event, ig.Message):
            messages.append(event)
    return messages


async def view_of(member: ig.GroupMember, *names: str) -> ig.ViewChange:
    """The next view of exactly these senders."""
    async for event in member:
        if isinstance(event, ig.ViewChange) and {peer.name for peer in event.members} == set(names):
            return event
    raise AssertionError("the stream ended")


def named(*names: str) -> Callable[[ig.ViewChange], bool]:
    return lambda view: {peer.name for peer in view.members} == set(names)


def test_what_senders_send_everybody_reads_in_one_order() -> None:
    async def scenario() -> None:
        group = a_group_name()
        async with (
            ig.join(group, sender=True, name="anna", **LO) as anna,
            ig.join(group, sender=True, name="bert", **LO) as bert,
            ig.join(group, name="carl", **LO) as carl,
        ):
            await asyncio.gather(*(view_of(member, "anna", "bert") for member in (anna, bert, carl)))
            for number in range(50):
                await anna.send(f"a{number}".encode())
                await bert.send_many([f"b{number}".encode(), b""])
            read = [await read_until(member, lambda found: len(found) == 150) for member in (anna, bert, carl)]
            assert read[0] == read[1] == read[2]
            first = read[0]
            assert [m.value for m in first if m.sender == "anna"] == [f"a{n}".encode() for n in range(50)]
            assert [m.position for m in first] == sorted(m.position for m in first)
            assert {(m.sender, m.sender_id) for m in first} == {("anna", anna.id), ("bert", bert.id)}
            assert {m.view_id for m in first} == {(await carl.members()).view_id}

    play(scenario)


def test_one_alone_is_in_the_group_and_reads_itself() -> None:
    async def scenario() -> None:
        async with ig.join(a_group_name(), sender=True, name="anna", **LO) as anna:
            assert [peer.name for peer in (await anna.members()).senders] == ["anna"]
            assert anna.state == "sender"
            await anna.send(bytearray(b"alone"))
            (message,) = await read_until(anna, bool)
            assert (message.value, message.sender_id) == (b"alone", anna.id)

    play(scenario)


def test_members_names_senders_and_receivers() -> None:
    async def scenario() -> None:
        group = a_group_name()
        async with (
            ig.join(group, sender=True, name="anna", **LO) as anna,
            ig.join(group, name="carl", **LO) as carl,
        ):
            await view_of(carl, "anna")
            while not (await anna.members()).receivers:
                await asyncio.sleep(0.01)
            assert (await anna.members()).receivers == (ig.Peer("carl", carl.id),)
            senders = [(await member.members()).senders for member in (anna, carl)]
            assert senders[0] == senders[1] == (ig.Peer("anna", anna.id),)

    play(scenario)


def test_a_receiver_that_sends_becomes_a_sender() -> None:
    async def scenario() -> None:
        group = a_group_name()
        async with ig.join(group, sender=True, name="anna", **LO) as anna, ig.join(group, name="bert", **LO) as bert:
            await view_of(bert, "anna")
            await bert.send(b"me too")
            view = await view_of(anna, "anna", "bert")
            assert [peer.name for peer in view.joined] == ["bert"]
            (message,) = await read_until(anna, bool)
            assert (message.sender, message.value) == ("bert", b"me too")

    play(scenario)


def test_leaving_the_block_leaves_the_group_after_all_was_sent() -> None:
    async def scenario() -> None:
        group = a_group_name()
        async with ig.join(group, name="carl", **LO) as carl:
            async with ig.join(group, sender=True, name="anna", **LO):
                async with ig.join(group, sender=True, name="bert", **LO) as bert:
                    await view_of(carl, "anna", "bert")
                    await bert.send_many([b"%d" % number for number in range(1_000)])
                read = await read_until(carl, lambda found: len(found) == 1_000)
                assert [m.value for m in read] == [b"%d" % number for number in range(1_000)]
                view = await view_of(carl, "anna")
                assert [(gone.name, gone.reason) for gone in view.departed] == [("bert", "left")]
            assert (await view_of(carl)).members == ()

    play(scenario)


def test_a_cancelled_block_leaves_too() -> None:
    async def scenario() -> None:
        group = a_group_name()
        there = asyncio.Event()

        async def be_there() -> None:
            async with ig.join(group, sender=True, name="bert", **LO):
                there.set()
                await asyncio.Event().wait()

        async with ig.join(group, sender=True, name="anna", **LO) as anna:
            task = asyncio.create_task(be_there())
            await there.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while "bert" not in [gone.name for gone in (await view_of(anna, "anna")).departed]:
                pass

    play(scenario)


def test_after_leaving_the_stream_ends_and_nothing_can_be_sent() -> None:
    async def scenario() -> None:
        async with ig.join(a_group_name(), sender=True, name="anna", **LO) as anna:
            await anna.send(b"last words")
            await anna.leave()
            events = [event async for event in anna]
            assert [event.value for event in events if isinstance(event, ig.Message)] == [b"last words"]
            with pytest.raises(ig.LocalProtocolError):
                await anna.send(b"more")

    play(scenario)


def test_batches_are_whole_messages() -> None:
    async def scenario() -> None:
        group = a_group_name()
        async with ig.join(group, sender=True, name="anna", **LO) as anna, ig.join(group, **LO) as carl:
            await carl.joined()
            await anna.send_many([b"x" * size for size in range(500)])
            values: list[bytes] = []
            async for event in carl.batches():
                if isinstance(event, ig.Batch):
                    values += event.values()
                if len(values) == 500:
                    break
            assert values == [b"x" * size for size in range(500)]
            with pytest.raises(ig.LocalProtocolError, match="by record or by batch"):
                await anext(carl)

    play(scenario)


def test_one_that_only_sends_is_not_held_up_by_what_it_does_not_read() -> None:
    async def scenario() -> None:
        config = loopback(network={"app_queue_bytes": 65_536}, **SOON)
        async with ig.join(a_group_name(), sender=True, reads=False, config=config, in_process=True) as anna:
            for _ in range(50):
                await anna.send(bytes(100_000))
            await anna.flush()
            with pytest.raises(ig.LocalProtocolError, match="only sends"):
                await anext(anna)

    play(scenario)


def test_leaving_is_not_held_up_by_what_was_not_read() -> None:
    async def scenario() -> None:
        config = loopback(network={"app_queue_bytes": 65_536}, **SOON)
        group = a_group_name()
        async with ig.join(group, sender=True, config=config, in_process=True) as anna:
            sending = asyncio.create_task(send_all(anna, [bytes(50_000)] * 40))
            await sending
        assert [event async for event in anna], "what was delivered before the limit is still there"

    play(scenario)


async def send_all(member: ig.GroupMember, records: list[bytes]) -> None:
    for record in records:
        await member.send(record)


def test_uu_delivers_without_being_in_a_view() -> None:
    async def scenario() -> None:
        group = a_group_name()
        async with (
            ig.join(group, delivery="uu", **LO) as listener,
            ig.join(group, sender=True, name="anna", **LO) as anna,
        ):
            await anna.send(b"to whom it may concern")
            event = await anext(listener)
            assert isinstance(event, ig.Message)
            assert (event.value, event.sender, event.view_id) == (b"to whom it may concern", anna.id, None)

    play(scenario)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"delivery": "total"}, ig.ConfigError, "delivery is 'total'; it must be uu, rso or rto"),
        ({"name": ""}, ig.ConfigError, "a member's name is ''"),
        ({"name": "new\nline"}, ig.ConfigError, "printable"),
        ({"interface": "wlan9"}, ig.NetworkUnavailable, "'wlan9'"),
    ],
)
def test_a_wrong_option_is_refused_at_once(options: dict[str, Any], error: type[Exception], said: str) -> None:
    async def scenario() -> None:
        with pytest.raises(error, match=said):
            async with ig.join(a_group_name(), **(LO | options)):
                pass

    play(scenario)
    with pytest.raises(error, match=said):
        ig.open(a_group_name(), **(LO | options))


def test_what_is_no_record_is_refused() -> None:
    async def scenario() -> None:
        async with ig.join(a_group_name(), sender=True, **LO) as anna:
            with pytest.raises(TypeError, match="a record is bytes, not str"):
                await anna.send("text")  # type: ignore[arg-type]
            with pytest.raises(ig.LocalProtocolError, match="several records"):
                await anna.send_many(b"bytes")  # type: ignore[arg-type]
            with pytest.raises(ig.MessageTooLarge):
                await anna.send(bytes(9_000_000))

    play(scenario)


def test_too_few_sites_may_not_send_and_what_they_agreed_on_is_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        group = a_group_name()
        config = loopback(group={"quorum": "2"}, **SOON)
        own = {"config": config, "in_process": True}
        async with ig.join(group, sender=True, name="anna", home=tmp_path / "a", **own) as anna:
            with pytest.raises(ig.NoQuorum, match="no quorum"):
                await anna.send(b"alone")
            async with ig.join(group, sender=True, name="bert", home=tmp_path / "b", **own) as bert:
                await view_of(bert, "anna", "bert")
                await bert.send(b"together")
                assert [message.value for message in await read_until(anna, bool)] == [b"together"]
        for site in ("a", "b"):
            assert (tmp_path / site / "site").exists()
            assert len([path for path in (tmp_path / site / "membership").iterdir() if not path.suffix]) == 1

    play(scenario)


def test_the_twin_for_scripts() -> None:
    group = a_group_name()
    with ig.open(group, sender=True, name="anna", **LO) as anna, ig.open(group, name="carl", **LO) as carl:
        carl.joined(timeout=PATIENCE_SECONDS)
        anna.send(b"one")
        anna.send_many([b"two", b"three"])
        anna.flush()
        events = iter(carl)
        values: list[bytes] = []
        while len(values) < 3:
            event = next(events)
            if isinstance(event, ig.Message):
                values.append(event.value)
        assert values == [b"one", b"two", b"three"]
        assert [peer.name for peer in carl.members().senders] == ["anna"]
        with pytest.raises(TimeoutError):
            carl.read(timeout=0.05)
        anna.send(b"four")
        event = carl.read(timeout=PATIENCE_SECONDS)
        assert isinstance(event, ig.Message)
        assert event.value == b"four"
    assert carl.read() is None
    with pytest.raises(ig.LocalProtocolError, match="closed"):
        anna.send(b"five")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(f"intergroup {group}")]


def test_the_twin_reads_batches_while_another_thread_sends() -> None:
    with ig.open(a_group_name(), sender=True, **LO) as anna:
        sender = threading.Thread(target=lambda: [anna.send(b"%d" % number) for number in range(200)])
        sender.start()
        values: list[bytes] = []
        for event in anna.batches():
            if isinstance(event, ig.Batch):
                values += event.values()
            if len(values) == 200:
                break
        sender.join()
        assert values == [b"%d" % number for number in range(200)]


def test_a_script_that_forgets_to_close_leaves_at_its_end() -> None:
    group = a_group_name()
    program = (
        "import intergroup_core as ig\n"
        f"member = ig.open({group!r}, sender=True, name='bert', interface='lo', in_process=True)\n"
        "member.send(b'bye')\n"
    )
    with ig.open(group, sender=True, name="anna", **LO) as anna:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        seen: list[ig.Message | ig.ViewChange | ig.Gap | None] = []
        while not (seen and isinstance(seen[-1], ig.ViewChange) and seen[-1].departed):
            seen.append(anna.read(timeout=PATIENCE_SECONDS))
        assert [event.value for event in seen if isinstance(event, ig.Message)] == [b"bye"]
        last = seen[-1]
        assert isinstance(last, ig.ViewChange)
        assert [(gone.name, gone.reason) for gone in last.departed] == [("bert", "left")]


def test_importing_the_package_does_not_load_the_protocol() -> None:
    program = "import sys, intergroup_core; print([m for m in ('numpy', 'asyncio', 'msgpack') if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output == "[]\n"
