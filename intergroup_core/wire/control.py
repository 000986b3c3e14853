"""Bodies of control messages: msgpack arrays, checked field by field before anything believes them."""

from __future__ import annotations

from typing import Any

import msgpack

from intergroup_core.ids import MAX_TIMESTAMP, MemberId, Timestamp
from intergroup_core.wire.header import MAX_SEQ, FrameType
from intergroup_core.wire.messages import ControlMessage, RepairRequest, Report

MAX_ITEMS = 4_096
"""Entries in any list of a control message."""
_MAX_MEMBER = (1 << 64) - 1


class _BadBody(Exception):
    """Stays inside this module."""


def encode_control(message: ControlMessage) -> tuple[FrameType, bytes]:
    """The frame type and body of a control message."""
    match message:
        case RepairRequest():
            return FrameType.REQUEST, msgpack.packb([message.ranges, message.promises])
        case Report():
            body = [message.serial, message.acknowledged, message.contiguous, message.room_frames]
            return FrameType.REPORT, msgpack.packb(body)


def decode_control(kind: FrameType, sender: MemberId, view_tag: int, body: bytes) -> ControlMessage | None:
    """The message in a body, or None where the body is not one."""
    try:
        most = min(MAX_ITEMS, len(body))
        fields = msgpack.unpackb(body, use_list=True, max_array_len=most, max_map_len=0, max_ext_len=0)
        if kind is FrameType.REQUEST:
            return _decode_request(sender, view_tag, fields)
        return _decode_report(sender, view_tag, fields)
    except (_BadBody, ValueError, TypeError, msgpack.UnpackException, RecursionError):
        return None


def _decode_request(sender: MemberId, view_tag: int, fields: Any) -> RepairRequest:
    ranges, promises = _array(fields, 2)
    return RepairRequest(
        requester=sender,
        view_tag=view_tag,
        ranges=tuple(_range(entry) for entry in _array(ranges)),
        promises=tuple(_promise(entry) for entry in _array(promises)),
    )


def _decode_report(sender: MemberId, view_tag: int, fields: Any) -> Report:
    serial, acknowledged, contiguous, room_frames = _array(fields, 4)
    return Report(
        member=sender,
        view_tag=view_tag,
        serial=_integer(serial, MAX_SEQ),
        acknowledged=Timestamp(_integer(acknowledged, MAX_TIMESTAMP)),
        contiguous=tuple(_position(entry) for entry in _array(contiguous)),
        room_frames=_integer(room_frames, MAX_SEQ),
    )


def _range(entry: Any) -> tuple[MemberId, int, int]:
    source, first, last = _array(entry, 3)
    first, last = _integer(first, MAX_SEQ), _integer(last, MAX_SEQ)
    if not 1 <= first <= last:
        raise _BadBody
    return MemberId(_integer(source, _MAX_MEMBER)), first, last


def _promise(entry: Any) -> tuple[MemberId, Timestamp]:
    source, timestamp = _array(entry, 2)
    return MemberId(_integer(source, _MAX_MEMBER)), Timestamp(_integer(timestamp, MAX_TIMESTAMP))


def _position(entry: Any) -> tuple[MemberId, int]:
    source, seq = _array(entry, 2)
    return MemberId(_integer(source, _MAX_MEMBER)), _integer(seq, MAX_SEQ)


def _array(value: Any, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise _BadBody
    return value


def _integer(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise _BadBody
    return value
