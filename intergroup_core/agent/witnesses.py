"""Sites that say what they have in their logs: this one when it is asked, and others to this one.

Only those who are named in a question answer it, a few at a time, so that a large group does not answer all at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import SystemRandom

from intergroup_core.agent.held import Held
from intergroup_core.ids import MemberId, SiteId, group_tag
from intergroup_core.wire.keeping import MAX_ASKED, MAX_SPANS, HoldingAnswer, HoldingQuery, Span

ASK_SECONDS = 0.1
"""Between two times of asking: a question or an answer may be lost."""
PATIENCE_SECONDS = 2.0
"""How long a question waits here for what is not there yet; who still wants to know asks again."""
MAX_PENDING = 1_024

Reply = Callable[[HoldingAnswer], None]
Known = dict[MemberId, tuple[int, int]]


@dataclass(slots=True)
class _Pending:
    query: HoldingQuery
    reply: Reply
    until: float


@dataclass(slots=True)
class _Asked:
    """A question of this site's, and what was answered so far."""

    answers: dict[int, Known] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)


class Witnesses:
    """What sites say of spans of senders' messages."""

    def __init__(self, me: SiteId, key: int) -> None:
        self._me = me
        self.key = key
        """By which this site is known to others."""
        self._held: dict[int, list[Held]] = {}
        self._pending: dict[tuple[SiteId, int], _Pending] = {}
        self._asked: dict[int, _Asked] = {}

    # When this site is asked

    def holds(self, group: str, held: Held) -> None:
        """A log of a group grows here."""
        self._held.setdefault(group_tag(group), []).append(held)

    def ended(self, group: str, held: Held) -> None:
        logs = self._held[group_tag(group)]
        logs.remove(held)
        if not logs:
            del self._held[group_tag(group)]

    def asked(self, query: HoldingQuery, reply: Reply) -> None:
        """Answer at once, or when all of it is here."""
        if self.key not in query.asked or query.group not in self._held:
            return
        if not query.waits or self._has(query):
            reply(self._answer(query))
        elif len(self._pending) < MAX_PENDING or (query.site, query.serial) in self._pending:
            self._pending[query.site, query.serial] = _Pending(query, reply, time.monotonic() + PATIENCE_SECONDS)

    def kept(self) -> None:
        """More is kept in some log."""
        if not self._pending:
            return
        now = time.monotonic()
        for key, pending in list(self._pending.items()):
            if self._has(pending.query):
                pending.reply(self._answer(pending.query))
                del self._pending[key]
            elif now > pending.until:
                del self._pending[key]

    def _has(self, query: HoldingQuery) -> bool:
        return any(held.within(query.spans) == query.spans for held in self._held.get(query.group, ()))

    def _answer(self, query: HoldingQuery) -> HoldingAnswer:
        most: tuple[Span, ...] = ()
        for held in self._held[query.group]:
            most = max(most, held.within(query.spans), key=_length)
        return HoldingAnswer(
            site=self._me, serial=query.serial, group=query.group, holder=self.key, spans=most[:MAX_SPANS]
        )

    # When this site asks

    def told(self, answer: HoldingAnswer) -> None:
        asked = self._asked.get(answer.serial)
        if asked is not None:
            asked.answers[answer.holder] = {source: (first, last) for source, first, last in answer.spans}
            asked.news.set()

    async def have(
        self,
        say: Callable[[HoldingQuery], None],
        group: str,
        spans: Sequence[Span],
        sites: Collection[int],
        *,
        enough: int,
        seconds: float,
        waits: bool = True,
    ) -> dict[int, Known]:
        """What sites say that they have of spans, until so many have all of it or the time is over.

        Where it does not wait for all of it, those that have answered are enough.
        """
        deadline = time.monotonic() + seconds
        serial = SystemRandom().randrange(1 << 62)
        asked = self._asked[serial] = _Asked()
        turns = _turns(list(sites))

        def done() -> set[int]:
            return {site for site, known in asked.answers.items() if not waits or has_all(known, spans)}

        try:
            while (left := deadline - time.monotonic()) > 0 and len(done()) < enough:
                turn = {site for site in next(turns) if site not in done()}
                if turn:
                    say(self._query(serial, group, sorted(turn), spans, waits=waits))
                    await _until(asked.news, partial(_is_over, done, enough, turn), left)
            return asked.answers
        finally:
            del self._asked[serial]

    def _query(
        self, serial: int, group: str, sites: Sequence[int], spans: Sequence[Span], *, waits: bool
    ) -> HoldingQuery:
        return HoldingQuery(
            site=self._me,
            serial=serial,
            group=group_tag(group),
            asked=tuple(sites),
            spans=tuple(spans[:MAX_SPANS]),
            waits=waits,
        )


def _is_over(done: Callable[[], set[int]], enough: int, turn: set[int]) -> bool:
    """Whether enough have answered, or all whose turn it is."""
    return len(done()) >= enough or done() >= turn


async def _until(news: asyncio.Event, holds: Callable[[], bool], seconds: float) -> None:
    """Until something holds after news, or it is time to ask again."""
    try:
        async with asyncio.timeout(min(seconds, ASK_SECONDS)):
            while not holds():
                news.clear()
                await news.wait()
    except TimeoutError:
        pass


def has_all(known: Known, spans: Sequence[Span]) -> bool:
    """Whether what a site has is all of that."""
    return all(source in known and known[source] == (first, last) for source, first, last in spans)


def _length(spans: tuple[Span, ...]) -> int:
    return sum(last - first + 1 for _, first, last in spans)


def _turns(sites: list[int]) -> Iterator[list[int]]:
    """Whom to ask next, again and again, a few at a time."""
    while True:
        for start in range(0, max(1, len(sites)), MAX_ASKED):
            yield sites[start : start + MAX_ASKED]
