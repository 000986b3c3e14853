"""What a member says of its ledger by itself: what it knows where all are asked, and what only its site remembers."""

from __future__ import annotations

from dataclasses import replace

from intergroup_core.effects import Install
from intergroup_core.ids import MemberId
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.wire.statements import Holding, Restated, Statement


class Restating:
    """One member's, through all of its incarnations."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._said = b""
        """What was said last of what only this site remembered."""
        self._installed = False
        """Whether this incarnation has seen a view."""

    def enter(self, install: Install) -> Install:
        """A view at its place, with what the ledger adds to it."""
        first, self._installed = not self._installed, True
        return self._ledger.enter(install, first=first)

    def leave_stream(self) -> None:
        """A new incarnation follows another stream."""
        self._installed = False
        self._said = b""
        self._ledger.leave_stream()

    def worded(self, statement: Statement, timestamp: int) -> Statement:
        """What a member is to declare: who says that it holds the log says since when, as far as that is known."""
        if isinstance(statement, Holding) and statement.holds and not statement.since:
            return replace(statement, since=self._ledger.holders.held_since(statement.site, timestamp))
        return statement

    def due(self, me: MemberId) -> list[Statement]:
        """What a sender has to say now; it counts as said."""
        known = self._known(me)
        # Before it: where all have said what they know, what candidates say is there, too.
        return [*self._ledger.carries(), Restated(known)] if known else []

    def _known(self, me: MemberId) -> bytes:
        ledger = self._ledger
        if ledger.owes:
            ledger.owes = False
            return ledger.remembered() if me in ledger.transactions.awaiting else b""
        if ledger.unstated != self._said:
            self._said = ledger.unstated
            return self._said
        return b""
