"""When a client may be told that what it sent is as safe as it asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from intergroup_core.agent.levels import Level, Wanted
from intergroup_core.agent.reliance import Reliance
from intergroup_core.agent.requests import ACK_SECONDS
from intergroup_core.agent.sending import Sending, Sent
from intergroup_core.agent.stream import Stream
from intergroup_core.agent.witnesses import has_all
from intergroup_core.endpoint import Endpoint
from intergroup_core.errors import AckUnreached, ConfigError, MemberEnded
from intergroup_core.ids import Service
from intergroup_core.wire.keeping import Span

LOOK_SECONDS = 0.002
"""How often it is looked whether everybody has something, which nothing announces."""


def check_ack(stream: Stream, wanted: Wanted) -> None:
    """Refuse what a stream cannot tell."""
    if stream.service is Service.UU and wanted.level not in (Level.TAKEN, Level.SENT):
        raise ConfigError("delivery uu promises nothing of what it delivers; ask for ack sent, or use rso or rto")


class Acknowledging:
    """Waits for records to come as far as their sender wants."""

    def __init__(self, stream: Stream, sending: Sending, wanted: Wanted, seconds: float | None) -> None:
        self._stream = stream
        self._group = stream.group
        self._sending = sending
        self._wanted = wanted
        self._seconds = ACK_SECONDS if seconds is None and wanted.asks_others else seconds

    async def reached(self, sent: Sent) -> None:
        """Until they have; AckUnreached where that takes longer than it may."""
        wanted = self._wanted
        if wanted.level is Level.TAKEN or sent.first == sent.stop:
            return
        if wanted.level is Level.SENT:
            await self._in_time(self._sending.left())
            return
        began = time.monotonic()
        await self._in_time(self._sending.delivered(sent))
        if wanted.asks_others:
            located = self._sending.place_of(sent)
            await self.has(located.span, located.timestamp, time.monotonic() - began)

    async def has(self, span: Span, timestamp: int, spent: float = 0.0) -> None:
        """Until others have what this site has, so many seconds having been spent on that."""
        if not self._wanted.asks_others:
            return
        began = time.monotonic() - spent
        if self._wanted.level is Level.ALL:
            await self._in_time(self._until(lambda endpoint: endpoint.stable >= timestamp), spent)
            return
        # In `rso` a record may come before what was said about sites at lower timestamps.
        await self._in_time(self._until(lambda endpoint: endpoint.acknowledged >= timestamp), spent)
        if self._stream.reliance is not None:
            assert self._seconds is not None
            await self._held(self._stream.reliance, span, timestamp, self._seconds - (time.monotonic() - began))

    async def _in_time(self, waiting: Coroutine[Any, Any, None], spent: float = 0.0) -> None:
        try:
            async with asyncio.timeout(None if self._seconds is None else self._seconds - spent):
                await waiting
        except TimeoutError:
            raise AckUnreached(
                f"{self._too_late()}: {_NOT_THERE[self._wanted.level]}; see `intergroup status`, or give it more time"
            ) from None

    def _too_late(self) -> str:
        return f"what was sent to group {self._group} has not reached ack={self._wanted} within {self._seconds:g} s"

    async def _until(self, holds: Callable[[Endpoint], bool]) -> None:
        endpoint = self._stream.member.endpoint
        while not holds(endpoint):
            if self._stream.ended:
                raise MemberEnded(f"{endpoint.name} went out of group {self._group} before all had what it sent")
            await self._stream.changed(LOOK_SECONDS)

    async def _held(self, reliance: Reliance, span: Span, timestamp: int, seconds: float) -> None:
        """Until enough log-holding sites say that they have a span."""
        me = reliance.witnesses.key
        at = timestamp if self._wanted.level is Level.MAJORITY else self._stream.member.endpoint.acknowledged
        holders = self._stream.holders_at(at)
        others = {site: name for site, name in holders.items() if site != me}
        needed = self._wanted.others(holders, me)
        if needed > len(others):
            raise AckUnreached(
                f"ack={self._wanted} needs {needed} log-holding sites besides this one, and group {self._group} has "
                f"{len(others)}: start `intergroup agent --keep {self._group}` at more sites, or ask for less"
            )
        answers = await reliance.witnesses.have(
            reliance.ask, self._group, [span], others, enough=needed, seconds=seconds
        )
        have = [site for site, known in answers.items() if site in others and has_all(known, [span])]
        if len(have) < needed:
            lacking = ", ".join(sorted(name for site, name in others.items() if site not in have))
            raise AckUnreached(
                f"{self._too_late()}: {len(have) + (me in holders)} of {len(holders)} log-holding sites say that they "
                f"have it, and nothing was heard of {lacking}; wait until they are back or, if they will not be, let "
                f"go of them with `intergroup holders {self._group} --remove NAME`"
            )


_NOT_THERE = {
    Level.SENT: "it is still at this site",
    Level.DELIVERED: "this site itself has not delivered it",
    Level.MORE: "this site itself has not delivered it",
    Level.MAJORITY: "this site itself has not delivered it",
    Level.ALL: "not every live site has it",
}
