"""What entries carry: the frames of a chunk as they were received, or a view or gap as msgpack."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np

from intergroup_core.effects import Departure, Gap, Install
from intergroup_core.ids import MemberId, Timestamp, View, ViewId
from intergroup_core.log.entry import EntryHeader
from intergroup_core.wire.checksum import Words
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.header import FLAG_SHIFT, HEADER_WORDS, LENGTH_SHIFT, MAX_FRAME_BYTES, Flag
from intergroup_core.wire.records import COUNT_BYTES, LENGTH_BYTES
from intergroup_core.wire.run import Run

_LAST_BIT = np.uint64(Flag.LAST << FLAG_SHIFT << 32)
_LENGTH = np.uint64(LENGTH_SHIFT)
_SHORT = np.uint64(0xFFFF)
_LOW32 = 0xFFFFFFFF


def run_table(chunk: Chunk) -> bytes:
    """Frames and words a frame of every run, before the frames of a chunk that has several runs."""
    if not chunk.head:
        return b""
    runs = (*chunk.head, chunk.run)
    return np.array([(run.count, run.frames.shape[1]) for run in runs], dtype="<u4").tobytes()


def frames_of(header: EntryHeader, payload: memoryview) -> tuple[bytes, list[Words]]:
    """The table of runs as it stands, and the frames of each run, in place; ValueError where these do not fit."""
    words: Words = np.frombuffer(payload, dtype=np.uint64)
    shapes, at = [(header.frames, header.frame_words)], 0
    if header.runs > 1:
        at = header.runs
        shapes = [(count, width) for count, width in words[:at].view("<u4").reshape(-1, 2).tolist()]
    runs = []
    for count, width in shapes:
        if not HEADER_WORDS <= width <= MAX_FRAME_BYTES // 8:
            raise ValueError(f"a frame of {width} words")
        runs.append(words[at : at + count * width].reshape(count, width))
        at += count * width
    return bytes(payload[: header.runs * 8]) if header.runs > 1 else b"", runs


def chunk_of(header: EntryHeader, payload: memoryview) -> Chunk:
    """The messages of a data entry, their frames in place."""
    _, runs = frames_of(header, payload)
    *head, last = [_run_of(MemberId(header.source), frames) for frames in runs]
    return Chunk(tuple(head), last)


def _run_of(source: MemberId, frames: Words) -> Run:
    _, word, _, _, seq, timestamp = frames[0, :6].tolist()
    ends = np.flatnonzero(frames[:, 0] & _LAST_BIT)
    lengths = frames[ends, 1] >> _LENGTH & _SHORT
    return Run(source, seq, timestamp, word & _LOW32, frames, word >> 48, ends.tolist(), lengths.tolist())


def stated_records(chunk: Chunk) -> int:
    """How many records the messages of a chunk say they have, which costs a look at the first frame of each.

    A message that has no room for the lengths of so many is not made of records.
    """
    run = chunk.run
    width = run.frames.shape[1]
    if width == HEADER_WORDS:
        return 0
    body = 8 * (width - HEADER_WORDS)
    first = chunk.head[0].frames[0] if chunk.head else run.frames[0]
    before = sum(part.count * 8 * (part.frames.shape[1] - HEADER_WORDS) for part in chunk.head)
    total = _believed(int(first[HEADER_WORDS]) & _LOW32, before + run.ends[0] * body + run.end_lengths[0])
    if len(run.ends) == 1:
        return total
    starts = np.array(run.ends[:-1], dtype=np.int64) + 1
    counts = (run.frames[starts, HEADER_WORDS] & np.uint64(_LOW32)).astype(np.int64)
    sizes = (np.array(run.ends[1:], dtype=np.int64) - starts) * body + np.array(run.end_lengths[1:], dtype=np.int64)
    return total + int(counts[COUNT_BYTES + LENGTH_BYTES * counts <= sizes].sum())


def _believed(count: int, size: int) -> int:
    return count if COUNT_BYTES + LENGTH_BYTES * count <= size else 0


def packed_install(install: Install) -> bytes:
    """All that a view says; what lies before it only where that is known."""
    view = install.view
    fields = [
        [view.id.start, view.id.leader, view.id.leader_seq],
        view.members,
        view.names,
        install.transitional,
        install.joined,
        [[departure.member, departure.name, departure.reason] for departure in install.departed],
        install.branches,
    ]
    if install.before:
        fields.append(install.before)
    packed: bytes = msgpack.packb(fields)
    return packed


def install_of(payload: memoryview) -> Install:
    view_id, members, names, transitional, joined, departed, branches, *before = _unpacked(payload)
    start, leader, leader_seq = view_id
    view = View(id=ViewId(Timestamp(start), MemberId(leader), leader_seq), members=tuple(members), names=tuple(names))
    return Install(
        view,
        transitional=tuple(transitional),
        joined=tuple(joined),
        departed=tuple(Departure(MemberId(member), name, reason) for member, name, reason in departed),
        branches=tuple(branches),
        before=tuple((MemberId(member), seq) for member, seq in before[0]) if before else (),
    )


def packed_gap(gap: Gap) -> bytes:
    packed: bytes = msgpack.packb([gap.reason, gap.incarnation, gap.unsure])
    return packed


def gap_of(payload: memoryview) -> Gap:
    reason, incarnation, unsure = _unpacked(payload)
    return Gap(reason, MemberId(incarnation), unsure)


def _unpacked(payload: memoryview) -> list[Any]:
    unpacked: list[Any] = msgpack.unpackb(payload)
    return unpacked
