"""What members say to each other about who sends (T5.2.2).

Join, RecoveryInfo, ReadyToCommit, FailureBlock and MembershipChange are state: they have no seq and are repeated until
their phase ends. Add and Leave are ordered: they take a seq and a place in the stream like data (M1).
"""

from __future__ import annotations

from dataclasses import dataclass

from intergroup_core.ids import MemberId, Timestamp, ViewId


@dataclass(frozen=True, slots=True)
class Peer:
    """A member by id, by what people call it, and by the site that quorums count."""

    id: MemberId
    name: str
    site: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """PAdd: a sender brings a member into the sender group; `first_seq` is that member's next frame."""

    peer: Peer
    first_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """PLeave: its sender goes, and why."""

    reason: str


Change = Add | Leave


@dataclass(frozen=True, slots=True, kw_only=True)
class Solicitation:
    """A newcomer looks for a sender that tells it where the group is (T5.3.1)."""

    member: MemberId
    name: str
    site: str
    attempt: int
    clock: Timestamp
    sends: bool
    """Whether it wants to send: newcomers that find nobody else begin a view together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sponsorship:
    """A sponsor's answer: the view, its cut, and where each source goes on from there."""

    member: MemberId
    newcomer: MemberId
    attempt: int
    refusal: str
    """Empty, or why the newcomer is not taken in."""
    ahead_us: int
    """How far the newcomer's clock is ahead of the sponsor's."""
    epoch: ViewId
    view: ViewId
    peers: tuple[Peer, ...]
    position: Timestamp
    """Of the last message the sponsor delivered."""
    acknowledged: Timestamp
    """Nothing above it is stable."""
    activations: tuple[tuple[MemberId, int], ...]
    promises: tuple[tuple[MemberId, Timestamp], ...]
    departed: tuple[tuple[MemberId, int], ...]
    """Sources that left in this epoch, and their last seq: others may not know that yet."""
    primary: bool
    """Whether the view has the quorum (M11)."""
    number: int
    """Of the view, for quorums."""
    ledger: bytes = b""
    """What ordered statements said before its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRequest:
    """A receiver asks a sender of its view to add it."""

    member: MemberId
    name: str
    site: str
    sponsor: MemberId
    epoch: ViewId
    first_seq: int
    clock: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """PJoin: who its sender considers for the next view, and who of them it considers failed."""

    member: MemberId
    name: str
    site: str
    serial: int
    epoch: ViewId | None
    """Of its sender; None for one that comes from no view."""
    procs: tuple[MemberId, ...]
    fails: tuple[MemberId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureBlock:
    """PFailBlock: its sender cannot get a frame of a process from anybody."""

    member: MemberId
    serial: int
    epoch: ViewId
    process: MemberId
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryInfo:
    """RecInfo: what its sender has of the senders that failed, and where it itself stops (M4, D11)."""

    member: MemberId
    attempt: int
    epoch: ViewId | None
    last_seq: int
    clock: Timestamp
    """The highest timestamp given or seen."""
    leaving: bool
    """Its Leave is inside the epoch: it helps to end the view and is not in the next one (M6)."""
    changed: Timestamp
    """Of the last ordered membership message that took effect."""
    failed: tuple[tuple[MemberId, int, Timestamp], ...]
    """Source, last contiguous seq, promise there."""
    record: bytes
    """What its quorum record says (M11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where an epoch ends: seqs at `last`, ordered membership messages that take effect at `changes`."""

    epoch: ViewId
    changes: Timestamp
    last: tuple[tuple[MemberId, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyToCommit:
    """RTC: its sender has everything up to the cut."""

    member: MemberId
    attempt: int
    first_seq: int
    cut: Cut | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One sender of a new view: where its frames begin there and which epoch it comes from."""

    peer: Peer
    first_seq: int
    old: ViewId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipChange:
    """MC: the next view, and for every old one where it ends."""

    member: MemberId
    """Who says it: the leader or anybody who has it."""
    attempt: int
    view: ViewId
    entries: tuple[Entry, ...]
    cuts: tuple[Cut, ...]
    left: tuple[MemberId, ...]
    """Of those left out, the ones that wanted to go."""
    blocked: tuple[MemberId, ...]
    """Of those left out, the ones that could not be recovered from."""
    primary: bool
    """Whether this component has the quorum (M11)."""
    number: int
    """Of the attempt, for quorums."""
    again: bool
    """Said once more, to one that missed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRequest:
    """Asks for the change that follows an epoch, or for the one that began the view with a tag (M0, M12)."""

    member: MemberId
    epoch: ViewId | None
    tag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Farewell:
    """A receiver goes: nobody waits for its acknowledgments any more."""

    member: MemberId


MembershipMessage = (
    Solicitation
    | Sponsorship
    | AddRequest
    | Join
    | FailureBlock
    | RecoveryInfo
    | ReadyToCommit
    | MembershipChange
    | ViewRequest
    | Farewell
)
