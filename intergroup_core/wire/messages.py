"""Everything but data that members say to each other."""

from __future__ import annotations

from dataclasses import dataclass

from intergroup_core.ids import MemberId, SiteId, Timestamp
from intergroup_core.wire.membership import MembershipMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlive:
    """A sender's promise that what it sends later exceeds `timestamp`; `seq` is that of its last frame (T4.2.2)."""

    source: MemberId
    seq: int
    timestamp: Timestamp
    view_tag: int
    frame: bytes
    """As it stood on the wire, to be repaired verbatim (D13)."""
    repaired: bool = False


Place = tuple[SiteId, SiteId | None]
"""Where a member's site is in the control hierarchy: its control process, and the coordinator of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRequest:
    """Asks for ranges of frames, and for promises at or above a timestamp (T3.2.1, R1, D13)."""

    requester: MemberId
    view_tag: int
    ranges: tuple[tuple[MemberId, int, int], ...]
    promises: tuple[tuple[MemberId, Timestamp], ...] = ()
    place: Place | None = None
    clock: int = 0
    """When it was asked, by the requester's clock, which repairs give back (R4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveReport:
    """What a report says besides where views change."""

    counted: bool
    """Whether the reporter knows that every sender counts it (D7)."""
    counts: tuple[MemberId, ...]
    """Members the reporter began to count a short while ago."""
    ready: Timestamp
    """The reporter has everything up to the ordered membership message with this timestamp (M13)."""
    applied: Timestamp
    """Of the last one that took effect there: then every sender had been ready for it."""
    stable: Timestamp
    """What the reporter takes as stable; receivers, who do not know each other, go by what senders say."""
    name: str
    """What people call the reporter; in one report of a busy one per idle period."""
    relayed: bool = False
    """Whether the reporter's acknowledgments come by way of the hierarchy from now on, and not from itself."""
    indirect: bool = False
    """Whether the reporter knows of members that do not report themselves, and goes by the hierarchy for them."""
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a member acknowledges, how far it has each source, and what it still takes (D10)."""

    member: MemberId
    view_tag: int
    serial: int
    acknowledged: Timestamp
    contiguous: tuple[tuple[MemberId, int], ...]
    room_frames: int
    """Frames a single source may send beyond what is contiguous here."""
    live: LiveReport | None = None


ControlMessage = RepairRequest | Report | MembershipMessage
