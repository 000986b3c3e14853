"""Cuts as lists, for msgpack, and as JSON, for people and for offsets: canonical, and with a version of their own.

    [version, 0, timestamp, sender, view]        rto
    [version, 1, [[sender, seq], ...], view]     rso, by sender
    [version, 2, log, entry]                     uu

A view is [start, leader, leader's sequence] or nothing. In JSON all that has 64 bits is 16 hex digits, because not
everybody's numbers are that wide. Whatever is given to be read, a cut comes out, or RangeMalformed or LogFormat is
raised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from intergroup_core.errors import LogFormat, RangeMalformed
from intergroup_core.ids import MAX_TIMESTAMP, MemberId, Service, Timestamp, ViewId
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.wire.header import MAX_SEQ

CUT_VERSION = 1
MAX_SENDERS = 1 << 20
"""Named in one cut; one with more is refused."""
MAX64 = (1 << 64) - 1
_SHOWN = 60
"""Characters of something malformed that an error shows."""
_RTO, _RSO, _UU = range(3)
_HEX = re.compile("[0-9a-f]{16}", re.ASCII)
_VIEW = re.compile("([0-9a-f]{16})-([0-9a-f]{16})-(0|[1-9a-f][0-9a-f]{0,15})", re.ASCII)


def listed_cut(cut: Cut) -> list[Any]:
    """A cut as a list that msgpack takes."""
    match cut:
        case OrderCut():
            return [CUT_VERSION, _RTO, cut.timestamp, cut.sender, _listed_view(cut.view)]
        case SourceCut():
            return [
                CUT_VERSION,
                _RSO,
                [[source, cut.seqs[source]] for source in sorted(cut.seqs)],
                _listed_view(cut.view),
            ]
        case EntryCut():
            return [CUT_VERSION, _UU, cut.log, cut.entry]


def cut_of_list(value: Any) -> Cut:
    """The cut that a list says."""
    match value:
        case [version, *_] if not is_number(version):
            raise malformed("a cut", value)
        case [version, *_] if version != CUT_VERSION:
            raise _other_version(version)
        case [_, kind, timestamp, sender, view] if is_number(kind) and kind == _RTO:
            return OrderCut(number(timestamp, MAX_TIMESTAMP, "a timestamp"), member(sender), _view_of_list(view))
        case [_, kind, list(seqs), view] if is_number(kind) and kind == _RSO:
            return SourceCut(_seqs(seqs), _view_of_list(view))
        case [_, kind, log, entry] if is_number(kind) and kind == _UU:
            return EntryCut(number(log, MAX64, "a log's id"), number(entry, MAX64, "an entry's number"))
        case _:
            raise malformed("a cut", value)


def cut_fields(cut: Cut) -> dict[str, Any]:
    """A cut as a dictionary that JSON takes."""
    match cut:
        case OrderCut():
            order = {"timestamp": _hex(cut.timestamp), "sender": _hex(cut.sender)}
            return {"version": CUT_VERSION, "service": Service.RTO.value, **order, "view": _view_text(cut.view)}
        case SourceCut():
            seqs = {_hex(source): cut.seqs[source] for source in sorted(cut.seqs)}
            return {
                "version": CUT_VERSION,
                "service": Service.RSO.value,
                "seqs": seqs,
                "view": _view_text(cut.view),
            }
        case EntryCut():
            return {
                "version": CUT_VERSION,
                "service": Service.UU.value,
                "log": _hex(cut.log),
                "entry": cut.entry,
            }


def cut_of_fields(value: Any) -> Cut:
    """The cut that a dictionary says; fields that this version does not know are refused."""
    if not isinstance(value, dict) or type(value.get("version")) is not int:
        raise malformed("a cut", value)
    if value["version"] != CUT_VERSION:
        raise _other_version(value["version"])
    fields = {name: field for name, field in value.items() if name != "version"}
    match fields:
        case {"service": "rto", "timestamp": timestamp, "sender": sender, "view": view, **rest} if not rest:
            at = number(_of_hex(timestamp), MAX_TIMESTAMP, "a timestamp")
            return OrderCut(at, MemberId(_of_hex(sender)), view_of_text(view))
        case {"service": "rso", "seqs": dict(seqs), "view": view, **rest} if not rest:
            pairs = sorted([_of_hex(source), seq] for source, seq in seqs.items() if isinstance(source, str))
            if len(pairs) != len(seqs):
                raise malformed("the seqs of a cut", seqs)
            return SourceCut(_seqs(pairs), view_of_text(view))
        case {"service": "uu", "log": log, "entry": entry, **rest} if not rest:
            return EntryCut(_of_hex(log), number(entry, MAX64, "an entry's number"))
        case _:
            raise malformed("a cut", value)


def cut_text(cut: Cut) -> str:
    """A cut as JSON; the same cut has the same text everywhere."""
    return json.dumps(cut_fields(cut), sort_keys=True, separators=(",", ":"))


def cut_of_text(content: str | bytes) -> Cut:
    """The cut that JSON says."""
    try:
        value = json.loads(content)
    except (ValueError, TypeError, RecursionError):
        raise malformed("a cut", content) from None
    return cut_of_fields(value)


def is_number(value: Any) -> bool:
    """True and False are numbers to Python, but not here."""
    return type(value) is int


def number(value: Any, most: int, what: str) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise malformed(what, value)
    return value


def member(value: Any) -> MemberId:
    return MemberId(number(value, MAX64, "a sender"))


def malformed(what: str, value: Any) -> RangeMalformed:
    if isinstance(value, str | bytes):
        shown = repr(value[:_SHOWN])
    else:
        shown = str(value) if is_number(value) and abs(value) <= MAX64 else f"a {type(value).__name__}"
    return RangeMalformed(f"{shown} is not {what}; fetch it again, or from another site")


def _seqs(pairs: Iterable[Any]) -> dict[MemberId, int]:
    seqs: dict[MemberId, int] = {}
    last = -1
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or len(seqs) == MAX_SENDERS:
            raise malformed("a sender and its seq", pair)
        source, seq = member(pair[0]), number(pair[1], MAX_SEQ, "a seq")
        if source <= last:
            raise malformed("a sender in its place", source)
        seqs[source], last = seq, source
    return seqs


def _listed_view(view: ViewId | None) -> list[int] | None:
    return None if view is None else [view.start, view.leader, view.leader_seq]


def _view_of_list(value: Any) -> ViewId | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 3:
        raise malformed("a view", value)
    start, leader, seq = value
    start = number(start, MAX_TIMESTAMP, "a view's start")
    return ViewId(Timestamp(start), member(leader), number(seq, MAX64, "a leader's sequence"))


def _view_text(view: ViewId | None) -> str | None:
    return None if view is None else str(view)


def view_of_text(value: Any) -> ViewId | None:
    if value is None:
        return None
    found = _VIEW.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise malformed("a view", value)
    start, leader, seq = (int(digits, 16) for digits in found.groups())
    return _view_of_list([start, leader, seq])


def _hex(value: int) -> str:
    return f"{value:016x}"


def _of_hex(value: Any) -> int:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise malformed("16 hex digits", value)
    return int(value, 16)


def _other_version(version: int) -> LogFormat:
    return LogFormat(
        f"a cut of version {version}, and this version of intergroup reads version {CUT_VERSION}; "
        "read it with the version that wrote it"
    )
