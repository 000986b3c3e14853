"""What another site sent of its log, checked before anything is made of it: a chunk, a view or a gap comes out, or
RangeMalformed is raised, whatever was sent."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import msgpack
import numpy as np

from intergroup_core.config import HEADER_BYTES
from intergroup_core.counters import Counters
from intergroup_core.effects import Departure, Gap, Install
from intergroup_core.errors import RangeMalformed
from intergroup_core.ids import MAX_TIMESTAMP, MemberId, View
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.cut_codec import malformed
from intergroup_core.log.digest import checksum
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.fields import BadBody, array, integer, ledger, many, member, unpacked, view_id
from intergroup_core.wire.header import MAX_STORED_BYTES
from intergroup_core.wire.parse import Arrival, parse
from intergroup_core.wire.run import Run

MAX_TEXT = 1_024
"""Characters of a name, a branch or a reason."""
MAX_RUNS = (1 << 16) - 1
"""Of one chunk: as many as an entry can say."""
BEHIND = struct.Struct("<QQQ")
"""Timestamp, sender and seq of what a gap stands behind."""
_MAX_COUNT = (1 << 63) - 1


def received_chunk(value: Any, group_tag: int) -> Chunk:
    """Whole messages of one sender, out of [bytes of a frame, frames] of each run."""
    if not isinstance(value, list) or not 0 < len(value) <= MAX_RUNS:
        raise malformed("the runs of a chunk", value)
    *head, last = [_received_run(run, group_tag) for run in value]
    if any(run.ends for run in head) or not last.ends or last.ends[-1] != last.count - 1:
        raise RangeMalformed("a chunk does not end with its messages; fetch it again, or from another site")
    for run, following in itertools.pairwise([*head, last]):
        goes_on = following.source == run.source and following.seq == run.last_seq + 1
        if not goes_on or following.timestamp <= run.last_timestamp or following.fragment != run.fragment + run.count:
            raise RangeMalformed("a message's frames do not follow each other; fetch it again, or from another site")
    if (head[0] if head else last).fragment:
        raise RangeMalformed("a message has no beginning; fetch it again, or from another site")
    return Chunk(tuple(head), last)


def _received_run(value: Any, group_tag: int) -> Run:
    if not isinstance(value, list) or len(value) != 2 or type(value[0]) is not int or type(value[1]) is not bytes:
        raise malformed("a run", value)
    size, content = value
    if size % 8 or not HEADER_BYTES <= size <= MAX_STORED_BYTES or not content or len(content) % size:
        raise malformed("the size of a run's frames", size)
    counters = Counters()
    arrival = Arrival(np.frombuffer(content, dtype=np.uint8), [(0, len(content), size)])
    runs = list(itertools.islice(parse(arrival, group_tag, counters), 2))
    if len(runs) == 1:
        (run,) = runs
        if isinstance(run, Run) and run.count * size == len(content) and not run.change and not run.repaired:
            return run
    raise RangeMalformed(
        "what should be a run of frames is not one, or not sound; fetch it again, or from another site"
    )


def received_install(body: Any, stated: Any) -> Install:
    """A view, by its body and the checksum of that."""
    view, members, names, transitional, joined, departed, branches, *more = _fields(body, stated, b"", 7, 9)
    try:
        return Install(
            View(id=view_id(view), members=many(member)(members), names=many(_text)(names)),
            transitional=many(member)(transitional),
            joined=many(member)(joined),
            departed=many(_departure)(departed),
            branches=many(_text)(branches),
            before=many(_last)(more[0]) if more else (),
            ledger=ledger(more[1]) if len(more) > 1 else b"",
        )
    except (BadBody, ValueError):
        raise malformed("a view", body) from None


def received_gap(body: Any, stated: Any, place: Any) -> tuple[Gap, OrderCut, int]:
    """A gap, and what it stands behind, with the seq of that."""
    reason, incarnation, unsure = _fields(body, stated, place, 3, 3)
    try:
        gap = Gap(_text(reason), member(incarnation), integer(unsure, _MAX_COUNT))
        timestamp, sender, seq = BEHIND.unpack(place)
        return gap, OrderCut(integer(timestamp, MAX_TIMESTAMP), MemberId(sender)), seq
    except (BadBody, struct.error):
        raise malformed("a gap", body) from None


def _fields(body: Any, stated: Any, beside: Any, least: int, most: int) -> list[Any]:
    """What a small body holds; frames bring a checksum of their own, and these do not."""
    if type(body) is not bytes or type(beside) is not bytes or checksum(body + beside) != stated:
        raise malformed("a view or gap with the checksum of its content", body)
    try:
        fields = unpacked(body)
        return array(fields, min(max(least, len(fields)), most))
    except (BadBody, ValueError, TypeError, msgpack.UnpackException, RecursionError):
        raise malformed("a view or gap", body) from None


def _departure(value: Any) -> Departure:
    who, name, reason = array(value, 3)
    return Departure(member(who), _text(name), _text(reason))


def _last(value: Any) -> tuple[MemberId, int]:
    who, seq = array(value, 2)
    return member(who), integer(seq)


def _text(value: Any) -> str:
    if type(value) is not str or len(value) > MAX_TEXT:
        raise BadBody
    return value
