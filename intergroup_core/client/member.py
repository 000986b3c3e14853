"""A group through the site's agent, without an event loop: for scripts, and for workers that come and go."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.client.following import Delivered, Follower
from intergroup_core.client.sizes import packed_records
from intergroup_core.client.staging import Commit, stage_bodies, staged_of
from intergroup_core.config import Config
from intergroup_core.errors import AgentUnavailable, MemberEnded
from intergroup_core.log.cut import Cut
from intergroup_core.log.cut_codec import cut_of_list, listed_cut
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.labels import Label
from intergroup_core.wire.records import RecordBatch, Rows

LEAVE_SECONDS = 10.0


class ClientMember:
    """A site's member as one process uses it; one thread may send while another reads."""

    def __init__(
        self,
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
    ) -> None:
        self.group, self.delivery = group, delivery
        self._config = config
        self._most_bytes = config.group.max_message_bytes
        self._ack_seconds = config.agent.ack_timeout_s
        self._connection = Connection.to_agent(home, idle_s=config.agent.idle_s, advertise=config.agent.advertise)
        self._reading: Connection | None = None
        self._follower: Follower | None = None
        self._asked: int | None = None
        self._end: int | None = None
        self._left = False
        self._failure: str | None = None
        try:
            opened = self._connection.request(
                Kind.OPEN,
                {"group": group, "delivery": delivery, "sender": sender, "name": name, "config": config.to_mapping()},
            )
            self._handle: int = opened["handle"]
            self.name: str = opened["name"]
            self.id: str = opened["id"]
            self.state: str = opened["state"]
            if reads:
                self._reading = Connection.to_agent(home, start=False)
                if subscription is not None:
                    done = self._reading.request(Kind.COMMITTED, [group, delivery, subscription])
                    start = cut_of_list(done) if done is not None else start
                wanted = [group, delivery, config.log.slow_reader, start is None]
                answer = self._reading.request(Kind.SUBSCRIBE, wanted)
                self._follower = Follower(answer["handle"], answer["path"], answer["entry"], start)
        except BaseException:
            self.close()
            raise

    def joined(self, timeout: float | None = None) -> None:
        """Wait for the first view, in which one that joins as a sender is a sender."""
        answer = self._connection.request(Kind.JOINED, [self._handle], timeout)
        self.id, self.state = answer["id"], answer["state"]

    def members(self) -> dict[str, Any]:
        roster: dict[str, Any] = self._connection.request(Kind.MEMBERS, [self._handle])
        return roster

    def send_many(self, records: Sequence[bytes] | RecordBatch, ack: str = "taken") -> None:
        """Multicast records; returns once they have come as far as asked for."""
        for sizes, data in packed_records(records, self._most_bytes):
            self._connection.request(Kind.SEND, [self._handle, sizes, data, ack, self._ack_seconds])

    def stage(self, label: Label, rows: Rows) -> None:
        """Hand over rows of a transaction, waiting until the group takes them."""
        for body in stage_bodies(self._handle, self.group, label, rows, self._config):
            self._connection.request(Kind.STAGE, body)

    def staged(self, attempt: int, ack: str, seconds: float) -> Staged | None:
        """Until all that was staged since the last call has come so far; None where nothing was."""
        return staged_of(self._connection.request(Kind.STAGED, [self._handle, ack, seconds]), attempt)

    def commit_transaction(self, wanted: Commit) -> bool:
        return bool(self._connection.request(Kind.TRANSACT, wanted.body(self._handle)))

    def abandon_transaction(self, label: Label) -> None:
        self._connection.request(Kind.ABANDON, [self._handle, label.app, label.run, label.version])

    def commit(self, subscription: str, cut: Cut) -> None:
        """A named subscription is done with everything up to a cut; durable once this returns."""
        self._connection.request(Kind.COMMIT, [self.group, self.delivery, subscription, listed_cut(cut)])

    def head(self, level: str = "stable") -> Cut | None:
        """Up to where the stream may be planned; None before anything is there."""
        cut = self._connection.request(Kind.HEAD, [self._handle, level])
        return cut_of_list(cut) if cut is not None else None

    def flush(self, ack: str = "sent") -> None:
        """Wait until all that was accepted has come so far."""
        self._connection.request(Kind.FLUSH, [self._handle, ack, self._ack_seconds])

    def fetch(self, most_bytes: int, timeout: float | None = None) -> list[Delivered]:
        """What is there to read, waiting for the first; nothing once the stream has ended.

        TimeoutError after so many seconds without anything; the next call goes on waiting.
        """
        follower, reading = self._follower, self._reading
        assert follower is not None
        assert reading is not None
        while True:
            taken = follower.take(most_bytes) if follower.has_more else []
            if taken:
                return taken
            if self._end is not None:
                return []
            if self._asked is None:
                self._asked = reading.ask(*follower.question())
            try:
                answer = reading.answer(self._asked, timeout)
            except AgentUnavailable:
                if not self._left:
                    raise
                continue  # another thread left the group
            self._asked = None
            follower.told(answer)
            if answer.get("ended"):
                self._end, self._failure = answer["stop"], answer["failure"]
            self.id = answer.get("id", self.id)

    def check_failure(self) -> None:
        """Raise what ended the member by itself, if something did."""
        if self._failure is not None:
            raise MemberEnded(f"{self.name} is out of group {self.group}: {self._failure}")

    def leave(self, seconds: float = LEAVE_SECONDS) -> None:
        """Let go of the group, after all that was accepted is sent; what was delivered before can still be read."""
        answer = self._connection.request(Kind.CLOSE, [self._handle, seconds])
        if self._follower is not None:
            self._follower.upto(answer["stop"])
        self._end = answer["stop"]
        self._left = True
        self.close()

    def abandon(self, seconds: float) -> None:
        """Leave without reading on."""
        try:
            self._connection.request(Kind.CLOSE, [self._handle, seconds])
        finally:
            self.close()

    def close(self) -> None:
        """Go without a word; the agent notices."""
        self._connection.close()
        if self._reading is not None:
            self._reading.interrupt()
            self._reading.close()
