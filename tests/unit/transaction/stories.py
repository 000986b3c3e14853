"""Statements at their places in one order, for ledgers that follow it."""

from __future__ import annotations

from itertools import count

from intergroup_core.effects import Install
from intergroup_core.ids import MemberId, Timestamp, View, ViewId
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.transactions import Decision
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.labels import Label, encode_label
from intergroup_core.wire.records import LABELLED
from intergroup_core.wire.statements import Proposed, Statement, encode_statement
from tests.builders import START, a_frame
from tests.log_builders import chunk_of

HOUR = 3_600
ANNA, BERT, CLEO = MemberId(10), MemberId(11), MemberId(12)


def a_label(
    version: int = 1, *, run: str = "run", attempt: int = 1, app: str = "query", timeout_s: int = HOUR
) -> Label:
    return Label(app, run, version, attempt, timeout_s)


def labelled(label: Label) -> bytes:
    """The payload of a message with one staged record."""
    packed = encode_label(label)
    padded = packed + bytes(-len(packed) % 4)
    first = (1 | LABELLED << 24).to_bytes(4, "little") + len(packed).to_bytes(4, "little")
    return first + padded + (3).to_bytes(4, "little") + b"row"


class Story:
    """One order, and any number of ledgers that have followed it from its beginning."""

    def __init__(self, *ledgers: Ledger, members: tuple[MemberId, ...] = (ANNA, BERT, CLEO)) -> None:
        self.ledgers = list(ledgers)
        self._seqs = {member: count(1) for member in (ANNA, BERT, CLEO)}
        self.now = START
        self.decisions: list[Decision] = []
        self.view(members, before=members)

    def chunk(self, payload: bytes, sender: MemberId) -> tuple[Chunk, int]:
        self.now += 1_000
        seq = next(self._seqs[sender])
        return chunk_of([a_frame(sender=sender, seq=seq, timestamp=self.now, payload=payload)]), seq

    def message(self, payload: bytes, sender: MemberId = ANNA) -> int:
        """Its seq."""
        chunk, seq = self.chunk(payload, sender)
        for number, ledger in enumerate(self.ledgers):
            decisions = ledger.deliver(chunk)
            if not number:
                self.decisions += decisions
        return seq

    def say(self, statement: Statement, sender: MemberId = ANNA) -> int:
        payload = encode_statement(statement)
        return self.message(payload.slice(0, len(payload)).tobytes(), sender)

    def view(
        self,
        members: tuple[MemberId, ...],
        *,
        before: tuple[MemberId, ...] = (),
        branches: tuple[str, ...] = (),
        transitional: tuple[MemberId, ...] | None = None,
    ) -> None:
        self.now += 1_000
        view = View(id=ViewId(Timestamp(self.now), members[0], 1), members=members)
        together = members if transitional is None else transitional
        behind = tuple((member, 0) for member in before)
        install = Install(view, transitional=together, before=behind, branches=branches)
        for ledger in self.ledgers:
            ledger.enter(install)

    def stage(self, label: Label, sender: MemberId = ANNA) -> Staged:
        seq = self.message(labelled(label), sender)
        return Staged(label.attempt, sender, seq, seq, self.now, self.now, 1, 1)


def a_proposal(*attempts: Staged, version: int = 1, run: str = "run", app: str = "query", nonce: int = 1) -> Proposed:
    return Proposed(nonce, app, run, version, True, HOUR, attempts)
