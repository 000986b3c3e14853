"""The events of a group's stream, as an application sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from intergroup_core.ids import EPOCH_US, Timestamp, wall_us
from intergroup_core.wire.headers import Headers, decode_headers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from intergroup_core.wire.records import Rows

_EPOCH = datetime(2020, 1, 1, tzinfo=UTC)

RECORD_DIGITS = 8
LAST_RECORD = (1 << 4 * RECORD_DIGITS) - 1
"""Sorts behind every record of a message."""


def time_of(lamport: int) -> datetime:
    """The wall time in a group timestamp."""
    return _EPOCH + timedelta(microseconds=wall_us(Timestamp(lamport)) - EPOCH_US)


def position(place: int, sender: int, seq: int, record: int) -> str:
    """Text of fixed width that sorts as the numbers do."""
    return f"{place:016x}-{sender:016x}-{seq:016x}-{record:0{RECORD_DIGITS}x}"


@dataclass(frozen=True, slots=True)
class Peer:
    """A member of the group: what people call it, and the id of its incarnation."""

    name: str
    id: str
    """16 hex digits, random; a process that starts again has a new one."""


@dataclass(frozen=True, slots=True)
class Departed:
    """A sender that is not in a view any more."""

    name: str
    id: str
    reason: str
    """`left` and `silence`: it went on purpose; `failed`, `blocked` and `clock`: it was left behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One record that a member sent; (group_name, sender_id, seq, record) names it for ever."""

    kind: ClassVar[str] = "data"

    group_name: str
    sender: str
    """What people call the sender; its id where that is not known, as in `uu`."""
    sender_id: str
    seq: int
    """Of the message that brought the record; increases within a sender, with holes."""
    record: int
    """Of several records in one message, counted from 0."""
    position: str
    """Sorts as delivered: for the whole group in `rto`, within a sender in `rso`, at this member in `uu`."""
    timestamp: datetime
    """Its place in the group's time, UTC."""
    lamport: int
    """The same as the whole number that orders messages."""
    view_id: str | None
    """The view it was delivered in; None in `uu`, which has none."""
    value: bytes
    key: bytes | None = None
    headers: Headers = ()
    txn: str | None = None
    """The transaction it is staged for: whether that is committed is said later in the stream, or never."""

    @property
    def sent_timestamp(self) -> datetime:
        """When it was sent; messages take their place in the group's time as they are sent."""
        return self.timestamp


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """The records of one message without an object for each: record i is data[offsets[i]:offsets[i + 1]]."""

    kind: ClassVar[str] = "data"

    group_name: str
    sender: str
    sender_id: str
    seq: int
    timestamp: datetime
    lamport: int
    view_id: str | None
    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]
    """Of the buffer it was received into, which is kept as long as this is: copy what is to stay."""
    position: str
    """Of its first record."""
    rows: Rows | None = None
    """The same records with their keys and headers."""
    txn: str | None = None
    """The transaction that they are staged for."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def values(self) -> list[bytes]:
        """The records, copied."""
        data, offsets = self.data.tobytes(), self.offsets.tolist()
        return [data[offsets[at] : offsets[at + 1]] for at in range(len(offsets) - 1)]

    def keys(self) -> list[bytes | None]:
        """The records' keys, copied."""
        if self.rows is None or self.rows.keys is None:
            return [None] * len(self)
        keys, nulls = self.rows.keys.to_list(), self.rows.nulls
        return list(keys) if nulls is None else [None if null else key for key, null in zip(keys, nulls, strict=True)]

    def headers(self) -> list[Headers]:
        """The records' headers."""
        if self.rows is None or self.rows.headers is None:
            return [()] * len(self)
        return [decode_headers(packed) for packed in self.rows.headers.to_list()]

    def messages(self) -> list[Message]:
        """An object for each record."""
        place = self.position[:-RECORD_DIGITS]
        return [
            Message(
                group_name=self.group_name,
                sender=self.sender,
                sender_id=self.sender_id,
                seq=self.seq,
                record=record,
                position=f"{place}{record:0{RECORD_DIGITS}x}",
                timestamp=self.timestamp,
                lamport=self.lamport,
                view_id=self.view_id,
                value=value,
                key=key,
                headers=headers,
                txn=self.txn,
            )
            for record, (value, key, headers) in enumerate(zip(self.values(), self.keys(), self.headers(), strict=True))
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChange:
    """The senders changed, here in the stream: all that follows, up to the next one, was sent by these."""

    kind: ClassVar[str] = "view"

    group_name: str
    view_id: str
    members: tuple[Peer, ...]
    """The senders; empty once the last has left."""
    joined: tuple[Peer, ...]
    departed: tuple[Departed, ...]
    stayed: tuple[Peer, ...]
    """Those that came with this member from its last view: they delivered the same there."""
    branches: tuple[str, ...]
    """Ids of the other views that met in this one, after a partition."""
    position: str
    timestamp: datetime
    lamport: int
    before: tuple[tuple[str, int], ...] = ()
    """Ids of senders and the last seq of each that lies before this, where the view says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The stream skips something here; a view follows, and what comes after it is without a gap again."""

    kind: ClassVar[str] = "gap"

    group_name: str
    reason: str
    unsure: int
    """Messages of this member that were not delivered before: nobody knows whether others have them."""
    member_id: str
    """The id of this member from here on."""
    position: str
    """Behind everything before it."""
    timestamp: datetime
    lamport: int


Event = Message | ViewChange | Gap
BatchEvent = Batch | ViewChange | Gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Who is in a group, as one member knows it."""

    group_name: str
    view_id: str | None
    """None before the first view: nobody sends, or nobody has answered yet."""
    senders: tuple[Peer, ...]
    receivers: tuple[Peer, ...]
    """Those heard of by name; `uu` receivers are never heard of, and in a large group not everybody is."""
    count: int | None = None
    """Members that are waited for, senders included, as the control hierarchy counts them; None before it is known."""
    sites: tuple[str, ...] = ()
    """Names of sites that have a member in the group, as far as the hierarchy has heard of them."""
    slowest: str | None = None
    """The site whose member is farthest behind what the others have."""
    behind_s: float | None = None
    """By how many seconds it is behind the present."""

    @classmethod
    def of(cls, group: str, roster: Mapping[str, Any]) -> Members:
        """From what a member tells of its group."""
        return cls(
            group_name=group,
            view_id=roster["view_id"],
            senders=tuple(Peer(*peer) for peer in roster["senders"]),
            receivers=tuple(Peer(*peer) for peer in roster["receivers"]),
            count=roster["count"],
            sites=tuple(roster["sites"]),
            slowest=roster["slowest"],
            behind_s=roster["behind_s"],
        )
