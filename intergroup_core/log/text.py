"""Columns of text of fixed width, made of numbers without an object for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Octets = NDArray[np.uint8]
Numbers = NDArray[np.uint64]

POSITION_WIDTH = 16 + 1 + 16 + 1 + 16 + 1 + 8
_RECORD_AT = POSITION_WIDTH - 8
_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_QUADS: Octets = np.stack([_DIGITS[np.arange(65_536) >> shift & 15] for shift in (12, 8, 4, 0)], axis=1)
_QUAD_WORDS = np.ascontiguousarray(_QUADS).view(np.uint32).reshape(-1)
"""The four digits of every 16-bit number, as one word each."""
_DASH = ord("-")


def hex_digits(numbers: Numbers, digits: int) -> Octets:
    """A row of hexadecimal digits, a multiple of four, for each number."""
    quads = np.empty((len(numbers), digits // 4), dtype=np.uint32)
    for at in range(digits // 4):
        shift = np.uint64(4 * (digits - 4 * at - 4))
        quads[:, at] = _QUAD_WORDS[(numbers >> shift & np.uint64(0xFFFF)).astype(np.intp)]
    return quads.view(np.uint8)


def positions(
    places: Numbers, senders: Numbers, seqs: Numbers, counts: NDArray[np.int64], records: NDArray[np.int32]
) -> Octets:
    """The positions of records: for each message its place, sender and seq, repeated for as many records as it has."""
    rows = np.empty((len(places), POSITION_WIDTH), dtype=np.uint8)
    for at, numbers in ((0, places), (17, senders), (34, seqs)):
        rows[:, at : at + 16] = hex_digits(numbers, 16)
        rows[:, at + 16] = _DASH
    text = np.repeat(rows, counts, axis=0)
    text[:, _RECORD_AT:] = hex_digits(records.astype(np.uint64), 8)
    return text
