"""A member in the process that uses it, with no agent between."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from os import PathLike

from intergroup_core.config import Config
from intergroup_core.errors import ConfigError, LocalProtocolError, MemberEnded
from intergroup_core.ids import Service, format_member
from intergroup_core.log.cut import Cut
from intergroup_core.runtime.clock import now
from intergroup_core.runtime.inbox import Event as Delivered
from intergroup_core.runtime.opening import open_live_member
from intergroup_core.runtime.roster import Roster, roster_of
from intergroup_core.wire.records import RecordBatch

ACKS = ("taken", "sent")
"""What a member without a log can tell of a record."""


class OwnMember:
    """Drives a member on the loop of those who use it."""

    def __init__(
        self,
        group: str,
        *,
        service: Service,
        sender: bool,
        name: str,
        config: Config,
        home: str | PathLike[str] | None,
        reads: bool,
    ) -> None:
        self.member = open_live_member(
            group=group,
            name=name,
            service=service,
            config=config,
            sender=sender,
            home=home,
            on_event=None if reads else _drop,
        )
        self.group, self.name, self.delivery = group, name, service.value
        self._sender = sender
        self.member.start()

    @property
    def id(self) -> str:
        return format_member(self.member.endpoint.me)

    @property
    def state(self) -> str:
        return self.member.endpoint.state

    async def joined(self) -> None:
        await self.member.installed(as_sender=self._sender)

    async def members(self) -> Roster:
        return roster_of(self.member.endpoint, now())

    async def send_many(self, records: Sequence[bytes] | RecordBatch, ack: str = "taken") -> None:
        _check(ack)
        await self.member.send_many(records)
        if ack == "sent":
            await self.member.sent()

    async def flush(self, ack: str = "sent") -> None:
        _check(ack)
        await self.member.sent()

    async def commit(self, subscription: str, cut: Cut) -> None:
        """A member without a log has no subscriptions."""
        raise LocalProtocolError("a member without a log has no subscriptions: leave out in_process=True")

    async def fetch(self, most_bytes: int) -> list[Delivered]:
        await self.member.inbox.wait()
        return self.member.inbox.take_ready(most_bytes)

    def check_failure(self) -> None:
        self.member.check_failure()

    def discard(self) -> None:
        self.member.inbox.discard()

    async def leave(self, seconds: float) -> None:
        self.member.begin_to_leave()
        try:
            async with asyncio.timeout(seconds):
                await self.member.ended()
        except TimeoutError:
            unsent = self.member.endpoint.unsent_bytes
            rest = f", and {unsent} bytes that were accepted are not sent" if unsent else ""
            raise MemberEnded(
                f"{self.name} went from group {self.group} without being let go within {seconds:g} s{rest}"
            ) from None
        finally:
            self.member.close()


def _check(ack: str) -> None:
    if ack not in ACKS:
        raise ConfigError(
            f"ack is {ack!r}; a member without a log can tell of {' and '.join(ACKS)} only: leave out in_process=True"
        )


def _drop(event: Delivered) -> None:
    """The application of a member that only sends."""
