"""Reading what is committed: what a ledger makes of a range, step by step."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from copy import deepcopy

from intergroup_core.ids import COUNTER_BITS
from intergroup_core.log.body import stated_records
from intergroup_core.log.cut import Cut, OrderCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.places import Piece
from intergroup_core.log.stream import StreamReader
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.replay import follow, ledger_at
from intergroup_core.transaction.transactions import Decision
from pyspark_intergroup.course import Course, Step, cut_before_time, step_of
from pyspark_intergroup.transactions import (
    LostTransaction,
    Transaction,
    TransactionMissing,
    before,
    in_its_view,
    told_reason,
    transaction_of,
)

REMEMBERED = 8
"""Cuts at which the ledger is kept: the beginning and the end of a batch, and of what is planned next."""
MAX_LOST = 10_000
"""Transactions that are known to be lost."""


class Committed:
    """What of one stream is visible where; whoever plans asks again and again about the same few cuts."""

    def __init__(self, *, may_lose: bool = False) -> None:
        self._ledgers: OrderedDict[OrderCut, Ledger] = OrderedDict()
        self._may_lose = may_lose
        """Whether gaps that were given in the place of transactions stay: rows that were planned must not change."""
        self._lost: dict[Decision, str] = {}

    def course(self, reader: StreamReader, start: OrderCut, stop: OrderCut) -> CommittedCourse:
        return CommittedCourse(self, reader, start, stop)

    def ledger(self, reader: StreamReader, cut: OrderCut) -> Ledger:
        """At a cut; it stays as it is, and who goes on from there takes a copy."""
        if cut not in self._ledgers:
            self.remember(cut, ledger_at(reader, cut))
        self._ledgers.move_to_end(cut)
        return self._ledgers[cut]

    def remember(self, cut: OrderCut, ledger: Ledger) -> None:
        self._ledgers[cut] = ledger
        while len(self._ledgers) > REMEMBERED:
            self._ledgers.popitem(last=False)

    def needed(self, reader: StreamReader, cut: OrderCut) -> OrderCut:
        """Before a cut: from where on there are rows that may become visible behind it."""
        since = self.ledger(reader, cut).transactions.open_since(cut.timestamp)
        if since is None or since > cut.timestamp:
            return cut
        return in_its_view(reader, before(since, 1))

    def whole_from(self, reader: StreamReader, start: OrderCut, stop: OrderCut) -> Cut:
        """From where on everything that becomes visible is held, in logs whose beginning was let go of.

        Rows of a transaction may have been staged before that, and be gone, though it was decided behind it. To begin
        there is to begin behind the last of such decisions.
        """
        torn = self._last_torn(reader, start, stop)
        if torn is None:
            return start
        lowest = (torn >> COUNTER_BITS) + 1 << COUNTER_BITS
        return cut_before_time(Course(reader, start, stop), start, stop, lowest, by_time=True)

    def _last_torn(self, reader: StreamReader, start: OrderCut, stop: OrderCut) -> int | None:
        known = self.ledger(reader, start)
        if known.transactions.open_since(start.timestamp) is None:
            return None
        ledger, torn = deepcopy(known), None
        for piece in reader.pieces(start, stop):
            header = piece.entry.header
            since = ledger.transactions.open_since(header.first_timestamp)
            if since is None or since > start.timestamp:
                break
            if header.kind == Kind.VIEW or (header.kind == Kind.DATA and (header.staged or header.states)):
                for decision in follow(ledger, piece):
                    try:
                        transaction_of(reader, decision)
                    except TransactionMissing:
                        torn = int(decision.timestamp)
        return torn

    def lose(self, missing: TransactionMissing, reason: str) -> None:
        """A gap is shown in the place of a transaction from now on."""
        if len(self._lost) >= MAX_LOST:
            del self._lost[next(iter(self._lost))]
        self._lost[missing.decision] = reason

    def visible(self, reader: StreamReader, decisions: list[Decision]) -> tuple[Transaction | LostTransaction, ...]:
        """What decisions make visible; TransactionMissing where that is not held and not known to be lost."""
        found: list[Transaction | LostTransaction] = []
        for decision in decisions:
            reason = self._lost.get(decision)
            if reason is None and self._may_lose:
                reason = told_reason(reader, decision)
            if reason is not None:
                found.append(LostTransaction(decision=decision, reason=reason))
                continue
            transaction = transaction_of(reader, decision)
            if transaction is not None:
                found.append(transaction)
        return tuple(found)


class CommittedCourse(Course):
    """The steps of a range of `rto`: staged rows count for nothing where they lie, but where they become visible."""

    def __init__(self, committed: Committed, reader: StreamReader, start: OrderCut, stop: Cut) -> None:
        super().__init__(reader, start, stop)
        self._committed = committed
        self._from = start
        self._ledger = Ledger()
        self._own = False
        """Whether the ledger is a copy, which is not made where nothing changes it."""

    def steps(self) -> Iterator[Step]:
        self._ledger, self._own = self._committed.ledger(self._reader, self._from), False
        yield from super().steps()
        if isinstance(self._stop, OrderCut):
            self._committed.remember(self._stop, self._ledger)

    def _steps_of(self, piece: Piece) -> Iterator[Step]:
        header = piece.entry.header
        if header.kind != Kind.DATA or not (header.staged or header.states):
            if header.kind == Kind.VIEW:
                self._follow(piece)
            yield step_of(piece)
            return
        for part in _by_message(piece) if header.states else [piece]:
            visible = self._committed.visible(self._reader, self._follow(part))
            yield _plain(step_of(part))._replace(visible=visible)

    def _follow(self, piece: Piece) -> list[Decision]:
        if not self._own:
            self._ledger, self._own = deepcopy(self._ledger), True
        return follow(self._ledger, piece)


def _by_message(piece: Piece) -> Iterator[Piece]:
    """One for each message, so that what any of them makes visible follows right behind it."""
    for at in range(piece.first, piece.stop):
        yield Piece(piece.entry, at, at + 1)


def _plain(step: Step) -> Step:
    """A step without what is staged in it."""
    rows = stated_records(step.piece.chunk(), staged=False)
    return step._replace(rows=rows, nbytes=step.nbytes if rows else 0)
