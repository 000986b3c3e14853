"""From received bytes to checked runs and messages: every frame is checked before anything looks inside.

A buffer of many equal frames is checked by a few numpy operations; a frame that stands alone by a struct.
Whatever is wrong is dropped and counted under its cause; nothing here raises on what came from the network.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intergroup_core.config import HEADER_BYTES
from intergroup_core.counters import Counters
from intergroup_core.ids import MAX_TIMESTAMP, MemberId, Timestamp
from intergroup_core.wire.checksum import Words, check_frame, check_frames, scan_frames
from intergroup_core.wire.control import decode_change, decode_control
from intergroup_core.wire.exchange import Exchange, Repair
from intergroup_core.wire.header import (
    FLAG_SHIFT,
    FRAGMENT_SHIFT,
    HEADER,
    HEADER_WORDS,
    KNOWN_FLAGS,
    LENGTH_SHIFT,
    MAGIC,
    MAGIC_VERSION,
    MAX_FRAGMENT,
    MAX_FRAME_BYTES,
    MAX_SEQ,
    MAX_STORED_BYTES,
    TYPE_SHIFT,
    Flag,
    FrameType,
)
from intergroup_core.wire.hierarchy import HierarchyMessage
from intergroup_core.wire.hierarchy_codec import HIERARCHY_TYPES, decode_hierarchy
from intergroup_core.wire.keeping import KEEPING_TYPES, KeepingMessage, decode_keeping
from intergroup_core.wire.messages import ControlMessage, KeepAlive
from intergroup_core.wire.run import Bytes, Run

Parsed = Run | KeepAlive | ControlMessage | HierarchyMessage | KeepingMessage

_LOW32 = np.uint64(0xFFFFFFFF)
_U32 = np.uint64(32)
_U48 = np.uint64(48)
_SHORT = np.uint64(0xFFFF)
_ONE = np.uint64(1)
FEW = 8
"""A buffer of so many frames is taken apart frame by frame."""
FEW_SEAMS = 16
FRAMES_PER_SEAM = 16
"""So many seams, and one more for so many frames, are looked at one by one; among more of them arrays cost less."""
_LAST = int(Flag.LAST)
_FULL = MAGIC_VERSION | FrameType.DATA << TYPE_SHIFT
_END = _FULL | _LAST << FLAG_SHIFT
"""The upper half of word 0 of a data frame, in mid-message and at its end."""
_FULL_DATA, _LAST_DATA = np.uint64(_FULL), np.uint64(_END)
_Stretch = tuple[int, int, list[int]]
"""Frames from one to before another whose headers count up from the first one's, which is in it as words."""
_TYPES = {int(kind): kind for kind in FrameType}
_RUN_STEP = np.array([[0], [0], [1], [1]], dtype=np.uint64)
"""From a frame to the next: same group and sender, next seq and timestamp."""
_STORED = (FrameType.DATA, FrameType.KEEP_ALIVE, FrameType.CHANGE)
"""Frames that a repair may carry."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What one wake-up read: an array that now belongs to the core, and (offset, length, segment) of each datagram.

    Offsets are multiples of eight; segment is the size of the datagrams the kernel coalesced there.
    """

    data: Bytes
    spans: list[tuple[int, int, int]]


