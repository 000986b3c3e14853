"""The fixed header of every frame: 48 bytes, little-endian, six 64-bit words.

    word 0   checksum u32 | magic and version u8 | type u8 | flags u8 | key epoch u8
    word 1   view tag u32 | payload length u16 | fragment u16
    word 2   group tag u64
    word 3   sender u64
    word 4   seq u64
    word 5   timestamp u64

Words let a whole received buffer be checked by a few numpy operations. A frame is padded with zeros to a
multiple of eight bytes; the payload length is exact.
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag

from intergroup_core.config import HEADER_BYTES

HEADER = struct.Struct("<IBBBBIHHQQQQ")
assert HEADER.size == HEADER_BYTES
HEADER_WORDS = HEADER_BYTES // 8

MAGIC = 0xB0
VERSION = 1
MAGIC_VERSION = MAGIC | VERSION

MAX_SEQ = (1 << 48) - 1
MAX_FRAGMENT = (1 << 16) - 1
MAX_FRAME_BYTES = 65_504
MAX_STORED_BYTES = MAX_FRAME_BYTES - HEADER_BYTES
"""Largest frame that a repair can carry; data and keep-alives beyond it are not taken."""


class FrameType(IntEnum):
    """Append only: a tag once given is never reused."""

    DATA = 1
    KEEP_ALIVE = 2
    REQUEST = 3
    REPAIR = 4
    REPORT = 5
    CHANGE = 6
    SOLICITATION = 7
    SPONSORSHIP = 8
    ADD_REQUEST = 9
    JOIN = 10
    FAILURE_BLOCK = 11
    RECOVERY_INFO = 12
    READY = 13
    MEMBERSHIP = 14
    VIEW_REQUEST = 15
    FAREWELL = 16
    LOCAL_CONTROL = 17
    COORDINATOR_CONTROL = 18
    GLOBAL_CONTROL = 19
    RING_QUERY = 20
    RING_ANSWER = 21
    COORDINATOR_LEAVE = 22
    SITE_LEAVE = 23
    KEEPER_QUERY = 24
    KEEPER_ANSWER = 25
    KEEPER_COMMIT = 26
    HOLDING_QUERY = 27
    HOLDING_ANSWER = 28


class Flag(IntFlag):
    """Bits of the flags byte."""

    LAST = 1
    """The last frame of its message."""


KNOWN_FLAGS = int(Flag.LAST)
TYPE_SHIFT, FLAG_SHIFT = 8, 16
"""Places of type and flags in the upper half of word 0."""
LENGTH_SHIFT, FRAGMENT_SHIFT = 32, 48
"""Places of payload length and fragment in word 1."""


def padded(length: int) -> int:
    """A length rounded up to whole words."""
    return (length + 7) & ~7
