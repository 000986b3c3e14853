"""What happened to transactions in a simulated group, as each stream of deliveries showed it.

A stream is what one incarnation of a member delivered, from its first view to its end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from intergroup_core.ids import MemberId

Place = tuple[MemberId, int]
"""A message: its sender and seq."""
Version = tuple[str, int]
"""An application and its version."""


class Proposal(NamedTuple):
    """A proposal in a stream."""

    at: int
    stream: MemberId
    place: Place
    timestamp: int
    version: Version
    rows: tuple[tuple[MemberId, int, int, int], ...]
    """Of each attempt that it names: sender, first and last seq, first timestamp."""
    taken: bool


class Visible(NamedTuple):
    """A transaction became visible in a stream."""

    at: int
    stream: MemberId
    proposal: Place
    timestamp: int
    sender: MemberId


class Begun(NamedTuple):
    """A stream begins behind a timestamp."""

    at: int
    stream: MemberId
    timestamp: int


class Met(NamedTuple):
    """Views met in a stream: what was delivered elsewhere is not in it."""

    at: int
    stream: MemberId
    timestamp: int


class Stood(NamedTuple):
    """What a stream's ledger was at a place, in a part that counts."""

    at: int
    stream: MemberId
    view: str
    timestamp: int
    sender: MemberId
    ledger: int
    """A digest."""


class Counts(NamedTuple):
    """A part of the group counts, as a stream shows it; what is committed there, and what will be."""

    at: int
    stream: MemberId
    era: int
    committed: frozenset[Version]
    candidates: frozenset[Place]


class Told(NamedTuple):
    """An application was told that its transaction is visible."""

    at: int
    site: str
    version: Version
    era: int
    """Of the part in which it was told."""


class Replayed(NamedTuple):
    """What somebody who reads a stream's log, from a checkpoint in it, came to in the end; and the stream itself."""

    at: int
    stream: MemberId
    ledger: bytes
    live: bytes
    decisions: tuple[tuple[int, Place], ...]
    shown: tuple[tuple[int, Place], ...]


class Unended(NamedTuple):
    """Long after the end of all trouble a transaction is still under way, with a majority of the voters there."""

    at: int
    site: str
    version: Version


Event = Proposal | Visible | Begun | Met | Stood | Counts | Told | Replayed | Unended


@dataclass(slots=True)
class TransactionTrace:
    """In the order in which it happened."""

    events: list[Event] = field(default_factory=list)
    rows: dict[MemberId, dict[Place, int]] = field(default_factory=dict)
    """Staged messages of each stream, and how many events there were before."""
    notes: list[str] = field(default_factory=list)
    """For people who look for the cause of a violation."""
