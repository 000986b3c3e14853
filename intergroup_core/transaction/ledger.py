"""What a group's ordered statements add up to: the same at all who delivered the same; newcomers are handed it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import msgpack

from intergroup_core.effects import Install
from intergroup_core.ids import MAX_TIMESTAMP, MemberId, Timestamp
from intergroup_core.transaction.codec import listed, transactions_of
from intergroup_core.transaction.holders import Holder, Holders
from intergroup_core.transaction.transactions import Decision, Transactions, Verdict, is_repair
from intergroup_core.wire.chunk import Chunk, Message
from intergroup_core.wire.fields import BadBody, array, integer, site_key, text, timestamp, truth, unpacked
from intergroup_core.wire.glance import is_plain, labels_in
from intergroup_core.wire.labels import key_of
from intergroup_core.wire.statements import (
    MAX_SECONDS,
    Abandoned,
    Carried,
    Decided,
    Established,
    Gathering,
    Holding,
    Proposed,
    Restated,
    Statement,
    statements_in,
)

VERSION = 1
WITH_TRANSACTIONS = 2
MAX_KEPT = 4
"""Proposals whose content is remembered, which may be long: not more than these can be undecided."""
MAX_EXPECTED = 1_024
"""Own statements that somebody waits for."""


class Noted(NamedTuple):
    """Where a statement came to stand, and what became of it."""

    sender: MemberId
    seq: int
    timestamp: int
    verdict: Verdict


class Ledger:
    """One member's; `version` grows with every change that a site must remember."""

    def __init__(self) -> None:
        self.holders = Holders()
        self.transactions = Transactions()
        self.version = 0
        self.unstated = b""
        """What this site remembers and nobody in the group has told it: to be stated by whoever it sends through."""
        self.owes = False
        """Whether all in the view are to say what they know, and this member has not."""
        self._expected: dict[int, Noted | None] = {}
        self._decided: dict[tuple[MemberId, int], Noted] = {}
        """Where proposals were decided, the last ones, by their senders and seqs."""
        self._proposed: dict[tuple[MemberId, int], Proposed] = {}
        """What the last proposals said that were candidates where this member was."""

    # In order

    def deliver(self, chunk: Chunk) -> list[Decision]:
        """Messages at their place in the order; what became visible with them."""
        if is_plain(chunk):
            return []
        decisions: list[Decision] = []
        staged = {message.seq: message for message in labels_in(chunk)}
        stated = {message.seq: (message, statement) for message, statement in statements_in(chunk)}
        for seq in sorted(staged.keys() | stated.keys()):
            if seq in staged:
                self.transactions.stage(staged[seq], chunk.source)
            else:
                decisions += self._state(*stated[seq])
        return decisions

    def _state(self, message: Message, statement: Statement) -> list[Decision]:
        at, sender, known = message.timestamp, message.source, self.transactions
        decisions: list[Decision] = []
        match statement:
            case Holding(site=site, name=name, holds=holds, seconds=seconds, since=since):
                self._say(Holder(site, name, holds, at, seconds, Timestamp(since or at)))
                return []
            case Restated(ledger=stated):
                words, transactions = _known(stated)
                self._say_all(words, at)
                if transactions is not None:
                    decisions = known.restated(transactions, sender, at)
                if self.unstated and self._covers(self.unstated):
                    self.unstated = b""
                verdict, nonce = Verdict.TAKEN, 0
            case Gathering(nonce=nonce):
                self.owes = known.gather(at) or self.owes
                verdict = Verdict.TAKEN
            case Established(nonce=nonce):
                verdict = known.establish(statement, at, self.holders)
            case Proposed(nonce=nonce):
                verdict = known.propose(statement, at, sender, message.seq, self.holders)
                if verdict is Verdict.TAKEN:
                    self._keep((sender, message.seq), statement)
            case Decided(nonce=nonce):
                verdict, decisions = known.decide(statement, at, sender, self.holders)
            case Abandoned():
                known.abandon(statement)
                verdict, nonce = Verdict.TAKEN, 0
            case Carried(proposer=proposer, seq=seq, proposed=proposed):
                known.carry(statement, at, sender, message.seq)
                self._keep((proposer, seq), proposed)
                verdict, nonce = Verdict.TAKEN, 0
        self.version += 1
        noted = Noted(sender, message.seq, at, verdict)
        if nonce in self._expected:
            self._expected[nonce] = noted
        for decision in decisions:
            self._decided[decision.proposal[:2]] = noted
        while len(self._decided) > MAX_EXPECTED:
            del self._decided[next(iter(self._decided))]
        return decisions

    def enter(self, install: Install, *, first: bool = False) -> Install:
        """A view at its place, which says what was known there where its log cannot tell by what lies before it."""
        if install.ledger:
            self._begin_with(install.ledger, MAX_TIMESTAMP)
            self.transactions.members = frozenset(install.view.members)
            return install
        strange = not first and is_repair(install) and bool(install.view.members) and not install.transitional
        if strange and not install.spoken_for:
            # Nobody who speaks in it comes from where this member does, so nobody states what was known there.
            self.begin(b"", MAX_TIMESTAMP)
        self.transactions.enter(install, first=first)
        return replace(install, ledger=self.checkpoint()) if first or (strange and install.spoken_for) else install

    # From elsewhere

    def learn(self, stated: bytes, upto: int = MAX_TIMESTAMP) -> None:
        """What somebody else knows up to a timestamp; nothing where the bytes are no ledger."""
        words, transactions = _known(stated)
        self._say_all(words, upto)
        if transactions is not None:
            self.transactions.merge(transactions)
            self.version += 1

    def begin(self, stated: bytes, upto: int) -> None:
        """What a sponsor knows, and nothing else: what this site remembers besides is to be stated in order."""
        remembered = self.remembered()
        self._begin_with(stated, upto)
        if not self._covers(remembered):
            self.unstated = remembered

    def _begin_with(self, stated: bytes, upto: int) -> None:
        self.holders, self.transactions = Holders(), Transactions()
        self.version += 1
        words, transactions = _known(stated)
        self._say_all(words, upto)
        if transactions is not None:
            self.transactions = transactions

    def _covers(self, stated: bytes) -> bool:
        """Whether there is nothing in a ledger that is not in this one."""
        words, transactions = _known(stated)
        both = Ledger()
        both.learn(self.to_bytes())
        if any(both.holders.say(word) for word in words):
            return False
        if transactions is None:
            return True
        before = listed(both.transactions)
        both.transactions.merge(transactions)
        return listed(both.transactions) == before

    def _say_all(self, words: Iterable[Holder], upto: int) -> None:
        for word in words:
            if word.said <= upto:
                self._say(word)

    def _say(self, word: Holder) -> None:
        if self.holders.say(word):
            self.version += 1

    # What it says

    def to_bytes(self) -> bytes:
        """Empty where there is nothing to know."""
        words = [list(word) for word in self.holders]
        if self.transactions.used:
            body: list[Any] = [WITH_TRANSACTIONS, words, listed(self.transactions)]
        elif words:
            body = [VERSION, words]
        else:
            return b""
        packed: bytes = msgpack.packb(body)
        return packed

    def checkpoint(self) -> bytes:
        """The same, never empty."""
        packed: bytes = self.to_bytes() or msgpack.packb([VERSION, []])
        return packed

    def remembered(self) -> bytes:
        """What a site must not forget, whether or not the group knows it; which rows are here is for the log to say."""
        both = Ledger()
        both.learn(self.to_bytes())
        both.learn(self.unstated)
        both.transactions.leave_stream()
        both.transactions.gathered = self.transactions.gathered
        return both.to_bytes()

    def leave_stream(self) -> None:
        """What this member delivers from now on is another stream, of which nothing is known yet."""
        self.owes = False
        self.transactions.leave_stream()

    # What others may not have

    def carries(self) -> list[Carried]:
        """Proposals that may be candidates and that nobody has said again since parts of the group met."""
        known = self.transactions
        return [
            Carried(*proposal, proposed)
            for proposal, proposed in self._proposed.items()
            if proposal not in known.carried and not known.is_committed(key_of(proposed.app), proposed.version)
        ]

    def _keep(self, proposal: tuple[MemberId, int], proposed: Proposed) -> None:
        self._proposed[proposal] = proposed
        while len(self._proposed) > MAX_KEPT:
            del self._proposed[next(iter(self._proposed))]

    # Those who wait for their own statements

    def expect(self, nonce: int) -> None:
        """Remember what becomes of a statement."""
        while len(self._expected) >= MAX_EXPECTED:
            del self._expected[next(iter(self._expected))]
        self._expected[nonce] = None

    def noted(self, nonce: int) -> Noted | None:
        """What became of it; None as long as it was not delivered."""
        return self._expected.get(nonce)

    def forget(self, nonce: int) -> None:
        self._expected.pop(nonce, None)

    def decision_on(self, proposal: Noted) -> Noted | None:
        """Where a proposal was decided; None where it was not, or too long ago."""
        return self._decided.get((proposal.sender, proposal.seq))


def _known(stated: bytes) -> tuple[list[Holder], Transactions | None]:
    if not stated:
        return [], None
    try:
        version, *parts = array(unpacked(stated))
        if version == VERSION:
            (words,) = array(parts, 1)
            return [_word(*array(word, 6)) for word in array(words)], None
        if version == WITH_TRANSACTIONS:
            words, transactions = array(parts, 2)
            return [_word(*array(word, 6)) for word in array(words)], transactions_of(transactions)
    except (BadBody, ValueError, TypeError, msgpack.UnpackException, RecursionError):
        pass
    return [], None


def _word(site: object, name: object, holds: object, said: object, seconds: object, since: object) -> Holder:
    stamp, begin = timestamp(said), timestamp(since)
    return Holder(site_key(site), text(name), truth(holds), stamp, integer(seconds, MAX_SECONDS), begin)
