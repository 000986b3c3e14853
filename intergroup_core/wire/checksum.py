"""A multilinear checksum over 64-bit words, computed for a whole run of frames at once.

The sum of word times weight modulo 2^64, of which the upper half is kept. The weights are odd and chosen so
that any single flipped bit changes the result. It is weaker for errors that touch only the topmost bits of
several words; docs/decisions/0002 says how much, and why it is this and not a CRC.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from intergroup_core.wire.header import MAX_FRAME_BYTES

Words = NDArray[np.uint64]

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def _make_weights(count: int) -> Words:
    """Odd constants from the splitmix64 sequence."""
    with np.errstate(over="ignore"):
        z = (np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))) | np.uint64(1)


WEIGHTS = _make_weights(MAX_FRAME_BYTES // 8)
_FIRST_WEIGHT = int(WEIGHTS[0])
_MASK64 = (1 << 64) - 1


def seal_frames(frames: Words) -> None:
    """Write the checksum of every frame into the lower half of its first word, which must be zero."""
    sums = np.einsum("ij,j->i", frames, WEIGHTS[: frames.shape[1]])
    frames[:, 0] |= sums >> _HALF


def check_frames(frames: Words) -> NDArray[np.bool_]:
    """Which frames carry the checksum of their own content."""
    sums = np.einsum("ij,j->i", frames, WEIGHTS[: frames.shape[1]])
    stated = frames[:, 0] & _LOW
    sums -= stated * WEIGHTS[:1]
    sums >>= _HALF
    good: NDArray[np.bool_] = sums == stated
    return good


def seal_frame(frame: Words) -> None:
    """The same for one frame, cheaper than a run of one."""
    frame[0] |= np.uint64(int(np.dot(frame, WEIGHTS[: len(frame)])) >> 32)


def check_frame(frame: Words, stated: int) -> bool:
    """Whether one frame carries the checksum of its own content."""
    total = int(np.dot(frame, WEIGHTS[: len(frame)]))
    return ((total - stated * _FIRST_WEIGHT) & _MASK64) >> 32 == stated
