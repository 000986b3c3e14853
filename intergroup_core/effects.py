"""What comes out of the pure part: the shell carries these out in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from intergroup_core.ids import MemberId, SiteId, Timestamp, View
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.hierarchy import HierarchyMessage


@dataclass(frozen=True, slots=True)
class Multicast:
    """Datagrams of `segment` bytes, the last perhaps shorter, to be sent in order."""

    data: memoryview | bytes
    segment: int
    burst: int = 0
    """Bytes that the network is given in one call, a multiple of `segment`; 0 where it is given all."""


@dataclass(frozen=True, slots=True)
class Deliver:
    """Messages for the application, by the service it chose."""

    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Order:
    """The timestamp order a sender follows inside while its application chose another service (D6)."""

    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Departure:
    """Who is not in a view any more, and why: left, silence, failed, blocked or clock."""

    member: MemberId
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Install:
    """A view, at its place in the stream."""

    view: View
    transitional: tuple[MemberId, ...] = ()
    """Its members that came from this member's previous view with it."""
    joined: tuple[MemberId, ...] = ()
    departed: tuple[Departure, ...] = ()
    branches: tuple[str, ...] = ()
    """Ids of the other views that met in it (M10)."""
    before: tuple[tuple[MemberId, int], ...] = ()
    """What lies before it: the last seq of whoever came or went with it, and of all members where a repair made it.

    The same at everybody who comes into it from the same view; empty where a member came into its midst.
    """
    ledger: bytes = b""
    """What was stated up to here, where a stream begins; empty where that follows from what is before it."""
    spoken_for: bool = field(default=False, compare=False)
    """Whether a member of it was where this one comes from, though none may have sent there; the log does not say."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The stream skips here; what follows is a new incarnation of this member (M5)."""

    reason: str
    incarnation: MemberId
    unsure: int = 0
    """Own messages that were not delivered before: their outcome is unknown."""


@dataclass(frozen=True, slots=True)
class Left:
    """The member is out of the group and may be closed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Persist:
    """What must be durable before any later effect is carried out (M11)."""

    record: bytes


@dataclass(frozen=True, slots=True)
class Counted:
    """Whether this member knows that every sender counts it for stability (D7)."""

    counted: bool


@dataclass(frozen=True, slots=True)
class Stable:
    """Messages at or below this timestamp left the message buffer: every counted member has them."""

    upto: Timestamp


@dataclass(frozen=True, slots=True)
class Suspect:
    """A member did not answer for too long (R2)."""

    member: MemberId
    reason: str
    seq: int


@dataclass(frozen=True, slots=True)
class SendRoom:
    """The send queue takes this many bytes again."""

    bytes_free: int


Effect = Multicast | Deliver | Order | Install | Gap | Left | Persist | Counted | Stable | Suspect | SendRoom


class Outcome(list[Effect]):
    """What one stimulus brings about, in order, as it comes about."""

    early: Callable[[Sequence[Effect]], None] | None = None
    """Carries out what others wait for while the rest is worked out; where nobody does, it comes with the rest."""

    def hasten(self) -> None:
        """Let what is here go early, if it is for the network alone: nothing else may overtake or be overtaken."""
        if self.early is None or not self:
            return
        for effect in self:
            if type(effect) is not Multicast and type(effect) is not SendRoom:
                return
        hastened = self[:]
        self.clear()
        self.early(hastened)


@dataclass(frozen=True, slots=True)
class CoordinatorGroup:
    """All coordinators, and those who look for one."""


@dataclass(frozen=True, slots=True)
class LocalGroup:
    """A coordinator and its children."""

    coordinator: SiteId


@dataclass(frozen=True, slots=True)
class OneSite:
    """The control process of one site, which was heard from."""

    site: SiteId


Destination = CoordinatorGroup | LocalGroup | OneSite


@dataclass(frozen=True, slots=True)
class Control:
    """A message of the control hierarchy, one datagram, and how many routers it may cross."""

    message: HierarchyMessage
    frame: bytes
    to: Destination
    ttl: int


@dataclass(frozen=True, slots=True)
class Listen:
    """Whom the control process listens to from now on: these local groups, and perhaps the coordinator group."""

    local_groups: frozenset[SiteId]
    coordinators: bool


@dataclass(frozen=True, slots=True)
class Lost:
    """Control processes that are not heard any more: a dead one holds nobody back for longer than a grace (H3)."""

    sites: tuple[SiteId, ...]


ControlEffect = Control | Listen | Lost
