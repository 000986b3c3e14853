"""What a site does because others may rely on its log of a group, and it on theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from intergroup_core.agent.held import Held, spans_of
from intergroup_core.agent.holdership import Holdership
from intergroup_core.agent.levels import Level, Wanted
from intergroup_core.agent.plannable import Frontier, Has, Heads
from intergroup_core.agent.witnesses import Known, Witnesses, has_all
from intergroup_core.effects import Gap
from intergroup_core.ids import MemberId
from intergroup_core.log.reader import LogReader
from intergroup_core.runtime.inbox import Event
from intergroup_core.runtime.ledger_store import LedgerStore
from intergroup_core.runtime.member import Member
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.wire.keeping import HoldingQuery, Span

SAVE_SECONDS = 1.0
"""How often it is tried again to save what could not be saved."""
ANSWER_SECONDS = 0.05
"""How long answers to what a reader asks are waited for; it asks again."""


class Reliance:
    """Of one stream: it says what it holds, answers for it, and asks the others."""

    def __init__(
        self,
        group: str,
        holdership: Holdership,
        witnesses: Witnesses,
        ask: Callable[[HoldingQuery], None],
        ledgers: LedgerStore,
    ) -> None:
        self.group = group
        self._holdership = holdership
        self.witnesses = witnesses
        self.ask = ask
        self._ledgers = ledgers
        self._saved = 0
        self._saving: asyncio.TimerHandle | None = None
        """Waits to save what could not be saved; until then this site says of nothing that it has it."""
        self._unstated = b""
        """What only this site remembers, and it was last seen to that it is stated."""
        self._held = Held()
        self.lacking: dict[Wanted, str] = {}
        """By levels that count sites, what a head waited for when it was last asked for; empty where it did not."""
        self.skipped: Callable[[], None] = lambda: None
        """Called when the stream of a site that others rely on skips something."""
        witnesses.holds(group, self._held)

    @property
    def holds(self) -> bool:
        """Whether others may rely on this site."""
        return self._holdership.holds

    def bind(self, member: Member, older: Sequence[LogReader]) -> None:
        """The stream's own member, and the logs that it had before."""
        self._holdership.own = member
        self._held.withheld = lambda: self._saving is not None or bool(member.endpoint.ledger.unstated)
        self.has_older(older)

    def has_older(self, logs: Sequence[LogReader]) -> None:
        """What older logs of the stream have counts as well, also what was fetched into them."""
        self._held.older = [spans for log in logs if (spans := spans_of(log))]
        self.witnesses.kept()

    def begin(self, member: Member) -> None:
        self._holdership.begin(member)

    def end(self, member: Member) -> None:
        """The stream's member is about to leave."""
        self._holdership.end(member)

    def closed(self) -> None:
        self._holdership.forget()
        if self._saving is not None:
            self._saving.cancel()
        self.witnesses.ended(self.group, self._held)

    def appended(self, entry: int, event: Event) -> None:
        self._held.appended(entry, event)
        if isinstance(event, Gap) and self.holds:
            # What the old incarnation said may be lost with it; the new one is not to speak in the midst of this.
            asyncio.get_running_loop().call_soon(self._say_again)
            self.skipped()

    def _say_again(self) -> None:
        if self.holds:
            self._holdership.say_again()

    def kept(self, stop: int, ledger: Ledger) -> None:
        """Entries below are kept; what was stated in them is remembered."""
        self._held.kept(stop)
        if ledger.version != self._saved:
            self._saved = ledger.version
            self._save(ledger)
            word = ledger.holders.word_on(self.witnesses.key)
            if self.holds and word is not None and not word.holds:
                # Another stream of this site has ended, or somebody took it for gone.
                asyncio.get_running_loop().call_soon(self._say_again)
            elif self.holds and ledger.unstated not in (b"", self._unstated):
                self._unstated = ledger.unstated
                # Only one that sends can state it, and until then nobody counts this site.
                asyncio.get_running_loop().call_soon(self._say_again)
        # Last: what a site says that it has, it must not forget.
        self.witnesses.kept()

    def _save(self, ledger: Ledger) -> None:
        if self._saving is not None:
            self._saving.cancel()
            self._saving = None
        if not self._ledgers.save(self.group, ledger.remembered()):
            self._saving = asyncio.get_running_loop().call_later(SAVE_SECONDS, self._save_again, ledger)

    def _save_again(self, ledger: Ledger) -> None:
        self._save(ledger)
        if self._saving is None:
            self.witnesses.kept()

    def has(self, span: Span) -> bool:
        """Whether this site's own log has it."""
        return self._held.within([span]) == (span,)

    async def survey(self, heads: Heads, level: Wanted, kept: int, frontier: Frontier, ledger: Ledger) -> None:
        """Ask log-holding sites what they have of what waits for them at a level, and go on as far as that goes."""
        me = self.witnesses.key
        spans = heads.spans(level, kept)
        holders = ledger.holders.at(frontier.here)
        needed = level.others(holders, me)
        answers: dict[int, Known] = {}
        if spans and 0 < needed <= len(holders.keys() - {me}):
            answers = await self.witnesses.have(
                self.ask, self.group, spans, holders.keys() - {me}, enough=needed, seconds=ANSWER_SECONDS, waits=False
            )
        heads.count(level, kept, frontier, _counting(answers, level, me, ledger, frontier.here))
        others = {site: name for site, name in holders.items() if site != me}
        lacking = sorted(name for site, name in others.items() if not has_all(answers.get(site, {}), spans))
        self.lacking[level] = _waits_for(needed, len(others), lacking) if heads.waits(level) and spans else ""


def _waits_for(needed: int, others: int, lacking: Sequence[str]) -> str:
    """What a reader may be told whose head stays where it is; nothing where it is no site that keeps it there."""
    if others < needed:
        return f"{needed} log-holding sites besides this one must have what comes next, and there are {others}"
    if not lacking:
        return ""
    return f"{needed} of {others} log-holding sites must have what comes next; these lack it: {', '.join(lacking)}"


def _counting(answers: dict[int, Known], level: Wanted, me: int, ledger: Ledger, now: int) -> Has:
    """Of a majority those are counted that held the log then; otherwise whoever holds it now."""

    def has(source: MemberId, seq: int, timestamp: int) -> bool:
        holders = ledger.holders.at(timestamp if level.level is Level.MAJORITY else now)
        having = [
            site
            for site, known in answers.items()
            if site in holders and source in known and known[source][0] <= seq <= known[source][1]
        ]
        return len(having) >= level.others(holders, me)

    return has
