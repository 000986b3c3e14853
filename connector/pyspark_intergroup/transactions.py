"""Transactions that became visible, as a stream's logs tell of them: what was proposed, and where its rows lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from intergroup_core.errors import DataLost, LogError, RangeUnavailable
from intergroup_core.ids import MemberId
from intergroup_core.log.choice import Counting
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.manifest import replace_file, told_transaction_name
from intergroup_core.log.stream import StreamReader
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.transaction.transactions import Decision
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.statements import Carried, Proposed, statements_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One whose rows are held here."""

    txn: str
    decision: Decision
    attempts: tuple[Staged, ...]
    start: OrderCut
    stop: OrderCut
    """Between these lie all of its rows, and whatever else was sent meanwhile."""
    nbytes: int

    @property
    def rows(self) -> int:
        """As the proposal states them."""
        return sum(staged.rows for staged in self.attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostTransaction:
    """One whose rows nobody has any more: a gap row is shown in their place."""

    decision: Decision
    reason: str
    rows: int = 1
    nbytes: int = 0


class TransactionMissing(Exception):
    """What is needed to show a transaction is not in this site's logs, or not all of it."""

    def __init__(self, decision: Decision, name: str, start: OrderCut, stop: OrderCut, why: str) -> None:
        super().__init__(f"transaction {name} is not all here: {why}")
        self.decision = decision
        self.name = name
        self.start, self.stop = start, stop
        self.why = why


def lost_transaction(group: str, name: str, why: str) -> DataLost:
    return DataLost(
        f"group {group}: transaction {name} was committed and its rows are not to be had ({why}); set "
        "failOnDataLoss=false to go on with a gap in their place"
    )


def before(timestamp: int, sender: int) -> OrderCut:
    """The point right before a message; nobody has the id 0."""
    return OrderCut(timestamp, MemberId(sender - 1))


def transaction_of(reader: StreamReader, decision: Decision) -> Transaction | None:
    """The transaction that a decision made visible, None where it has no rows.

    TransactionMissing where the proposal, or what lies between its rows, is not held.
    """
    proposed = _proposal(reader, decision)
    txn = f"{proposed.app}/{proposed.version}"
    if not proposed.attempts:
        return None
    first = min((staged.first_timestamp, staged.sender) for staged in proposed.attempts)
    last = max((staged.last_timestamp, staged.sender) for staged in proposed.attempts)
    start, stop = before(*first), OrderCut(last[0], MemberId(last[1]))
    choice, nbytes = Counting(txn, proposed.attempts), 0
    try:
        start = in_its_view(reader, start)
        for piece in reader.pieces(start, stop, check=False):
            if piece.entry.kind is Kind.GAP:
                raise RangeUnavailable("this site's member was out of the group meanwhile")
            if piece.entry.kind is Kind.DATA and choice.may_take(piece):
                nbytes += piece.entry.header.size
    except LogError as error:
        raise TransactionMissing(decision, txn, start, stop, str(error)) from None
    return Transaction(txn=txn, decision=decision, attempts=proposed.attempts, start=start, stop=stop, nbytes=nbytes)


def _proposal(reader: StreamReader, decision: Decision) -> Proposed:
    sender, seq, timestamp = decision.said
    start, stop = before(timestamp, sender), OrderCut(timestamp, sender)
    name = f"that was decided at {decision.timestamp:016x}-{decision.sender:016x}"
    try:
        for piece in reader.pieces(start, stop):
            if piece.entry.kind is Kind.DATA and piece.entry.header.states:
                for message, statement in statements_in(piece.chunk()):
                    if (message.source, message.seq) == (sender, seq):
                        match statement:
                            case Proposed():
                                return statement
                            case Carried(proposed=proposed):
                                return proposed
    except LogError as error:
        raise TransactionMissing(decision, name, start, stop, str(error)) from None
    raise TransactionMissing(decision, name, start, stop, "its proposal is not where it should be")


def in_its_view(reader: StreamReader, cut: OrderCut) -> OrderCut:
    """The same cut with its view, by which it is known from others where the order began again."""
    install = reader.install_at(cut)
    return OrderCut(cut.timestamp, cut.sender, install.view.id) if install is not None else cut


def tell_lost(reader: StreamReader, decision: Decision, reason: str) -> None:
    """Let a gap be given in the place of a transaction from now on, beside the log that has the decision."""
    log, _ = reader.place_of(in_its_view(reader, OrderCut(decision.timestamp, decision.sender)))
    disk = FileDisk(Path(log.where))
    replace_file(disk, told_transaction_name(decision.timestamp, decision.sender), reason.encode())
    disk.sync_names()


def told_reason(reader: StreamReader, decision: Decision) -> str | None:
    """Why a gap was given in the place of a transaction, None where it was not."""
    name = told_transaction_name(decision.timestamp, decision.sender)
    where = next((log.where for log in reader.parts if name in log.names), None)
    return None if where is None else (Path(where) / name).read_text(errors="replace")
