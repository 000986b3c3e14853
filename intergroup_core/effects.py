"""What comes out of the pure part: the shell carries these out in order."""

from __future__ import annotations

from dataclasses import dataclass

from intergroup_core.ids import MemberId, Timestamp, View
from intergroup_core.wire.chunk import Chunk


@dataclass(frozen=True, slots=True)
class Multicast:
    """One burst: datagrams of `segment` bytes, the last perhaps shorter, to be sent in order."""

    data: memoryview | bytes
    segment: int


@dataclass(frozen=True, slots=True)
class Deliver:
    """Messages for the application, by the service it chose."""

    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Order:
    """The timestamp order a sender follows inside while its application chose another service (D6)."""

    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Install:
    """A view, at its place in the stream."""

    view: View


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


Effect = Multicast | Deliver | Order | Install | Stable | Suspect | SendRoom
