"""Checksums of entries, and the digests that chains of messages are compared by.

A chain's digest is a sum of one number for every frame and view, so the digest of a range is a difference of two, and
the same messages have the same digest however a site bundled them. Order is not lost by that: a frame's seq and
timestamp, and with them its place, are in its checksum.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from intergroup_core.ids import MemberId, View
from intergroup_core.wire import native
from intergroup_core.wire.checksum import Words

MASK64 = (1 << 64) - 1

_SEQ_FACTOR = 0x9E3779B97F4A7C15
_SENDER_FACTOR = 0xC2B2AE3D27D4EB4F
_RAMP = np.arange(65_536, dtype=np.uint64) * np.uint64(_SEQ_FACTOR)
_FIRST, _SECOND, _THIRD = np.uint64(30), np.uint64(27), np.uint64(31)
_MIX_ONE, _MIX_TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def checksum(content: bytes | memoryview) -> int:
    """64 bits of BLAKE2b, for headers and what is small."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def frames_checksum(first_words: Iterable[Words], beside: bytes = b"") -> int:
    """Of the first words of frames, run by run, which hold their checksums, and of what is beside them in the payload.

    Frames were checked when they were received, so nothing is summed again to append them; whoever reads them checks
    both (docs/decisions/0011).
    """
    total = hashlib.blake2b(beside, digest_size=8)
    for words in first_words:
        total.update(words.tobytes())
    return int.from_bytes(total.digest(), "little")


def frames_digest(source: MemberId, seq: int, first_words: Words) -> int:
    """The sum over frames with consecutive seqs of a number made from sender, seq and the frame's checksum."""
    if native.compiled is not None:
        return native.compiled.digest(first_words, (seq * _SEQ_FACTOR + source * _SENDER_FACTOR) & MASK64)
    if len(first_words) == 1:
        return _mixed(int(first_words[0]) ^ (seq * _SEQ_FACTOR + source * _SENDER_FACTOR) & MASK64)
    total = 0
    for start in range(0, len(first_words), len(_RAMP)):
        piece = first_words[start : start + len(_RAMP)]
        base = np.uint64(((seq + start) * _SEQ_FACTOR + source * _SENDER_FACTOR) & MASK64)
        mixed = _RAMP[: len(piece)] + base
        mixed ^= piece
        moved = mixed >> _FIRST
        mixed ^= moved
        mixed *= _MIX_ONE
        mixed ^= np.right_shift(mixed, _SECOND, out=moved)
        mixed *= _MIX_TWO
        mixed ^= np.right_shift(mixed, _THIRD, out=moved)
        total += int(np.add.reduce(mixed))
    return total & MASK64


def _mixed(word: int) -> int:
    """The same of one frame, cheaper than of a run of one."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK64
    return word ^ word >> 31


def view_digest(view: View) -> int:
    """Of a view's id and members; what people call them may differ from place to place."""
    members = ",".join(f"{member:016x}" for member in sorted(view.members))
    return checksum(f"{view.id}:{members}".encode())
