"""A multilinear checksum over 32-bit halves of words, computed for a whole run of frames at once.

The sum of half times weight modulo 2^64, of which the upper 32 bits are kept: with 64-bit weights that is a universal
hash (Lemire and Kaser), so whatever happened to a frame, the chance that its checksum does not show it is about 2^-32.
docs/decisions/0002 says why it is this and not a CRC. Runs are summed by `native.py` where it was compiled, else here.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from intergroup_core.wire import native
from intergroup_core.wire.header import FRAGMENT_SHIFT, HEADER_WORDS, MAX_FRAME_BYTES

Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]
Frame = bytes | bytearray | memoryview | Words
"""One frame, its words end to end."""

PIECE_WORDS = 65_536
"""Words whose upper halves are laid out at a time: many, so that calls are cheap, but no more than half a megabyte."""
FEW_WORDS = 512
"""Up to so many words of frames, one product of all their halves is cheaper than two without a copy."""

_COUNTED_UP = np.array([[0], [1 << FRAGMENT_SHIFT], [0], [0], [1], [1]], dtype=np.uint64)
"""From a header to the next within a message, without checksums."""
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_CHECKSUM = struct.Struct("<I")
_MASK64 = (1 << 64) - 1
_MAX_WORDS = MAX_FRAME_BYTES // 8


def _make_weights(count: int) -> Words:
    """Odd constants from the splitmix64 sequence."""
    with np.errstate(over="ignore"):
        z = (np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))) | np.uint64(1)


# A word counts whole by one weight and its upper half once more by another: the lower half then has the first weight
# and the upper half the second plus 2^32 times the first, and these two are independent of each other.
WEIGHTS, UPPER_WEIGHTS = np.ascontiguousarray(_make_weights(2 * _MAX_WORDS).reshape(_MAX_WORDS, 2).T)
_FIRST_WEIGHT = int(WEIGHTS[0])
# The weights of the halves themselves, as they lie in memory: a short frame costs one product less by them.
_HALF_WEIGHTS = np.ascontiguousarray(np.stack((WEIGHTS, UPPER_WEIGHTS + (WEIGHTS << _HALF))).T).reshape(-1)


_spare: list[Words] = []
"""Memory for upper halves, kept from call to call; as many as there were calls at the same time."""


def _sums(frames: Words) -> Words:
    count, words = frames.shape
    if count * words <= FEW_WORDS:
        few: Words = frames.view(np.uint32).dot(_HALF_WEIGHTS[: 2 * words])
        return few
    sums: Words = np.einsum("ij,j->i", frames, WEIGHTS[:words])
    uppers = np.empty(count, dtype=np.uint64)
    weights = UPPER_WEIGHTS[:words]
    try:
        room = _spare.pop()
    except IndexError:  # a first call, or one from another thread
        room = np.empty(PIECE_WORDS, dtype=np.uint64)
    step = PIECE_WORDS // words
    for start in range(0, count, step):
        piece = frames[start : start + step]
        upper = room[: piece.size].reshape(piece.shape)
        np.right_shift(piece, _HALF, out=upper)
        np.einsum("ij,j->i", upper, weights, out=uppers[start : start + step])
    _spare.append(room)
    sums += uppers
    return sums


def _sum(frame: Frame) -> int:
    """The same of one frame, cheaper than of a run of one."""
    if native.compiled is not None:
        return native.compiled.total(frame)
    halves = np.frombuffer(frame, dtype=np.uint32)
    total: int = halves.dot(_HALF_WEIGHTS[: len(halves)]).item()
    return total


def seal_frames(frames: Words) -> Words:
    """Write the checksum of every frame into the lower half of its first word, which must be zero; the first words."""
    if native.compiled is not None:
        first = np.empty(len(frames), dtype=np.uint64)
        native.compiled.seal(frames, first)
        return first
    first = _sums(frames)
    first >>= _HALF
    first |= frames[:, 0]
    frames[:, 0] = first
    return first


def check_frames(frames: Words) -> Flags:
    """Which frames carry the checksum of their own content."""
    if native.compiled is not None:
        sound = np.empty(len(frames), dtype=np.bool_)
        native.compiled.check(frames, sound)
        return sound
    return _agree(frames, frames[:, 0])


def scan_frames(frames: Words) -> tuple[Flags, Words, NDArray[np.int64]]:
    """The same, their first words, and the seams: where a header is not that of the frame before, counted up.

    Fragment, seq and timestamp are what counts up; checksums apart, all else stays.
    """
    count = len(frames)
    if native.compiled is not None:
        sound, firsts = np.empty(count, dtype=np.bool_), np.empty(count, dtype=np.uint64)
        seams = np.empty(count, dtype=np.int64)
        found = native.compiled.scan(frames, sound, firsts, seams)
        return sound, firsts, seams[:found]
    heads = frames[:, :HEADER_WORDS].T.copy()  # of one frame too, which is not to be changed
    firsts = heads[0].copy()
    heads[0] >>= _HALF
    seams = (heads[:, 1:] - heads[:, :-1] != _COUNTED_UP).any(axis=0).nonzero()[0]
    seams += 1
    return _agree(frames, firsts), firsts, seams


def _agree(frames: Words, first: Words) -> Flags:
    sums = _sums(frames)
    stated = first & _LOW
    sums -= stated * WEIGHTS[:1]
    sums >>= _HALF
    sound: Flags = sums == stated
    return sound


def seal_frame(frame: bytearray | memoryview) -> None:
    """Write the checksum of one frame, in whose place there must be zero."""
    _CHECKSUM.pack_into(frame, 0, _sum(frame) >> 32)


def check_frame(frame: Frame, stated: int) -> bool:
    """Whether one frame carries the checksum of its own content."""
    return ((_sum(frame) - stated * _FIRST_WEIGHT) & _MASK64) >> 32 == stated
