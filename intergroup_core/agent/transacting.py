"""Brings a client's transaction to be visible: says what is to be said next, and asks the sites that must have it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from random import SystemRandom

from intergroup_core.agent.acknowledging import Acknowledging
from intergroup_core.agent.levels import Wanted
from intergroup_core.agent.reliance import Reliance
from intergroup_core.agent.sending import Sending
from intergroup_core.agent.stream import Stream
from intergroup_core.agent.witnesses import has_all
from intergroup_core.errors import AckUnreached, ConfigError, MemberEnded, TransactionVoid
from intergroup_core.ids import Service
from intergroup_core.transaction.committing import Ask, Committing, Done, Say, Void, Wait
from intergroup_core.transaction.ledger import Ledger, Noted
from intergroup_core.wire.statements import Proposed

LOOK_SECONDS = 0.005
"""How often it is looked whether something was stated, where the log does not grow."""
ANSWER_SECONDS = 0.5
"""How long answers are waited for before it is looked whether another question is due."""
PLACE_SECONDS = 1.0
"""How long sites are asked for the place of a decision before one behind it is looked for: it may be in a part of the
group that they were not in."""
_random = SystemRandom()


class Transacting:
    """Transactions of one group, through one of the site's members."""

    def __init__(self, stream: Stream, sending: Sending) -> None:
        if stream.service is not Service.RTO or stream.reliance is None:
            raise ConfigError(
                f"transactions need one order, and this member takes {stream.service.value}; open the group with "
                "delivery rto"
            )
        self._stream = stream
        self._sending = sending
        self._reliance: Reliance = stream.reliance

    @property
    def _ledger(self) -> Ledger:
        """As the member knows it whose log this site keeps."""
        return self._stream.member.endpoint.ledger

    async def commit(self, wanted: Proposed, ack: Wanted, seconds: float) -> bool:
        """Until the transaction is visible and that has come as far as asked for; whether it was not visible before.

        TransactionVoid where it will never be, AckUnreached where a majority cannot be had in time.
        """
        deadline = time.monotonic() + seconds
        committing = Committing(wanted, lambda: _random.randrange(1, 1 << 62))
        missing: frozenset[int] = frozenset()
        while True:
            if self._stream.ended:
                raise MemberEnded(f"{self._stream.name} went out of group {self._stream.group} during a transaction")
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._too_late(wanted, seconds, missing)
            match committing.next(self._ledger, self._sending.member.endpoint.me):
                case Say(statement):
                    self._sending.member.declare(statement)
                case Ask() as ask:
                    having = await self.having(ask, min(left, ANSWER_SECONDS))
                    missing = ask.sites - having
                    committing.answered(ask, having)
                case Wait():
                    await self._stream.changed(min(left, LOOK_SECONDS))
                case Void(verdict):
                    raise TransactionVoid(
                        f"transaction {wanted.app}/{wanted.version} of group {self._stream.group} is void: "
                        f"{verdict.value}; nothing of it is visible, write it again"
                    )
                case Done(noted, made):
                    began = time.monotonic()
                    try:
                        await self._acknowledged(noted, ack, seconds, spent=seconds - min(left, PLACE_SECONDS))
                        return made
                    except AckUnreached:
                        if time.monotonic() >= deadline or time.monotonic() - began < PLACE_SECONDS:
                            raise
                    committing.unreached()

    async def having(self, ask: Ask, seconds: float) -> frozenset[int]:
        """Which sites have a message; those that have not answered in time are not among them."""
        span = ask.sender, ask.seq, ask.seq
        me = self._reliance.witnesses.key
        deadline = time.monotonic() + seconds
        having = frozenset({me}) if me in ask.sites and self._reliance.has(span) else frozenset()
        others = ask.sites - {me}
        # The first to answer may be a majority of one electorate only: then the rest are asked.
        while (lacking := ask.lacking(having)) and others and (left := deadline - time.monotonic()) > 0:
            answers = await self._reliance.witnesses.have(
                self._reliance.ask, self._stream.group, [span], others, enough=min(lacking, len(others)), seconds=left
            )
            having |= {site for site, known in answers.items() if site in others and has_all(known, [span])}
            others -= having
        if lacking:
            await self._stream.changed(LOOK_SECONDS)
        return having

    async def _acknowledged(self, noted: Noted, ack: Wanted, seconds: float, spent: float) -> None:
        span = noted.sender, noted.seq, noted.seq
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds - spent):
                while not self._reliance.has(span):
                    await self._stream.changed(LOOK_SECONDS)
        except TimeoutError:
            raise AckUnreached(
                f"a transaction of group {self._stream.group} is visible, and this site's log does not have that yet; "
                "commit it again to be sure"
            ) from None
        spent += time.monotonic() - began
        await Acknowledging(self._stream, self._sending, ack, seconds).has(span, noted.timestamp, spent)

    def _too_late(self, wanted: Proposed, seconds: float, missing: Iterable[int]) -> AckUnreached:
        words = self._ledger.holders
        names = sorted(word.name for site in missing if (word := words.word_on(site)) is not None)
        known = self._ledger.transactions
        what = f"transaction {wanted.app}/{wanted.version} of group {self._stream.group}"
        if names:
            return AckUnreached(
                f"{what} was not committed within {seconds:g} s: it needs a majority of the log-holding sites, and "
                f"nothing was heard of {', '.join(names)}; wait until they are back or, if they will not be, let go of "
                f"them with `intergroup holders {self._stream.group} --remove NAME`"
            )
        waiting = f"{len(known.awaiting)} members have not said what they know" if known.awaiting else "it goes on"
        return AckUnreached(
            f"{what} was not committed within {seconds:g} s: {waiting}; commit it again, it counts once"
        )
