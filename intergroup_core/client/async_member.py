"""A group through the site's agent, for code on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from os import PathLike
from typing import Any

from intergroup_core.client.async_connection import AsyncConnection
from intergroup_core.client.channel import Kind
from intergroup_core.client.following import Delivered, Follower
from intergroup_core.client.sizes import packed_records
from intergroup_core.client.staging import Commit, stage_bodies, staged_of
from intergroup_core.config import Config
from intergroup_core.errors import IntergroupError, LocalProtocolError, MemberEnded
from intergroup_core.log.cut import Cut
from intergroup_core.log.cut_codec import cut_of_list, listed_cut
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.labels import Label
from intergroup_core.wire.records import RecordBatch, Rows


class AsyncClientMember:
    """A site's member as one process uses it."""

    def __init__(
        self,
        connection: AsyncConnection,
        group: str,
        delivery: str,
        config: Config,
        opened: dict[str, Any],
        subscribed: dict[str, Any] | None,
        start: Cut | str | None,
    ) -> None:
        self.group, self.delivery = group, delivery
        self._config = config
        self._most_bytes = config.group.max_message_bytes
        self._ack_seconds = config.agent.ack_timeout_s
        self.name: str = opened["name"]
        self.id: str = opened["id"]
        self.state: str = opened["state"]
        self._connection = connection
        self._handle: int = opened["handle"]
        self._number: int | None = None
        self._follower: Follower | None = None
        if subscribed is not None:
            self._number = subscribed["handle"]
            self._follower = Follower(subscribed["handle"], subscribed["path"], subscribed["entry"], start)
        self._asked: asyncio.Task[Any] | None = None
        self._end: int | None = None
        self._failure: str | None = None
        self._left = False

    @classmethod
    async def opened(
        cls,
        group: str,
        *,
        delivery: str,
        sender: bool,
        name: str | None,
        config: Config,
        home: str | PathLike[str] | None = None,
        reads: bool = True,
        start: Cut | str | None = None,
        subscription: str | None = None,
    ) -> AsyncClientMember:
        connection = await AsyncConnection.to_agent(home, idle_s=config.agent.idle_s, advertise=config.agent.advertise)
        try:
            opened = await connection.request(
                Kind.OPEN,
                {"group": group, "delivery": delivery, "sender": sender, "name": name, "config": config.to_mapping()},
            )
            subscribed = None
            if reads:
                if subscription is not None:
                    done = await connection.request(Kind.COMMITTED, [group, delivery, subscription])
                    start = cut_of_list(done) if done is not None else start
                wanted = [group, delivery, config.log.slow_reader, start is None]
                subscribed = await connection.request(Kind.SUBSCRIBE, wanted)
            return cls(connection, group, delivery, config, opened, subscribed, start)
        except BaseException:
            await connection.close()
            raise

    async def joined(self) -> None:
        answer = await self._connection.request(Kind.JOINED, [self._handle])
        self.id, self.state = answer["id"], answer["state"]

    async def members(self) -> dict[str, Any]:
        roster: dict[str, Any] = await self._connection.request(Kind.MEMBERS, [self._handle])
        return roster

    async def send_many(self, records: Sequence[bytes] | RecordBatch, ack: str = "taken") -> None:
        self._check_here()
        for sizes, data in packed_records(records, self._most_bytes):
            await self._connection.request(Kind.SEND, [self._handle, sizes, data, ack, self._ack_seconds])

    async def stage(self, label: Label, rows: Rows) -> None:
        """Hand over rows of a transaction, waiting until the group takes them."""
        self._check_here()
        for body in stage_bodies(self._handle, self.group, label, rows, self._config):
            await self._connection.request(Kind.STAGE, body)

    async def staged(self, attempt: int, ack: str, seconds: float) -> Staged | None:
        """Until all that was staged since the last call has come so far; None where nothing was."""
        return staged_of(await self._connection.request(Kind.STAGED, [self._handle, ack, seconds]), attempt)

    async def commit_transaction(self, wanted: Commit) -> bool:
        return bool(await self._connection.request(Kind.TRANSACT, wanted.body(self._handle)))

    async def abandon_transaction(self, label: Label) -> None:
        await self._connection.request(Kind.ABANDON, [self._handle, label.app, label.run, label.version])

    async def commit(self, subscription: str, cut: Cut) -> None:
        """A named subscription is done with everything up to a cut; durable once this returns."""
        await self._connection.request(Kind.COMMIT, [self.group, self.delivery, subscription, listed_cut(cut)])

    async def flush(self, ack: str = "sent") -> None:
        self._check_here()
        await self._connection.request(Kind.FLUSH, [self._handle, ack, self._ack_seconds])

    async def fetch(self, most_bytes: int) -> list[Delivered]:
        """What is there to read, waiting for the first; nothing once the stream has ended."""
        follower = self._follower
        assert follower is not None
        while True:
            taken = follower.take(most_bytes) if follower.has_more else []
            if taken:
                return taken
            if self._end is not None:
                return []
            await self._wait(follower)

    async def _wait(self, follower: Follower) -> None:
        """A reader that is cancelled asks no second time: the answer is taken by the next."""
        if self._asked is None:
            self._asked = asyncio.create_task(self._connection.request(*follower.question()))
        try:
            answer = await asyncio.shield(self._asked)
        except IntergroupError:
            self._asked = None
            if self._end is None:
                raise
            return
        self._asked = None
        follower.told(answer)
        if answer.get("ended"):
            self._end, self._failure = answer["stop"], answer["failure"]
        self.id = answer.get("id", self.id)

    def check_failure(self) -> None:
        """Raise what ended the member by itself, if something did."""
        if self._failure is not None:
            raise MemberEnded(f"{self.name} is out of group {self.group}: {self._failure}")

    def discard(self) -> None:
        """Nothing is read any more."""
        self._follower = None

    async def leave(self, seconds: float) -> None:
        """Let go of the group, after all that was accepted is sent; what was delivered before can still be read."""
        if self._left:
            return
        self._left = True
        try:
            answer = await self._connection.request(Kind.CLOSE, [self._handle, seconds])
            if self._follower is not None:
                self._follower.upto(answer["stop"])
            self._end = answer["stop"]
            if self._number is not None:
                await self._connection.request(Kind.CLOSE, [self._number, 0])  # it wakes a reader
        finally:
            await self._connection.close()

    def _check_here(self) -> None:
        if self._left:
            raise LocalProtocolError(f"member {self.name} has left group {self.group}; join it again to send")
