"""How single fields of a message body are checked: whatever a body holds, either a sound value or BadBody comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgpack

from intergroup_core.ids import MAX_TIMESTAMP, MemberId, SiteId, Timestamp, ViewId
from intergroup_core.wire.header import MAX_SEQ

MAX_ITEMS = 4_096
"""Entries in any list of a message."""
MAX_TEXT = 64
"""Bytes of a name, a site or a reason."""
MAX_RECORD = 16_384
"""Bytes of a quorum record."""
MAX_LEDGER = 49_152
"""Bytes of what a newcomer is told of a group."""
_MAX_MEMBER = (1 << 64) - 1
_SIGNED = 1 << 62

Value = TypeVar("Value")


class BadBody(Exception):
    """Stays inside the codec."""


def unpacked(body: bytes) -> Any:
    """What a body holds, within the limits of what a message may hold."""
    most = min(MAX_ITEMS, len(body))
    return msgpack.unpackb(body, use_list=True, max_array_len=most, max_map_len=0, max_ext_len=0)


def array(value: Any, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise BadBody
    return value


def integer(value: Any, most: int = MAX_SEQ) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise BadBody
    return value


def first_seq(value: Any) -> int:
    """The seq of a first frame: they begin at 1."""
    seq = integer(value)
    if not seq:
        raise BadBody
    return seq


def signed(value: Any) -> int:
    if type(value) is not int or not -_SIGNED <= value <= _SIGNED:
        raise BadBody
    return value


def serial(value: Any) -> int:
    """A count or digest of up to 63 bits."""
    return integer(value, MAX_TIMESTAMP)


def truth(value: Any) -> bool:
    if type(value) is not bool:
        raise BadBody
    return value


def text(value: Any) -> str:
    if type(value) is not str or len(value.encode()) > MAX_TEXT:
        raise BadBody
    return value


def octets(value: Any) -> bytes:
    if type(value) is not bytes or len(value) > MAX_RECORD:
        raise BadBody
    return value


def ledger(value: Any) -> bytes:
    if type(value) is not bytes or len(value) > MAX_LEDGER:
        raise BadBody
    return value


def member(value: Any) -> MemberId:
    identity = integer(value, _MAX_MEMBER)
    if not identity:
        raise BadBody
    return MemberId(identity)


def site(value: Any) -> SiteId:
    return SiteId(member(value))


def optional_site(value: Any) -> SiteId | None:
    return None if value is None else site(value)


def place(value: Any) -> tuple[SiteId, SiteId | None]:
    """Where a site is in the control hierarchy."""
    own, coordinator = array(value, 2)
    return site(own), optional_site(coordinator)


def site_key(value: Any) -> int:
    return integer(value, _MAX_MEMBER)


def timestamp(value: Any) -> Timestamp:
    return Timestamp(integer(value, MAX_TIMESTAMP))


def view_id(value: Any) -> ViewId:
    start, leader, leader_seq = array(value, 3)
    return ViewId(timestamp(start), member(leader), serial(leader_seq))


def optional_view_id(value: Any) -> ViewId | None:
    return None if value is None else view_id(value)


def many(decode: Callable[[Any], Value]) -> Callable[[Any], tuple[Value, ...]]:
    """A list of any number of the same."""
    return lambda value: tuple(decode(entry) for entry in array(value))


def position(entry: Any) -> tuple[MemberId, int]:
    source, seq = array(entry, 2)
    return member(source), integer(seq)


def activation(entry: Any) -> tuple[MemberId, int]:
    source, seq = array(entry, 2)
    return member(source), first_seq(seq)


def promise(entry: Any) -> tuple[MemberId, Timestamp]:
    source, stamp = array(entry, 2)
    return member(source), timestamp(stamp)


def reach(entry: Any) -> tuple[MemberId, int, Timestamp]:
    source, seq, stamp = array(entry, 3)
    return member(source), integer(seq), timestamp(stamp)


def span(entry: Any) -> tuple[MemberId, int, int]:
    source, first, last = array(entry, 3)
    first, last = integer(first), integer(last)
    if not 1 <= first <= last:
        raise BadBody
    return member(source), first, last
