"""Which component may go on sending: at most one, counted by sites and remembered across restarts (M11).

Views and attempts at views are numbered: a new attempt's number is above all that its members remember. A view is
primary if it has a quorum of the last primary view and of every later attempt that may have become one: those for which
one of its members was ready and never learned the outcome (dynamic voting, after Yeger Lotem, Keidar and Dolev).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import msgpack

from intergroup_core.ids import ViewId
from intergroup_core.wire.fields import MAX_RECORD, BadBody, array, many, serial, site_key, view_id

VERSION = 1
MAX_PENDING = 32
"""Attempts without a known outcome that are remembered; beyond it the oldest go, as if they had failed."""
LEAST_PENDING = 4
"""So many are kept even where the record grows large."""


def key_of(site: str) -> int:
    """64 bits that name a site in records."""
    return int.from_bytes(hashlib.blake2b(site.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True, slots=True)
class Pending:
    """An attempt whose outcome is not known here, its number and its sites."""

    attempt: int
    number: int
    sites: frozenset[int]


@dataclass(frozen=True, slots=True)
class QuorumRecord:
    """What a site remembers for good."""

    last: ViewId | None = None
    number: int = 0
    """Of the last primary view."""
    sites: frozenset[int] = frozenset()
    pending: tuple[Pending, ...] = ()

    @property
    def highest(self) -> int:
        """The highest number in it."""
        return max((entry.number for entry in self.pending), default=self.number)

    def to_bytes(self) -> bytes:
        """The record, without its oldest attempts where it would not fit a message."""
        pending = self.pending
        while len(body := self._packed(pending)) > MAX_RECORD and len(pending) > LEAST_PENDING:
            pending = pending[1:]
        return body

    def _packed(self, pending: Iterable[Pending]) -> bytes:
        last = None if self.last is None else [self.last.start, self.last.leader, self.last.leader_seq]
        entries = [[entry.attempt, entry.number, sorted(entry.sites)] for entry in pending]
        body: bytes = msgpack.packb([VERSION, last, self.number, sorted(self.sites), entries])
        return body

    @classmethod
    def from_bytes(cls, body: bytes) -> QuorumRecord | None:
        """The record, or None where the bytes are not one."""
        try:
            fields = array(msgpack.unpackb(body, max_map_len=0, max_ext_len=0), 5)
            version, last, number, sites, pending = fields
            if version != VERSION:
                return None
            entries = tuple(_pending(entry) for entry in array(pending))
            view = None if last is None else view_id(last)
            return cls(view, serial(number), frozenset(many(site_key)(sites)), entries)
        except (BadBody, ValueError, TypeError, msgpack.UnpackException):
            return None


def _pending(value: object) -> Pending:
    attempt, number, sites = array(value, 3)
    return Pending(serial(attempt), serial(number), frozenset(many(site_key)(sites)))


@dataclass(slots=True)
class Quorum:
    """One member's side of it: its rule, its record, and whether its present view is primary."""

    rule: str
    record: QuorumRecord = field(default_factory=QuorumRecord)
    primary: bool = False
    """Whether this member may take its view for primary."""
    agreed: bool = False
    """Whether its view is primary by what was decided, even if this member knows of a later attempt."""
    number: int = 0
    """Of its view, where that is so: the next ordered change makes the one after it."""

    @property
    def may_send(self) -> bool:
        return self.rule == "none" or self.primary

    def decide(self, records: Iterable[QuorumRecord], sites: Collection[int]) -> bool:
        """Whether a view of these sites, whose members remember this, is primary."""
        known = list(records)
        base = newest(known)
        here = frozenset(sites)
        wanted = [base.sites] if base.last is not None else []
        wanted += [entry.sites for record in known for entry in record.pending if entry.number > base.number]
        return all(self._suffices(here, needed) for needed in wanted) and len(here) >= self._least()

    def _least(self) -> int:
        return int(self.rule) if self.rule.isdigit() else 1

    def _suffices(self, here: frozenset[int], needed: frozenset[int]) -> bool:
        match self.rule:
            case "all":
                return here >= needed
            case _:
                return 2 * len(here & needed) > len(needed)

    def attempting(self, attempt: int, number: int, sites: Collection[int]) -> None:
        """This member is about to say that it is ready for a view; nobody sends in one without sites."""
        if not sites:
            return
        others = tuple(entry for entry in self.record.pending if entry.attempt != attempt)
        self._remember(pending=(*others, Pending(attempt, number, frozenset(sites)))[-MAX_PENDING:])

    def abandoned(self, attempt: int) -> None:
        """An attempt came to nothing, as everybody knows."""
        self._remember(pending=tuple(entry for entry in self.record.pending if entry.attempt != attempt))

    def _remember(self, pending: tuple[Pending, ...]) -> None:
        record = self.record
        self.record = QuorumRecord(record.last, record.number, record.sites, pending)

    def installed(self, view: ViewId, number: int, sites: Collection[int], *, primary: bool) -> None:
        """A view was installed; a primary one settles what was attempted before it, not what came after.

        One that is learned late is not primary here if a later attempt may be by now. One without sites settles
        nothing: whoever sends next needs a quorum of the last view that had some.
        """
        later = tuple(entry for entry in self.record.pending if entry.number > number)
        self.agreed, self.number = primary, number
        self.primary = primary and not later
        if primary and sites and number >= self.record.number:
            self.record = QuorumRecord(view, number, frozenset(sites), later)


def newest(records: Iterable[QuorumRecord]) -> QuorumRecord:
    """The record with the latest primary view."""
    found = QuorumRecord()
    for record in records:
        if record.last is not None and (found.last is None or record.number > found.number):
            found = record
    return found


def next_number(records: Iterable[QuorumRecord]) -> int:
    """The number of an attempt whose members remember this."""
    return 1 + max((record.highest for record in records), default=0)
