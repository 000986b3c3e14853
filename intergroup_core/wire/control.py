"""Bodies of control messages: msgpack arrays, checked field by field before anything believes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import msgpack

from intergroup_core.ids import MemberId, ViewId
from intergroup_core.wire.exchange import CLOCK_MASK
from intergroup_core.wire.fields import (
    BadBody,
    activation,
    array,
    first_seq,
    integer,
    ledger,
    many,
    member,
    octets,
    optional_view_id,
    place,
    position,
    promise,
    reach,
    serial,
    signed,
    span,
    text,
    timestamp,
    truth,
    unpacked,
    view_id,
)
from intergroup_core.wire.header import FrameType
from intergroup_core.wire.membership import (
    Add,
    AddRequest,
    Change,
    Cut,
    Entry,
    FailureBlock,
    Farewell,
    Join,
    Leave,
    MembershipChange,
    MembershipMessage,
    Peer,
    ReadyToCommit,
    RecoveryInfo,
    Solicitation,
    Sponsorship,
    ViewRequest,
)
from intergroup_core.wire.messages import ControlMessage, LiveReport, RepairRequest, Report

FIXED_REPORT = 4
"""Fields of a report in a view that stays; where views change, more follow."""
LIVE_REPORT = FIXED_REPORT + 6
"""With those; what is said of the hierarchy follows where there is something to say."""
ADD, LEAVE = 1, 2
"""Kinds of an ordered change; append only."""


def _peer(value: Any) -> Peer:
    identity, name, site = array(value, 3)
    return Peer(member(identity), text(name), text(site))


def _cut(value: Any) -> Cut:
    epoch, changes, last = array(value, 3)
    return Cut(epoch=view_id(epoch), changes=timestamp(changes), last=many(position)(last))


def _optional_cut(value: Any) -> Cut | None:
    return None if value is None else _cut(value)


def _entry(value: Any) -> Entry:
    peer, first, old = array(value, 3)
    return Entry(peer=_peer(peer), first_seq=first_seq(first), old=optional_view_id(old))


Decoder = Callable[[Any], Any]

# The fields after the speaker's id, which the header has, in the order of the class.
_BODIES: dict[FrameType, tuple[type[MembershipMessage], tuple[Decoder, ...]]] = {
    FrameType.SOLICITATION: (Solicitation, (text, text, integer, timestamp, truth)),
    FrameType.SPONSORSHIP: (
        Sponsorship,
        (
            member,
            integer,
            text,
            signed,
            view_id,
            view_id,
            many(_peer),
            timestamp,
            timestamp,
            many(activation),
            many(promise),
            many(position),
            truth,
            serial,
            ledger,
        ),
    ),
    FrameType.ADD_REQUEST: (AddRequest, (text, text, member, view_id, first_seq, timestamp)),
    FrameType.JOIN: (Join, (text, text, serial, optional_view_id, many(member), many(member))),
    FrameType.FAILURE_BLOCK: (FailureBlock, (serial, view_id, member, integer)),
    FrameType.RECOVERY_INFO: (
        RecoveryInfo,
        (serial, optional_view_id, integer, timestamp, truth, timestamp, many(reach), octets),
    ),
    FrameType.READY: (ReadyToCommit, (serial, first_seq, _optional_cut)),
    FrameType.MEMBERSHIP: (
        MembershipChange,
        (serial, view_id, many(_entry), many(_cut), many(member), many(member), truth, serial, truth),
    ),
    FrameType.VIEW_REQUEST: (ViewRequest, (optional_view_id, integer)),
    FrameType.FAREWELL: (Farewell, ()),
}
_FRAME_TYPES = {kind: frame for frame, (kind, _) in _BODIES.items()}
_NAMES = {kind: tuple(field.name for field in dataclasses.fields(kind))[1:] for kind in _FRAME_TYPES}


def encode_control(message: ControlMessage) -> tuple[FrameType, bytes]:
    """The frame type and body of a control message."""
    if isinstance(message, RepairRequest):
        asked: list[object] = [message.ranges, message.promises]
        if message.place is not None or message.clock:
            asked += [message.place, message.clock]
        return FrameType.REQUEST, msgpack.packb(asked)
    if isinstance(message, Report):
        report: list[object] = [message.serial, message.acknowledged, message.contiguous, message.room_frames]
        if message.live is not None:
            live = message.live
            report += [live.counted, live.counts, live.ready, live.applied, live.stable, live.name]
            if live.relayed or live.indirect or live.place is not None:
                report += [live.relayed, live.indirect, live.place]
        return FrameType.REPORT, msgpack.packb(report)
    kind = type(message)
    body = [_plain(getattr(message, name)) for name in _NAMES[kind]]
    if isinstance(message, Sponsorship) and not message.ledger:
        body.pop()
    return _FRAME_TYPES[kind], msgpack.packb(body)


def _plain(value: Any) -> Any:
    """A field as msgpack takes it."""
    if isinstance(value, (Peer, Cut, Entry, ViewId)):
        return [_plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return value


def decode_control(kind: FrameType, sender: MemberId, view_tag: int, body: bytes) -> ControlMessage | None:
    """The message in a body, or None where the body is not one."""
    try:
        fields = unpacked(body)
        if kind is FrameType.REQUEST:
            return _decode_request(sender, view_tag, fields)
        if kind is FrameType.REPORT:
            return _decode_report(sender, view_tag, fields)
        cls, decoders = _BODIES[kind]
        if cls is Sponsorship and len(array(fields)) == len(decoders) - 1:
            fields.append(b"")
        values = array(fields, len(decoders))
        decoded = {name: decode(value) for name, decode, value in zip(_NAMES[cls], decoders, values, strict=True)}
        return cls(member=sender, **decoded)
    except (BadBody, ValueError, TypeError, msgpack.UnpackException, RecursionError):
        return None


def encode_change(change: Change) -> bytes:
    """The body of an ordered membership message."""
    if isinstance(change, Add):
        body: bytes = msgpack.packb([ADD, _plain(change.peer), change.first_seq])
    else:
        body = msgpack.packb([LEAVE, change.reason])
    return body


def decode_change(body: bytes) -> Change | None:
    """The ordered membership message in a body, or None where it is not one."""
    try:
        kind, *rest = array(unpacked(body))
        if kind == ADD:
            peer, first = array(rest, 2)
            return Add(peer=_peer(peer), first_seq=first_seq(first))
        if kind == LEAVE:
            return Leave(reason=text(array(rest, 1)[0]))
    except (BadBody, ValueError, TypeError, msgpack.UnpackException, RecursionError):
        pass
    return None


def _decode_request(sender: MemberId, view_tag: int, fields: Any) -> RepairRequest:
    ranges, promises, *more = array(fields)
    at, clock = array(more, 2) if more else (None, 0)
    if integer(clock) > CLOCK_MASK:
        raise BadBody
    return RepairRequest(
        requester=sender,
        view_tag=view_tag,
        ranges=many(span)(ranges),
        promises=many(promise)(promises),
        place=None if at is None else place(at),
        clock=clock,
    )


def _decode_report(sender: MemberId, view_tag: int, fields: Any) -> Report:
    values = array(fields)
    live: LiveReport | None = None
    if len(values) > FIXED_REPORT:
        counted, counts, ready, applied, stable, name = array(values[FIXED_REPORT:LIVE_REPORT], 6)
        relayed, indirect, at = array(values[LIVE_REPORT:], 3) if len(values) > LIVE_REPORT else (False, False, None)
        live = LiveReport(
            counted=truth(counted),
            counts=many(member)(counts),
            ready=timestamp(ready),
            applied=timestamp(applied),
            stable=timestamp(stable),
            name=text(name),
            relayed=truth(relayed),
            indirect=truth(indirect),
            place=None if at is None else place(at),
        )
    count, acknowledged, contiguous, room_frames = array(values[:FIXED_REPORT], FIXED_REPORT)
    return Report(
        member=sender,
        view_tag=view_tag,
        serial=integer(count),
        acknowledged=timestamp(acknowledged),
        contiguous=many(position)(contiguous),
        room_frames=integer(room_frames),
        live=live,
    )
