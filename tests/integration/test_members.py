"""Members over real sockets on loopback."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from intergroup_core.benchmarks.loss import LossyListener
from intergroup_core.errors import Backpressure, LocalProtocolError, MessageTooLarge, NetworkUnavailable
from intergroup_core.ids import Service
from intergroup_core.runtime.inbox import Event
from intergroup_core.runtime.member import Member
from intergroup_core.runtime.transmitter import Transmitter
from intergroup_core.wire.chunk import Chunk
from tests.integration.groups import PATIENCE_SECONDS, a_group, loopback

OFFLOAD = pytest.mark.parametrize("offload", [True, False])


def records_of(number: int, count: int, size: int = 200) -> list[bytes]:
    return [f"{number}:{index}:".encode().ljust(size, b".") for index in range(count)]


@OFFLOAD
def test_three_senders_deliver_the_same_records_in_the_same_order(offload: bool) -> None:
    async def scenario() -> None:
        async with a_group(3, config=loopback(network={"offload": offload})) as group:
            sent = [records_of(number, 300) for number in range(3)]
            for start in range(0, 300, 20):
                for member, records in zip(group.members, sent, strict=True):
                    await member.send_many(records[start : start + 20])
                await asyncio.sleep(0)
            await group.until_all_have(900)
            assert group.seen[0].records == group.seen[1].records == group.seen[2].records
            for me, records in zip(group.ids, sent, strict=True):
                assert group.seen[0].of(me) == records
            assert [len(seen.views) for seen in group.seen] == [1, 1, 1]

    asyncio.run(scenario())


@OFFLOAD
def test_large_records_arrive_whole(offload: bool) -> None:
    async def scenario() -> None:
        async with a_group(1, 1, config=loopback(network={"offload": offload})) as group:
            sent = [bytes([number]) * size for number, size in enumerate((1, 1_352, 60_000, 1_000_000, 7_999_000))]
            for record in sent:
                await group.members[0].send_many([record])
            await group.until_all_have(len(sent))
            assert group.seen[1].of(group.ids[0]) == sent

    asyncio.run(scenario())


def test_each_receiver_has_its_own_service_in_one_group() -> None:
    async def scenario() -> None:
        services = [Service.RTO, Service.RSO, Service.RTO, Service.RSO, Service.UU]
        async with a_group(2, 3, services=services) as group:
            for number in (0, 1):
                await group.members[number].send_many(records_of(number, 100))
            await group.until(lambda: all(len(seen.records) >= 200 for seen in group.seen[:4]))
            assert group.seen[0].records == group.seen[2].records
            for seen in group.seen[:4]:
                assert [seen.of(me) for me in group.ids[:2]] == [records_of(0, 100), records_of(1, 100)]

    asyncio.run(scenario())


class LossyOne(LossyListener):
    """Loses one datagram in twelve."""

    loss: ClassVar[float] = 1 / 12


@OFFLOAD
def test_what_the_network_loses_is_repaired(offload: bool) -> None:
    async def scenario() -> None:
        async with a_group(2, 1, config=loopback(network={"offload": offload}), listen=LossyOne) as group:
            for start in range(0, 400, 40):
                for number in (0, 1):
                    await group.members[number].send_many(records_of(number, 400, 900)[start : start + 40])
                await asyncio.sleep(0)
            await group.until_all_have(800)
            assert group.seen[0].records == group.seen[1].records == group.seen[2].records
            counters = [member.endpoint.counters for member in group.members]
            assert sum(each.losses_detected for each in counters) > 0
            assert sum(each.repairs_sent for each in counters) > 0

    asyncio.run(scenario())


def test_a_reader_that_stops_stops_its_sender_and_lets_it_go_on() -> None:
    async def scenario() -> None:
        limits = loopback(
            network={"app_queue_bytes": 200_000},
            send={"queue_bytes": 8_000_000},
            report={"room_bytes": 300_000},
        )
        async with a_group(1, 1, config=limits, inboxes=(1,)) as group:
            sender, receiver = group.members
            records = records_of(0, 1_000, 1_000)
            sending = asyncio.create_task(_send_rounds(sender, records, rounds=30))
            await group.until(lambda: receiver.inbox.free == 0 and sender.endpoint.send_room < 1_000_000)
            waiting = receiver.inbox.bytes
            assert not sending.done()
            assert waiting < 2_000_000, "what was on its way when the reader stopped, and no more"
            assert await _count_records(receiver, 30 * len(records)) == 30 * len(records)
            await sending

    asyncio.run(scenario())


async def _send_rounds(sender: Member, records: list[bytes], rounds: int) -> None:
    for _ in range(rounds):
        await sender.send_many(records)


def _send_without_waiting(sender: Member, records: list[bytes], rounds: int) -> None:
    for _ in range(rounds):
        sender.send(records)


async def _count_records(receiver: Member, wanted: int) -> int:
    count = 0
    async with asyncio.timeout(PATIENCE_SECONDS):
        while count < wanted:
            event = await receiver.take()
            if isinstance(event, Chunk):
                count += sum(len(batch) for batch in event.batches())
    return count


def test_a_full_queue_refuses_at_once_those_who_do_not_wait() -> None:
    async def scenario() -> None:
        async with a_group(1, 1, inboxes=(1,), config=loopback(network={"app_queue_bytes": 65_536})) as group:
            with pytest.raises(Backpressure):
                _send_without_waiting(group.members[0], [bytes(1_000_000)], rounds=100)

    asyncio.run(scenario())


def test_two_tasks_that_wait_for_room_both_get_through() -> None:
    async def scenario() -> None:
        async with a_group(1, 1) as group:
            sender = group.members[0]
            large = bytes(6_000_000)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await asyncio.gather(*(sender.send_many([large]) for _ in range(4)))
            await group.until_all_have(4)

    asyncio.run(scenario())


def test_a_record_beyond_the_maximum_is_refused() -> None:
    async def scenario() -> None:
        async with a_group(1) as group:
            with pytest.raises(MessageTooLarge, match=r"group\.max_message_bytes"):
                await group.members[0].send_many([bytes(9_000_000)])

    asyncio.run(scenario())


def test_an_application_may_answer_from_its_callback_and_all_see_the_same_order() -> None:
    async def scenario() -> None:
        async with a_group(2, 1) as group:
            answerer = group.members[1]
            note = group.seen[1].add

            def answer(event: Event) -> None:
                note(event)
                if isinstance(event, Chunk) and event.source == group.ids[0]:
                    answerer.send([b"answer"] * event.count)

            answerer._on_event = answer
            for _ in range(50):
                await group.members[0].send_many([b"question"])
                await asyncio.sleep(0)
            await group.until_all_have(100)
            assert group.seen[0].records == group.seen[1].records == group.seen[2].records

    asyncio.run(scenario())


def test_closing_ends_readers_and_refuses_senders() -> None:
    async def scenario() -> None:
        async with a_group(1, inboxes=(0,)) as group:
            member = group.members[0]
            await member.send_many([b"last"])
            member.close()
            member.close()
            events = [event async for event in member]
            assert [r for e in events if isinstance(e, Chunk) for m in e.messages() for r in m.records()] == [b"last"]
            with pytest.raises(LocalProtocolError, match="closed"):
                await member.send_many([b"later"])

    asyncio.run(scenario())


def test_a_sender_that_waits_for_room_is_told_when_its_member_closes() -> None:
    async def scenario() -> None:
        async with a_group(1, 1, inboxes=(1,), config=loopback(network={"app_queue_bytes": 65_536})) as group:
            sender = group.members[0]
            sending = asyncio.create_task(_send_rounds(sender, [bytes(1_000_000)], rounds=100))
            await group.until(lambda: sender.endpoint.send_room < 1_000_000)
            sender.close()
            with pytest.raises(LocalProtocolError, match="closed"):
                await sending

    asyncio.run(scenario())


def test_an_interface_that_is_not_there_is_a_clear_error() -> None:
    async def scenario() -> None:
        with pytest.raises(NetworkUnavailable, match=r"'wlan9'.*network\.interface"):
            async with a_group(1, config=loopback(network={"interface": "wlan9"})):
                pass

    asyncio.run(scenario())


class Congested(Transmitter):
    """A network that often takes less than it is given."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._calls = 0

    def send(self, data: memoryview | bytes, segment: int, burst: int = 0) -> int:
        self._calls += 1
        if self._calls % 3:
            return super().send(data, segment, burst)
        part = data[: len(data) // 2 // segment * segment]
        return super().send(part, segment, burst) if len(part) else 0


def test_what_a_congested_network_does_not_take_is_sent_later_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr("intergroup_core.runtime.sockets.Transmitter", Congested)
        async with a_group(1, 1) as group:
            sent = records_of(0, 3_000, 500)
            await group.members[0].send_many(sent)
            await group.until_all_have(3_000)
            assert group.seen[1].of(group.ids[0]) == sent
            assert group.members[1].endpoint.counters.losses_detected == 0

    asyncio.run(scenario())
