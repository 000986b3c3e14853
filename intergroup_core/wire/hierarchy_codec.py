"""Bodies of the control hierarchy's messages: msgpack arrays with the fields in the order of their class."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import msgpack

from intergroup_core.ids import SiteId
from intergroup_core.wire.exchange import CLOCK_MASK
from intergroup_core.wire.fields import (
    BadBody,
    array,
    integer,
    member,
    optional_site,
    site,
    text,
    timestamp,
    truth,
    unpacked,
)
from intergroup_core.wire.header import FrameType
from intergroup_core.wire.hierarchy import (
    Acknowledgment,
    CoordinatorControl,
    CoordinatorLeave,
    CutKey,
    GlobalControl,
    GroupKey,
    HierarchyMessage,
    LocalControl,
    Reach,
    RingAnswer,
    RingQuery,
    SiteLeave,
)

MAX_PARTS = 256
MAX_SITES = 1_000_000
"""Sites that any count may speak of."""
_MAX_CLOCK = CLOCK_MASK
_MAX_TAG = (1 << 64) - 1


def _clock(value: Any) -> int:
    return integer(value, _MAX_CLOCK)


def _ttl(value: Any) -> int:
    return integer(value, 255)


def _part(value: Any) -> int:
    return integer(value, MAX_PARTS - 1)


def _parts(value: Any) -> int:
    count = integer(value, MAX_PARTS)
    if not count:
        raise BadBody
    return count


def _count(value: Any) -> int:
    return integer(value, MAX_SITES)


def _group_key(value: Any) -> tuple[int, int]:
    group, epoch = value
    return integer(group, _MAX_TAG), integer(epoch, _MAX_CLOCK)


def _echoes(value: Any) -> Mapping[SiteId, tuple[int, int]]:
    found = {}
    for entry in array(value):
        where, clock, held = array(entry, 3)
        found[site(where)] = (_clock(clock), _clock(held))
    return found


def _spread(value: Any) -> Mapping[SiteId, int]:
    found = {}
    for entry in array(value):
        where, distance = array(entry, 2)
        found[site(where)] = _clock(distance)
    return found


def _acknowledgments(value: Any) -> Mapping[GroupKey, Acknowledgment]:
    found = {}
    for entry in array(value):
        group, epoch, upto, members, slowest, name, room = array(entry, 7)
        key = GroupKey(*_group_key((group, epoch)))
        found[key] = Acknowledgment(timestamp(upto), _count(members), site(slowest), text(name), integer(room))
    return found


def _cuts(value: Any) -> Mapping[CutKey, Reach]:
    found = {}
    for entry in array(value):
        group, epoch, source, seq, promise = array(entry, 5)
        key = CutKey(*_group_key((group, epoch)), member(source))
        found[key] = Reach(integer(seq), timestamp(promise))
    return found


def _roll(value: Any) -> Mapping[tuple[SiteId, int], str]:
    found = {}
    for entry in array(value):
        where, group, name = array(entry, 3)
        found[site(where), integer(group, _MAX_TAG)] = text(name)
    return found


Decoder = Callable[[Any], Any]

# The fields after the speaker's id, which the header has, in the order of the class.
_BODIES: dict[FrameType, tuple[type[HierarchyMessage], tuple[Decoder, ...]]] = {
    FrameType.LOCAL_CONTROL: (
        LocalControl,
        (site, _ttl, _clock, _part, _parts, text, _count, _echoes, _acknowledgments, _cuts),
    ),
    FrameType.COORDINATOR_CONTROL: (
        CoordinatorControl,
        (
            *(_ttl, _clock, _part, _parts, _clock, _count, _count, _clock, optional_site),
            *(_echoes, _spread, _spread, _acknowledgments, _cuts, _roll),
        ),
    ),
    FrameType.GLOBAL_CONTROL: (
        GlobalControl,
        (_clock, _part, _parts, _count, _count, _echoes, _acknowledgments, _cuts, _roll),
    ),
    FrameType.RING_QUERY: (RingQuery, (integer, _ttl, _clock, optional_site, truth)),
    FrameType.RING_ANSWER: (RingAnswer, (site, integer, _clock, _clock, _ttl, _count, _count, truth)),
    FrameType.COORDINATOR_LEAVE: (CoordinatorLeave, (_clock,)),
    FrameType.SITE_LEAVE: (SiteLeave, (site, _clock, truth)),
}
HIERARCHY_TYPES = frozenset(_BODIES)
_FRAME_TYPES = {kind: frame for frame, (kind, _) in _BODIES.items()}
_NAMES = {kind: tuple(field.name for field in dataclasses.fields(kind))[1:] for kind in _FRAME_TYPES}


def encode_hierarchy(message: HierarchyMessage) -> tuple[FrameType, bytes]:
    """The frame type and body of a control process's message."""
    kind = type(message)
    body = [_plain(getattr(message, name)) for name in _NAMES[kind]]
    return _FRAME_TYPES[kind], msgpack.packb(body)


def _plain(value: Any) -> Any:
    """A field as msgpack takes it: a mapping becomes a list of rows, key first."""
    if isinstance(value, Mapping):
        return [(*_row(key), *_row(entry)) for key, entry in value.items()]
    return value


def _row(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def decode_hierarchy(kind: FrameType, sender: int, body: bytes) -> HierarchyMessage | None:
    """The message in a body, or None where the body is not one."""
    try:
        cls, decoders = _BODIES[kind]
        values = array(unpacked(body), len(decoders))
        decoded = {name: decode(value) for name, decode, value in zip(_NAMES[cls], decoders, values, strict=True)}
        message = cls(site=SiteId(sender), **decoded)
        if getattr(message, "part", 0) >= getattr(message, "parts", 1):
            return None
        return message
    except (BadBody, ValueError, TypeError, msgpack.UnpackException, RecursionError):
        return None
