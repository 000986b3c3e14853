"""What entries carry: the frames of a chunk as they were received, or a view or gap as msgpack."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np

from intergroup_core.effects import Departure, Gap, Install
from intergroup_core.ids import MemberId, Timestamp, View, ViewId
from intergroup_core.log.entry import EntryFlag, EntryHeader
from intergroup_core.wire.checksum import Words
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.header import FLAG_SHIFT, HEADER_WORDS, LENGTH_SHIFT, MAX_FRAME_BYTES, Flag
from intergroup_core.wire.records import (
    COUNT_BYTES,
    LABELLED,
    LAST_LAYOUT,
    LAYOUT_SHIFT,
    LENGTH_BYTES,
    MAX_RECORDS,
    layout_of,
)
from intergroup_core.wire.run import Run
from intergroup_core.wire.statements import FIRST_WORD

_LAST_BIT = np.uint64(Flag.LAST << FLAG_SHIFT << 32)
_LENGTH = np.uint64(LENGTH_SHIFT)
_SHORT = np.uint64(0xFFFF)
_LOW32 = 0xFFFFFFFF
_LAYOUT, _COUNT = np.uint64(LAYOUT_SHIFT), np.uint64(MAX_RECORDS)


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


def stated_records(chunk: Chunk, *, staged: bool = True) -> int:
    """How many records the messages of a chunk say they have, which costs a look at the first frame of each.

    A message that has no room for the lengths of so many, or a layout that is not known, is not made of records. Those
    with a label count only where staged ones do.
    """
    run = chunk.run
    body = 8 * (run.frames.shape[1] - HEADER_WORDS)
    before = sum(part.count * 8 * (part.frames.shape[1] - HEADER_WORDS) for part in chunk.head)
    first = chunk.first_word()
    total = 0
    if staged or not layout_of(first) & LABELLED:
        total = _believed(first, before + run.ends[0] * body + run.end_lengths[0])
    if len(run.ends) == 1:
        return total
    words = chunk.further_words()
    layouts = words >> _LAYOUT
    counted = layouts <= LAST_LAYOUT
    if not staged:
        counted &= layouts & np.uint64(LABELLED) == 0
    counts = np.where(counted, words & _COUNT, 0).astype(np.int64)
    ends = np.array(run.ends, dtype=np.int64)
    sizes = (ends[1:] - ends[:-1] - 1) * body + np.array(run.end_lengths[1:], dtype=np.int64)
    return total + int(counts[COUNT_BYTES + LENGTH_BYTES * counts <= sizes].sum())


def stated_counts(chunk: Chunk) -> list[int]:
    """The same of each message by itself."""
    run = chunk.run
    body = 8 * (run.frames.shape[1] - HEADER_WORDS)
    before = sum(part.count * 8 * (part.frames.shape[1] - HEADER_WORDS) for part in chunk.head)
    starts = [0, *(end + 1 for end in run.ends[:-1])]
    sizes = [
        (end - start) * body + length for start, end, length in zip(starts, run.ends, run.end_lengths, strict=True)
    ]
    words = [chunk.first_word(), *chunk.further_words().tolist()]
    return [_believed(word, size) for word, size in zip(words, [before + sizes[0], *sizes[1:]], strict=True)]


def _believed(word: int, size: int) -> int:
    count = word & MAX_RECORDS
    return count if layout_of(word) <= LAST_LAYOUT and COUNT_BYTES + LENGTH_BYTES * count <= size else 0


def message_flags(chunk: Chunk) -> int:
    """Which kinds of messages, besides plain ones, are in a chunk."""
    flags = _flag(chunk.first_word())
    if chunk.count > 1:
        words = chunk.further_words()
        if (words >> _LAYOUT).any():
            for word in np.unique(words).tolist():
                flags |= _flag(word)
    return flags


def _flag(word: int) -> int:
    layout = layout_of(word)
    if layout <= LAST_LAYOUT:
        return EntryFlag.STAGED if layout & LABELLED else 0
    return EntryFlag.STATES if word == FIRST_WORD else 0


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
    if install.before or install.ledger:
        fields.append(install.before)
    if install.ledger:
        fields.append(install.ledger)
    packed: bytes = msgpack.packb(fields)
    return packed


def install_of(payload: memoryview) -> Install:
    view_id, members, names, transitional, joined, departed, branches, *more = _unpacked(payload)
    before, ledger = more[0] if more else (), more[1] if len(more) > 1 else b""
    start, leader, leader_seq = view_id
    view = View(id=ViewId(Timestamp(start), MemberId(leader), leader_seq), members=tuple(members), names=tuple(names))
    return Install(
        view,
        transitional=tuple(transitional),
        joined=tuple(joined),
        departed=tuple(Departure(MemberId(member), name, reason) for member, name, reason in departed),
        branches=tuple(branches),
        before=tuple((MemberId(member), seq) for member, seq in before),
        ledger=ledger,
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
