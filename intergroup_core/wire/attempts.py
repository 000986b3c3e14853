"""What one attempt staged, as a proposal names it: eight 64-bit words for each."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from intergroup_core.wire.fields import BadBody

MAX_ATTEMPTS = 65_536
"""Of one transaction."""
_WORDS = struct.Struct("<8Q")


class Staged(NamedTuple):
    """Messages of one sender, all of which must lie before a proposal."""

    attempt: int
    sender: int
    first_seq: int
    """Of the first frame of the first message."""
    last_seq: int
    first_timestamp: int
    """By which its first message is ordered."""
    last_timestamp: int
    messages: int
    rows: int


def packed_attempts(attempts: Sequence[Staged]) -> bytes:
    return b"".join(_WORDS.pack(*staged) for staged in attempts)


def attempts_of(value: object) -> tuple[Staged, ...]:
    if type(value) is not bytes or len(value) % _WORDS.size or len(value) > MAX_ATTEMPTS * _WORDS.size:
        raise BadBody
    return tuple(Staged(*words) for words in _WORDS.iter_unpack(value))
