"""What every member saw and did, in order: the record that the checkers judge.

The simulator writes one for every run; the same events can be recorded anywhere else. Its bytes are canonical:
a line for the run, then a line for each event, so that equal runs give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from intergroup_core.ids import MemberId, Service

FORMAT = "intergroup-trace"
VERSION = 3


class Sent(NamedTuple):
    """A message left its sender: stamped, and named by its last frame."""

    at: int
    member: MemberId
    first_seq: int
    seq: int
    first_timestamp: int
    timestamp: int
    digest: int


class Promised(NamedTuple):
    """A keep-alive left its sender: what it stamps later exceeds the timestamp."""

    at: int
    member: MemberId
    seq: int
    timestamp: int


class Delivered(NamedTuple):
    """A message reached an application, by the service it chose."""

    at: int
    member: MemberId
    source: MemberId
    seq: int
    timestamp: int
    digest: int


class Ordered(NamedTuple):
    """A message took its place in the internal timestamp order of a sender with another service (D6)."""

    at: int
    member: MemberId
    source: MemberId
    seq: int
    timestamp: int
    digest: int


class Installed(NamedTuple):
    """A view took its place in a member's stream; for one that bootstraps, the first is the view at its cut."""

    at: int
    member: MemberId
    view: str
    start: int
    members: tuple[MemberId, ...]
    transitional: tuple[MemberId, ...] = ()
    """Senders that came with this member from its previous view."""
    joined: tuple[MemberId, ...] = ()
    departed: tuple[tuple[MemberId, str], ...] = ()
    """Who is not in the view any more, and why."""
    branches: tuple[str, ...] = ()
    """The other views that met in this one."""


class StableDropped(NamedTuple):
    """A member dropped every message at or below a timestamp as stable."""

    at: int
    member: MemberId
    upto: int


class GapAnnounced(NamedTuple):
    """A member told its application that it skips: that incarnation is over, and another goes on under its own id."""

    at: int
    member: MemberId
    incarnation: MemberId
    reason: str = ""
    unsure: int = 0
    """Own messages of unknown outcome."""


class Left(NamedTuple):
    """A member is out of the group and says nothing more."""

    at: int
    member: MemberId
    reason: str


class CountedChanged(NamedTuple):
    """A member learned that every sender counts it for stability, or that it cannot be sure any more."""

    at: int
    member: MemberId
    counted: bool


class Allowed(NamedTuple):
    """With a quorum asked for, a sender may send from now on, in this view, of this number among primary ones (M11).

    Without a view it may not any more.
    """

    at: int
    member: MemberId
    view: str
    number: int


class Disturbed(NamedTuple):
    """Somebody paused a member or cut a link of it: whether others still count it, it cannot know at once."""

    at: int
    member: MemberId


class Suspected(NamedTuple):
    """A member has waited too long for another."""

    at: int
    member: MemberId
    suspect: MemberId
    reason: str


class Crashed(NamedTuple):
    """A member is gone for good."""

    at: int
    member: MemberId


class Ended(NamedTuple):
    """How a live member stood when the quiet phase was over."""

    at: int
    member: MemberId
    connected: bool
    buffered: int
    unsent: int
    sender: bool = False
    """Whether it is a sender, or means to be one."""


Event = (
    Sent | Promised | Delivered | Ordered | Installed | StableDropped | GapAnnounced | Left | CountedChanged
    | Allowed | Disturbed | Suspected | Crashed | Ended
)  # fmt: skip

_KINDS: dict[str, type[Any]] = {
    kind.__name__.lower(): kind
    for kind in (
        Sent, Promised, Delivered, Ordered, Installed, StableDropped, GapAnnounced, Left, CountedChanged, Allowed,
        Disturbed, Suspected, Crashed, Ended,
    )
}  # fmt: skip
_NAMES = {kind: name for name, kind in _KINDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedMember:
    """A member as the checkers know it: one incarnation, with an id of its own."""

    id: MemberId
    name: str
    service: Service
    sender: bool
    """In the sender group from the start, where that is fixed; otherwise views say who is."""
    counted: bool
    """Counted for ever, where that is fixed; otherwise CountedChanged says when."""
    site: str = ""
    """What quorums count it as; its name where this is empty."""


class Trace:
    """The members of a run and everything that happened to them, in one order."""

    __slots__ = ("events", "live", "members", "seed")

    def __init__(
        self, members: Iterable[TracedMember], seed: int = 0, events: Iterable[Event] = (), *, live: bool = False
    ) -> None:
        self.members = list(members)
        self.seed = seed
        self.live = live
        """Whether membership changes: members come and go, and views exclude those that are gone."""
        self.events: list[Event] = list(events)

    def to_bytes(self) -> bytes:
        head = {
            "format": FORMAT,
            "live": self.live,
            "members": [
                [member.id, member.name, member.service.value, member.sender, member.counted, member.site]
                for member in self.members
            ],
            "seed": self.seed,
            "version": VERSION,
        }
        encode = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode
        lines = [encode(head)]
        lines.extend(encode((_NAMES[type(event)], *event)) for event in self.events)
        return "\n".join(lines).encode() + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> Trace:
        head, *lines = map(json.loads, data.splitlines())
        if head["format"] != FORMAT or head["version"] != VERSION:
            raise ValueError(f"not a trace of version {VERSION}: {head['format']} {head['version']}")
        members = (
            TracedMember(
                id=MemberId(member), name=name, service=Service(service), sender=sender, counted=counted, site=site
            )
            for member, name, service, sender, counted, site in head["members"]
        )
        events = (_KINDS[kind](*map(_frozen, rest)) for kind, *rest in lines)
        return cls(members, head["seed"], events, live=head["live"])

    def digest(self) -> str:
        """A short name for exactly this trace."""
        return hashlib.blake2b(self.to_bytes(), digest_size=16).hexdigest()


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def digest_of(payload: bytes) -> int:
    """63 bits that name a message's payload."""
    return int.from_bytes(hashlib.blake2b(payload, digest_size=8).digest(), "little") >> 1


def payload_of(records: Sequence[bytes]) -> bytes:
    """How records must stand in a message: their number, their lengths, their bytes."""
    return struct.pack(f"<{1 + len(records)}I", len(records), *map(len, records)) + b"".join(records)


def describe(event: Event) -> dict[str, Any]:
    """An event for people and for JSON: ids as 16 hex digits."""
    shown: dict[str, Any] = {"event": _NAMES[type(event)]}
    value: Any
    for field, value in zip(event._fields, event, strict=True):
        if field in ("member", "source", "suspect", "incarnation"):
            shown[field] = f"{value:016x}"
        elif field in ("members", "transitional", "joined"):
            shown[field] = [f"{member:016x}" for member in value]
        elif field == "departed":
            shown[field] = {f"{member:016x}": reason for member, reason in value}
        else:
            shown[field] = value
    return shown