def parse(arrival: Arrival, group_tag: int, counters: Counters) -> Iterator[Parsed]:
    """Everything sound in an arrival, in order of receipt."""
    usable = len(arrival.data) & ~7
    words: Words = arrival.data[:usable].view(np.uint64)
    spans = arrival.spans
    for offset, length, segment in spans if len(spans) == 1 else _blocks(spans):
        if segment % 8 or not HEADER_BYTES <= segment <= MAX_FRAME_BYTES:
            counters.drop("length", -(-length // segment) if length else 1)
            continue
        count = length // segment
        start, step = offset // 8, segment // 8
        if count > 1 and (count > FEW or _carries_data(words.item(start))):
            frames = words[start : start + count * step].reshape(count, step)
            yield from _parse_frames(frames, group_tag, counters, None)
        else:
            # One frame, or what several members said to each other at the same time.
            for at in range(start, start + count * step, step):
                parsed = _parse_frame(words[at : at + step], group_tag, counters, None)
                if parsed is not None:
                    yield parsed
        if rest := length - count * segment:
            if rest % 8:
                counters.drop("length")
                continue
            tail = start + count * step
            parsed = _parse_frame(words[tail : tail + rest // 8], group_tag, counters, None)
            if parsed is not None:
                yield parsed


def _carries_data(word: int) -> bool:
    """Whether a frame that begins with this word is of a kind that comes by the run."""
    return word >> 40 & 0xFF in (FrameType.DATA, FrameType.REPAIR)


def _blocks(spans: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Spans that lie end to end with the same segment, joined into one block."""
    at, total, size = spans[0] if spans else (0, 0, 0)
    for offset, length, segment in spans[1:]:
        if segment == size and offset == at + total and size and total % size == 0:
            total += length
        else:
            yield at, total, size
            at, total, size = offset, length, segment
    if spans:
        yield at, total, size


def _parse_frame(frame: Words, group_tag: int, counters: Counters, repair: Repair | None) -> Parsed | None:
    size = len(frame) * 8
    if size < HEADER_BYTES:
        counters.drop("length")
        return None
    (stated, magic, kind, flags, _epoch, view_tag, length, fragment, tag, sender, seq, timestamp) = HEADER.unpack_from(
        frame.data
    )
    if magic != MAGIC_VERSION:
        counters.drop("version" if magic & 0xF0 == MAGIC else "magic")
        return None
    if tag != group_tag:
        counters.drop("group")
        return None
    if not 0 <= size - HEADER_BYTES - length < 8 and not (kind == FrameType.DATA and length <= size - HEADER_BYTES):
        counters.drop("length")
        return None
    if not check_frame(frame, stated):
        counters.drop("checksum")
        return None
    if flags & ~KNOWN_FLAGS or seq > MAX_SEQ or timestamp > MAX_TIMESTAMP or not sender:
        counters.drop("field")
        return None
    if size > MAX_STORED_BYTES and kind in _STORED:
        counters.drop("length")
        return None
    if kind in (FrameType.DATA, FrameType.CHANGE):
        last = flags & _LAST
        change = kind == FrameType.CHANGE
        if not seq or not timestamp or (not last and (change or length != size - HEADER_BYTES)):
            counters.drop("field")
            return None
        if change and decode_change(_body(frame, length)) is None:
            counters.drop("body")
            return None
        ends, lengths = ([0], [length]) if last else ([], [])
        return Run(
            MemberId(sender),
            seq,
            timestamp,
            view_tag,
            frame.reshape(1, -1),
            fragment,
            ends,
            lengths,
            repair,
            change,
        )
    if kind == FrameType.KEEP_ALIVE:
        return KeepAlive(
            source=MemberId(sender),
            seq=seq,
            timestamp=Timestamp(timestamp),
            view_tag=view_tag,
            frame=frame.tobytes(),
            repaired=repair is not None,
        )
    if repair is not None:
        counters.drop("nested")
        return None
    if kind == FrameType.REPAIR:
        answered = Exchange.unpacked(seq, timestamp)
        inside = frame[HEADER_WORDS:]
        return _parse_frame(inside, group_tag, counters, Repair(MemberId(sender), answered))
    if FrameType.REQUEST <= kind <= FrameType.FAREWELL:
        message = decode_control(_TYPES[kind], MemberId(sender), view_tag, _body(frame, length))
        if message is None:
            counters.drop("body")
        return message
    if kind in HIERARCHY_TYPES:
        said = decode_hierarchy(_TYPES[kind], sender, _body(frame, length))
        if said is None:
            counters.drop("body")
        return said
    if kind in KEEPING_TYPES:
        asked = decode_keeping(_TYPES[kind], sender, _body(frame, length))
        if asked is None:
            counters.drop("body")
        return asked
    counters.drop("type")
    return None


def _body(frame: Words, length: int) -> bytes:
    return frame.tobytes()[HEADER_BYTES : HEADER_BYTES + length]


def _parse_frames(frames: Words, group_tag: int, counters: Counters, repair: Repair | None) -> Iterator[Parsed]:
    """Many frames of one size: data and repairs by vector, anything else one by one."""
    count = len(frames)
    if count <= FEW:
        # So few that arrays of what is in them cost more than they save.
        heads = frames[:, :HEADER_WORDS].tolist()
        runs = _runs(frames, zip(range(count), range(1, count + 1), heads, strict=True), None, group_tag, repair)
        if runs and check_frames(frames).all():
            yield from runs
            return
    sound, firsts, seams = scan_frames(frames)
    if len(seams) <= FEW_SEAMS + count // FRAMES_PER_SEAM and sound.all():
        bounds = itertools.pairwise((0, *seams.tolist(), count))
        stretches = ((at, stop, frames[at, :HEADER_WORDS].tolist()) for at, stop in bounds)
        runs = _runs(frames, stretches, firsts, group_tag, repair)
        if runs:
            yield from runs
            return
    yield from _parse_mixed(frames, sound, group_tag, counters, repair)


def _runs(
    frames: Words, stretches: Iterable[_Stretch], firsts: Words | None, group_tag: int, repair: Repair | None
) -> list[Run]:
    """The runs that stretches of frames make up; none unless all are data that may be taken."""
    body = frames.shape[1] * 8 - HEADER_BYTES
    if body > MAX_STORED_BYTES - HEADER_BYTES:
        return []
    runs: list[Run] = []
    begun: list[int] = []
    expected: list[int] = []
    """How the next header goes on, but for what it says of its own frame."""
    start = 0
    ends: list[int] = []
    lengths: list[int] = []

    def close(stop: int) -> None:
        _, second, _, source, seq, timestamp = begun
        runs.append(
            Run(
                MemberId(source),
                seq,
                timestamp,
                second & 0xFFFFFFFF,
                frames[start:stop],
                second >> FRAGMENT_SHIFT,
                ends,
                lengths,
                repair,
                first_words=None if firsts is None else firsts[start:stop],
            )
        )

    for at, stop, head in stretches:
        word, second, tag, source, seq, timestamp = head
        further = stop - at - 1
        if tag != group_tag or not source or not 0 < seq <= MAX_SEQ - further:
            return []
        if not 0 < timestamp <= MAX_TIMESTAMP - further:
            return []
        upper, length, fragment = word >> 32, second >> LENGTH_SHIFT & 0xFFFF, second >> FRAGMENT_SHIFT
        if fragment + further > MAX_FRAGMENT:
            return []
        if upper == _END:
            # A message that ends has no next fragment, so each of these is a stretch of its own.
            if further or length > body:
                return []
        elif upper != _FULL or length != body:
            return []
        view_tag = second & 0xFFFFFFFF
        if expected != [source, seq, timestamp, view_tag, fragment]:
            if at:
                close(at)
            begun, start, ends, lengths = head, at, [], []
        if upper == _END:
            ends.append(at - start)
            lengths.append(length)
            fragment = -1
        else:
            fragment += further
        expected = [source, seq + further + 1, timestamp + further + 1, view_tag, fragment + 1]
    close(len(frames))
    return runs


def _parse_mixed(
    frames: Words, good: NDArray[np.bool_], group_tag: int, counters: Counters, repair: Repair | None
) -> Iterator[Parsed]:
    """Many short messages or runs, or something that is not sound data among them."""
    head = np.ascontiguousarray(frames[:, :HEADER_WORDS].T)
    body = frames.shape[1] * 8 - HEADER_BYTES
    upper = head[0] >> _U32
    length = (head[1] >> _U32) & _SHORT
    last = upper == _LAST_DATA
    good &= head[2] == np.uint64(group_tag)
    good &= (last & (length <= np.uint64(body))) | ((upper == _FULL_DATA) & (length == np.uint64(body)))
    good &= (head[4] - _ONE) < np.uint64(MAX_SEQ)
    good &= (head[5] - _ONE) < np.uint64(MAX_TIMESTAMP)
    good &= head[3] != 0
    good &= body <= MAX_STORED_BYTES - HEADER_BYTES
    if not good.all():
        yield from _sort_out(frames, good, group_tag, counters, repair)
        return
    fragment = head[1] >> _U48
    for start, stop in _stretches(head, fragment, last):
        yield _make_run(frames, head, fragment, length, last, start, stop, repair)


def _stretches(head: Words, fragment: Words, last: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where sender, view, order or fragments stop being consecutive, a run ends."""
    count = head.shape[1]
    step = head[:, 1:] - head[:, :-1]
    joined = (step[2:] == _RUN_STEP).all(axis=0)
    joined &= (step[1] & _LOW32) == 0
    joined &= fragment[1:] == np.where(last[:-1], np.uint64(0), fragment[:-1] + _ONE)
    breaks = (np.flatnonzero(~joined) + 1).tolist()
    return list(zip([0, *breaks], [*breaks, count], strict=True))


def _make_run(
    frames: Words,
    head: Words,
    fragment: Words,
    length: Words,
    last: NDArray[np.bool_],
    start: int,
    stop: int,
    repair: Repair | None,
) -> Run:
    ends = np.flatnonzero(last[start:stop])
    return Run(
        MemberId(int(head[3, start])),
        int(head[4, start]),
        int(head[5, start]),
        int(head[1, start] & _LOW32),
        frames[start:stop],
        int(fragment[start]),
        ends.tolist(),
        length[start:stop][ends].tolist(),
        repair,
    )


def _sort_out(
    frames: Words, good: NDArray[np.bool_], group_tag: int, counters: Counters, repair: Repair | None
) -> Iterator[Parsed]:
    """A buffer in which not every frame is sound data: sound stretches by vector, the others one at a time."""
    if repair is None and not good.any() and _all_repairs(frames, group_tag):
        inner = frames[:, HEADER_WORDS:]
        yield from _parse_frames(inner, group_tag, counters, _repair_of(frames))
        return
    edges = np.flatnonzero(good[1:] != good[:-1]) + 1
    bounds = [0, *edges.tolist(), len(good)]
    for start, stop in itertools.pairwise(bounds):
        if good[start] and stop - start > 1:
            yield from _parse_frames(frames[start:stop], group_tag, counters, repair)
            continue
        for index in range(start, stop):
            parsed = _parse_frame(np.ascontiguousarray(frames[index]), group_tag, counters, repair)
            if parsed is not None:
                yield parsed


def _repair_of(frames: Words) -> Repair:
    """Who sent these repairs and in answer to what, where that is the same for all of them."""
    sender, seq, timestamp = frames[0, 3:HEADER_WORDS].tolist()
    alike = bool((frames[:, 3:HEADER_WORDS] == frames[0, 3:HEADER_WORDS]).all())
    return Repair(MemberId(sender), Exchange.unpacked(seq, timestamp) if alike else None)


def _all_repairs(frames: Words, group_tag: int) -> bool:
    """Whether every frame is a sound repair that carries a whole frame."""
    inner_bytes = (frames.shape[1] - HEADER_WORDS) * 8
    if inner_bytes < HEADER_BYTES:
        return False
    wanted = MAGIC_VERSION | FrameType.REPAIR << TYPE_SHIFT | _LAST << FLAG_SHIFT
    upper = (frames[:, 0] >> _U32) & np.uint64(0xFFFFFF)
    whole = ((frames[:, 1] >> np.uint64(LENGTH_SHIFT)) & _SHORT) == np.uint64(inner_bytes)
    ours = (frames[:, 2] == np.uint64(group_tag)) & (frames[:, 3] != 0)
    ours &= (frames[:, 4] <= np.uint64(MAX_SEQ)) & (frames[:, 5] <= np.uint64(MAX_TIMESTAMP))
    return bool(((upper == np.uint64(wanted)) & whole & ours).all() and check_frames(frames).all())
