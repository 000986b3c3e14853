"""How a transaction is brought to be visible: what its site says and asks next, by what has been stated so far.

Nothing is taken for granted from one step to the next. Views may change meanwhile, others may settle what this one
began, and a statement may be lost with the incarnation that made it; then it is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.transaction.ledger import Ledger, Noted
from intergroup_core.transaction.transactions import MAX_PENDING, Pending, Transactions, Verdict, is_majority
from intergroup_core.wire.labels import key_of
from intergroup_core.wire.statements import Decided, Established, Gathering, Proposed

_FINAL = frozenset({Verdict.SUPERSEDED, Verdict.LATE, Verdict.LACKING})
"""After which proposing the same once more is of no use."""


class Say(NamedTuple):
    """Make a statement, through the member."""

    statement: Gathering | Established | Proposed | Decided


class Ask(NamedTuple):
    """Find out which sites have a message, until a majority of each of these say so."""

    sender: MemberId
    seq: int
    electorates: tuple[frozenset[int], ...]

    @property
    def sites(self) -> frozenset[int]:
        return frozenset().union(*self.electorates)

    def is_answered_by(self, sites: Collection[int]) -> bool:
        return all(is_majority(sites, electorate) for electorate in self.electorates)

    def lacking(self, sites: frozenset[int]) -> int:
        """How many more must have it, at least."""
        return max((len(each) // 2 + 1 - len(each & sites) for each in self.electorates), default=0)


class Wait(NamedTuple):
    """For what was said to be delivered, or for the others."""


class Done(NamedTuple):
    """It is visible."""

    noted: Noted
    """Where that was decided, or a place behind it: whoever has this has the decision."""
    made: bool
    """Whether what was proposed here is what became visible, and not what others had proposed."""


class Void(NamedTuple):
    """It will never be."""

    verdict: Verdict


Step = Say | Ask | Wait | Done | Void


@dataclass(frozen=True, slots=True)
class _Said:
    """A statement under way."""

    statement: Gathering | Established | Proposed | Decided
    member: MemberId


class Committing:
    """One transaction's way."""

    def __init__(self, wanted: Proposed, nonce: Callable[[], int]) -> None:
        self._wanted = wanted
        self._app = key_of(wanted.app)
        self._nonce = nonce
        self._said: _Said | None = None
        self._probe: Noted | None = None
        """A place of which others were, or are to be, asked whether they have it."""
        self._in_vain = False
        """Whether too few had the place that was asked for last: some may have come behind it."""
        self._answer: tuple[Ask, frozenset[int]] | None = None
        self._proposal: Noted | None = None
        self._confirming = False
        """Whether the statement under way is to stand behind the decision."""
        self._behind: Noted | None = None
        """Where it does."""
        self._elsewhere = False
        """Whether others may know of the decision by another place than its own."""

    def next(self, ledger: Ledger, me: MemberId) -> Step:
        """What to do now."""
        if self._said is not None:
            noted = ledger.noted(self._said.statement.nonce)
            if noted is None and self._said.member == me:
                return Wait()
            verdict = self._settle(ledger, noted)
            if verdict is not None:
                return Void(verdict)
        known = ledger.transactions
        if known.is_committed(self._app, self._wanted.version):
            return self._conclude(ledger, me)
        if not known.established:
            return self._establish(ledger, me)
        candidate = self._candidate(known)
        if candidate is not None:
            return self._decide(ledger, me, *candidate)
        return self._say(ledger, me, replace(self._wanted, nonce=self._nonce()))

    def answered(self, ask: Ask, sites: Collection[int]) -> None:
        """These sites have what was asked for, as far as it is known by now."""
        self._answer = ask, frozenset(sites)
        self._in_vain = not ask.is_answered_by(sites)

    def unreached(self) -> None:
        """Too few have the place at which it was done."""
        self._elsewhere, self._behind = True, None

    def unsaid(self, ledger: Ledger) -> None:
        """The statement of the last step could not be made."""
        if self._said is not None:
            ledger.forget(self._said.statement.nonce)
            self._said = None

    def _settle(self, ledger: Ledger, noted: Noted | None) -> Verdict | None:
        """What was said has been delivered, or is lost; a verdict after which there is nothing more to do."""
        assert self._said is not None
        statement, self._said = self._said.statement, None
        ledger.forget(statement.nonce)
        if noted is None:
            return None
        if isinstance(statement, Gathering):
            self._probe, self._in_vain = noted, False
            self._behind = noted if self._confirming and ledger.transactions.established else None
            self._confirming = False
        if isinstance(statement, Proposed) and noted.verdict is Verdict.TAKEN:
            self._proposal = noted
        if isinstance(statement, Proposed) and noted.verdict in _FINAL:
            return noted.verdict
        return None

    def _conclude(self, ledger: Ledger, me: MemberId) -> Step:
        """It is visible, whoever said so: others decide what keeps them from proposing."""
        decided = ledger.decision_on(self._proposal) if self._proposal is not None else None
        if decided is not None and not self._elsewhere:
            return Done(decided, made=True)
        if self._behind is not None:
            return Done(self._behind, made=decided is not None)
        # Where it was decided may not be known here, or may be in a part that the others were not in. In one that is
        # established all know of it, and whoever has what is said there has that.
        if not ledger.transactions.established:
            return self._establish(ledger, me)
        self._confirming = True
        return self._say(ledger, me, Gathering(self._nonce()))

    def _establish(self, ledger: Ledger, me: MemberId) -> Step:
        known = ledger.transactions
        if known.gathered and known.awaiting:
            return Wait()
        probe = self._probe_behind(known.settled, me) if known.gathered else None
        if probe is None:
            return self._say(ledger, me, Gathering(self._nonce()))
        ask = Ask(probe.sender, probe.seq, known.electorates(probe.timestamp, ledger.holders))
        sites = self._sites_for(ask)
        if sites is None:
            return ask
        return self._say(ledger, me, Established(self._nonce(), Timestamp(probe.timestamp), tuple(sorted(sites))))

    def _candidate(self, known: Transactions) -> tuple[bytes, Pending] | None:
        """What has to be decided first: the application's own, what is left of an earlier era, whose proposer may be
        gone, or any where there are too many."""
        pending = known.pending()
        own = next((each for each in pending if each[0] == self._app), None)
        left = next((each for each in pending if each[1].accepted != each[1].timestamp), None)
        return own or left or (pending[0] if len(pending) >= MAX_PENDING else None)

    def _decide(self, ledger: Ledger, me: MemberId, app: bytes, pending: Pending) -> Step:
        known = ledger.transactions
        sender, seq, at = pending.proposer, pending.seq, pending.timestamp
        probe = self._probe_behind(pending.accepted, me)
        if probe is not None:
            sender, seq, at = probe.sender, probe.seq, probe.timestamp
        elif pending.accepted != pending.timestamp or self._in_vain:
            return self._say(ledger, me, Gathering(self._nonce()))
        electorates = known.electorate(at, ledger.holders), known.electorate_of(pending, at, ledger.holders)
        ask = Ask(sender, seq, electorates)
        sites = self._sites_for(ask)
        if sites is None:
            return ask
        return self._say(
            ledger,
            me,
            Decided(
                self._nonce(),
                app,
                pending.version,
                pending.proposer,
                pending.seq,
                Timestamp(at),
                tuple(sorted(sites)),
            ),
        )

    def _probe_behind(self, place: int, me: MemberId) -> Noted | None:
        """A place of this member's own that others have only if they know all that was stated before another."""
        probe = self._probe
        if probe is None or self._in_vain or probe.sender != me or probe.timestamp < place:
            return None
        return probe

    def _sites_for(self, ask: Ask) -> frozenset[int] | None:
        """Who answered, where that was asked already; once used it is asked anew."""
        if self._answer is None:
            return None
        (asked, sites), self._answer = self._answer, None
        return sites if (asked.sender, asked.seq) == (ask.sender, ask.seq) and ask.is_answered_by(sites) else None

    def _say(self, ledger: Ledger, me: MemberId, statement: Gathering | Established | Proposed | Decided) -> Say:
        ledger.expect(statement.nonce)
        self._said = _Said(statement, me)
        return Say(statement)
