"""Which component may go on sending: at most one, counted by sites and remembered across restarts (M11).

A view is primary if it has a quorum of the last primary view and of every view that may have become one since: those
for which one of its members said that it was ready and never learned the outcome.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import msgpack

from intergroup_core.ids import ViewId
from intergroup_core.wire.fields import BadBody, array, many, serial, text, view_id

VERSION = 1
MAX_PENDING = 32
"""Attempts without a known outcome that are remembered; beyond it the oldest go, as if they had failed."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An attempt whose outcome is not known here, after which primary view it was made, and its sites."""

    attempt: int
    after: ViewId | None
    sites: frozenset[str]


@dataclass(frozen=True, slots=True)
class QuorumRecord:
    """What a site remembers for good."""

    last: ViewId | None = None
    sites: frozenset[str] = frozenset()
    pending: tuple[Pending, ...] = ()

    def to_bytes(self) -> bytes:
        last = None if self.last is None else [self.last.start, self.last.leader, self.last.leader_seq]
        pending = [[entry.attempt, _plain(entry.after), sorted(entry.sites)] for entry in self.pending[-MAX_PENDING:]]
        body: bytes = msgpack.packb([VERSION, last, sorted(self.sites), pending])
        return body

    @classmethod
    def from_bytes(cls, body: bytes) -> QuorumRecord | None:
        """The record, or None where the bytes are not one."""
        try:
            version, last, sites, pending = array(msgpack.unpackb(body, max_map_len=0, max_ext_len=0), 4)
            if version != VERSION:
                return None
            entries = tuple(_pending(entry) for entry in array(pending))
            return cls(None if last is None else view_id(last), frozenset(many(text)(sites)), entries)
        except (BadBody, ValueError, TypeError, msgpack.UnpackException):
            return None


def _plain(view: ViewId | None) -> list[int] | None:
    return None if view is None else [view.start, view.leader, view.leader_seq]


def _pending(value: object) -> Pending:
    attempt, after, sites = array(value, 3)
    return Pending(serial(attempt), None if after is None else view_id(after), frozenset(many(text)(sites)))


@dataclass(slots=True)
class Quorum:
    """One member's side of it: its rule, its record, and whether its present view is primary."""

    rule: str
    record: QuorumRecord = field(default_factory=QuorumRecord)
    primary: bool = False

    @property
    def may_send(self) -> bool:
        return self.rule == "none" or self.primary

    def decide(self, records: Iterable[QuorumRecord], sites: Collection[str]) -> bool:
        """Whether a view of these sites, whose members remember this, is primary."""
        known = list(records)
        base = newest(known)
        here = frozenset(sites)
        wanted = [base.sites] if base.last is not None else []
        for record in known:
            wanted += [
                entry.sites
                for entry in record.pending
                if base.last is None or (entry.after is not None and entry.after >= base.last)
            ]
        return all(self._suffices(here, needed) for needed in wanted) and len(here) >= self._least()

    def _least(self) -> int:
        return int(self.rule) if self.rule.isdigit() else 1

    def _suffices(self, here: frozenset[str], needed: frozenset[str]) -> bool:
        match self.rule:
            case "all":
                return here >= needed
            case _:
                return 2 * len(here & needed) > len(needed)

    def attempting(self, attempt: int, after: ViewId | None, sites: Collection[str]) -> None:
        """This member is about to say that it is ready."""
        others = tuple(entry for entry in self.record.pending if entry.attempt != attempt)
        pending = (*others, Pending(attempt, after, frozenset(sites)))[-MAX_PENDING:]
        self.record = QuorumRecord(self.record.last, self.record.sites, pending)

    def installed(self, view: ViewId, sites: Collection[str], *, primary: bool, attempt: int | None) -> None:
        """A view was installed; a primary one settles everything before it."""
        self.primary = primary
        if primary:
            self.record = QuorumRecord(view, frozenset(sites))
        elif attempt is not None:
            pending = tuple(entry for entry in self.record.pending if entry.attempt != attempt)
            self.record = QuorumRecord(self.record.last, self.record.sites, pending)


def newest(records: Iterable[QuorumRecord]) -> QuorumRecord:
    """The record with the latest primary view."""
    found = QuorumRecord()
    for record in records:
        if record.last is not None and (found.last is None or record.last > found.last):
            found = record
    return found
