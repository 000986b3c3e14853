"""What was sent and how far it has come: nothing that was lost on the way counts as delivered, whoever asks when."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from intergroup_core.agent.sending import MAX_MARKS, Sending, Sent
from intergroup_core.client.staging import plain_rows
from intergroup_core.errors import MemberEnded
from intergroup_core.runtime.member import Member
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.labels import Label, encode_label
from intergroup_core.wire.records import pack_rows
from tests.builders import A, B, a_message
from tests.log_builders import a_chunk, chunk_of


class Sender:
    """A member that hands records over, and its log as the test says."""

    def __init__(self) -> None:
        self.endpoint = SimpleNamespace(me=A, name="anna", group="prices", unsent_records=0, last_seq=0)
        self.sending = Sending(cast("Member", self))
        self._entry = 0

    async def send_many(self, records: list[bytes]) -> None:
        self.endpoint.last_seq += 1

    def check_failure(self) -> None:
        """It has not failed."""

    def comes_back(self, *chunks: Chunk) -> None:
        for chunk in chunks:
            self.sending.appended(self._entry, chunk)
            self._entry += 1
        self.sending.kept(self._entry)


def own(seq: int, *records: bytes) -> Chunk:
    return a_chunk(*(records or (b"row",)), source=A, seq=seq, timestamp=1_000 + seq)


def test_records_are_delivered_once_they_came_back_and_are_kept() -> None:
    async def scenario() -> None:
        sender = Sender()
        first = await sender.sending.send([b"one", b"two"])
        waiting = asyncio.create_task(sender.sending.delivered(first))
        await asyncio.sleep(0)
        assert not waiting.done()
        sender.comes_back(a_chunk(b"another's", source=B, seq=1), own(1, b"one", b"two"))
        await waiting
        assert sender.sending.place_of(first) == ((A, 1, 1), 1_001, 1_001)

    asyncio.run(scenario())


def test_what_was_lost_with_an_incarnation_is_not_delivered_also_for_who_asks_later() -> None:
    async def scenario() -> None:
        sender = Sender()
        kept = await sender.sending.send([b"kept"])
        sender.comes_back(own(1))
        lost = await sender.sending.send([b"lost"])
        sender.endpoint.me, sender.endpoint.last_seq = B, 0  # a new incarnation
        sender.sending.skipped("left behind")
        with pytest.raises(MemberEnded, match="is not known"):
            await sender.sending.delivered(lost)
        with pytest.raises(MemberEnded, match="is not known"):
            await sender.sending.delivered(Sent(kept.first, lost.stop))
        await sender.sending.delivered(kept)
        with pytest.raises(MemberEnded, match="is not known"):
            sender.sending.place_of(kept)  # nobody here can say any more where that was

        again = await sender.sending.send([b"again"])
        sender.comes_back(a_chunk(b"again", source=B, seq=1, timestamp=2_000))
        await sender.sending.delivered(again)
        assert sender.sending.place_of(again) == ((B, 1, 1), 2_000, 2_000)

    asyncio.run(scenario())


def test_who_waits_while_the_member_is_left_behind_is_told() -> None:
    async def scenario() -> None:
        sender = Sender()
        sent = await sender.sending.send([b"lost"])
        waiting = asyncio.create_task(sender.sending.delivered(sent))
        await asyncio.sleep(0)
        sender.sending.skipped("left behind")
        with pytest.raises(MemberEnded, match="left behind"):
            await waiting

    asyncio.run(scenario())


def test_what_was_given_up_and_comes_back_after_all_does_not_count_for_what_was_sent_later() -> None:
    async def scenario() -> None:
        sender = Sender()
        await sender.sending.send([b"given up"])
        sender.sending.skipped("the log's member was left behind, this one was not")
        later = await sender.sending.send([b"later"])
        waiting = asyncio.create_task(sender.sending.delivered(later))
        sender.comes_back(own(1))
        await asyncio.sleep(0)
        assert not waiting.done()
        sender.comes_back(own(2))
        await waiting

    asyncio.run(scenario())


def test_of_more_messages_than_are_remembered_the_older_are_remembered_in_pairs() -> None:
    async def scenario() -> None:
        sender = Sender()
        for number in range(MAX_MARKS + 10):
            await sender.sending.send([b"row"])
            sender.comes_back(own(number + 1))
        last = MAX_MARKS + 10
        assert sender.sending.place_of(Sent(0, last)) == ((A, 1, last), 1_001, 1_000 + last)
        assert sender.sending.place_of(Sent(2, 4)) == ((A, 3, 4), 1_003, 1_004)
        assert sender.sending.place_of(Sent(3, 5)) == ((A, 3, 6), 1_003, 1_006)
        assert sender.sending.place_of(Sent(MAX_MARKS, last - 8))[0] == (A, MAX_MARKS + 1, MAX_MARKS + 2)

    asyncio.run(scenario())


def test_what_others_send_behind_staged_records_is_not_taken_for_the_last_of_them() -> None:
    label = encode_label(Label("app", "run", 0, 1, 60))
    payload = pack_rows(plain_rows([b"one", b"two"]), label)
    staged = payload.slice(0, len(payload)).tobytes()
    width = 8 * (len(staged) // 8 + 1)
    frames = [
        *a_message(payload=staged, sender=A, seq=1, timestamp=1_001, body=width, even=True),
        *a_message((b"another's",), sender=A, seq=2, timestamp=1_002, body=width, even=True),
    ]

    async def scenario() -> None:
        sender = Sender()
        first = await sender.sending.send([b"one", b"two"])
        other = await sender.sending.send([b"another's"])
        sender.comes_back(chunk_of(frames))
        assert sender.sending.place_of(first) == ((A, 1, 1), 1_001, 1_001)
        assert sender.sending.place_of(other) == ((A, 2, 2), 1_002, 1_002)

    asyncio.run(scenario())


def test_records_of_an_incarnation_that_has_ended_have_no_place_any_more() -> None:
    async def scenario() -> None:
        sender = Sender()
        before = await sender.sending.send([b"one"])
        sender.comes_back(own(1, b"one"))
        sender.sending.skipped("it was left behind")
        await sender.sending.send([b"two"])
        sender.comes_back(own(2, b"two"))
        with pytest.raises(MemberEnded):
            sender.sending.place_of(before)

    asyncio.run(scenario())
