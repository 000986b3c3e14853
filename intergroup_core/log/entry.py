"""The fixed header of every entry of a log: 128 bytes, little-endian, sixteen 64-bit words.

    word 0   magic u32 | format u8 | kind u8 | flags u16
    word 1   payload length u32 | synced u32: words of this segment that were durable when the entry was written
    word 2   entry number, counted from 0 in a log
    word 3   place: messages and views of the log before it
    word 4   source u64                      of a view: its leader
    word 5   first seq u64                   of a view: its leader's sequence
    word 6   last seq u64
    word 7   first timestamp u64             by which its first message is ordered
    word 8   last timestamp u64
    word 9   messages u32 | records u32      as their senders state them
    word 10  frames u32 | runs u16 | words of a frame of its last run u16
    word 11  chain: the digest of everything before it
    word 12  its own digest
    word 13  log id
    word 14  checksum of the payload
    word 15  checksum of words 0 to 14

A payload is padded with zeros to whole words; its length is exact. A gap, and a view that is carried into a new
segment, have in words 4 to 8 what came last before them.
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag
from typing import NamedTuple

from intergroup_core.errors import LogFormat
from intergroup_core.log.digest import checksum

FORMAT = 1
MAGIC = int.from_bytes(b"IGLE", "little")
MAGIC_BYTES = struct.pack("<IB", MAGIC, FORMAT)
ENTRY_BYTES = 128
MAX_PAYLOAD_BYTES = 1 << 30
"""Of one entry, so that offsets in an Arrow batch have 31 bits; a delivered chunk is far smaller."""
END_TAG = b"\xffTHE END"
"""A whole word, which no header begins with."""
UNKNOWN_RECORDS = (1 << 32) - 1
"""More records than the field can say."""

_HEADER = struct.Struct("<IBBHIIQQQQQQQIIIHHQQQQ")
_CHECK = struct.Struct("<Q")
_NUMBER = slice(16, 24)
assert _HEADER.size + _CHECK.size == ENTRY_BYTES


class Kind(IntEnum):
    """Append only: a tag once given is never reused."""

    DATA = 1
    VIEW = 2
    GAP = 3


class EntryFlag(IntFlag):
    """Bits of the flags field."""

    CARRIED = 1
    """A view that was installed in an earlier segment, repeated so that this one can be read by itself."""
    STAGED = 2
    """Messages with a label are among those of a data entry."""
    STATES = 4
    """Statements are."""


_CARRIED = int(EntryFlag.CARRIED)
_STAGED = int(EntryFlag.STAGED)
_STATES = int(EntryFlag.STATES)


class EntryHeader(NamedTuple):
    """One entry without its payload."""

    kind: int
    flags: int
    payload_bytes: int
    synced_words: int
    entry: int
    place: int
    source: int
    first_seq: int
    last_seq: int
    first_timestamp: int
    last_timestamp: int
    messages: int
    records: int
    frames: int
    runs: int
    frame_words: int
    chain: int
    digest: int
    log: int
    payload_checksum: int

    @property
    def carried(self) -> bool:
        return bool(self.flags & _CARRIED)

    @property
    def staged(self) -> bool:
        return bool(self.flags & _STAGED)

    @property
    def states(self) -> bool:
        return bool(self.flags & _STATES)

    @property
    def size(self) -> int:
        """Bytes of the entry, padding included."""
        return ENTRY_BYTES + (self.payload_bytes + 7 & ~7)

    @property
    def next_place(self) -> int:
        """What the place of the following entry is."""
        if self.kind == Kind.DATA:
            return self.place + self.messages
        return self.place + (self.kind == Kind.VIEW and not self.carried)

    def packed(self) -> bytes:
        content = _HEADER.pack(MAGIC, FORMAT, *self)
        return content + _CHECK.pack(checksum(content))


def header_at(data: memoryview, offset: int) -> EntryHeader | None:
    """The header at an offset, None where there is none that is sound and of this format."""
    header = bytes(data[offset : offset + ENTRY_BYTES])  # once: in a file that was used before it may just be written
    content, stated = header[: _HEADER.size], header[_HEADER.size :]
    if len(stated) < _CHECK.size or content[: len(MAGIC_BYTES)] != MAGIC_BYTES:
        return None
    if _CHECK.unpack(stated)[0] != checksum(content):
        return None
    return EntryHeader(*_HEADER.unpack(content)[2:])


def end_mark(first: int) -> bytes:
    """Stands behind the last entry in a file that was used before, in front of what is left of its old entries.

    It names the segment, by its first entry: an older mark may be left of the segment that the file was.
    """
    return END_TAG + first.to_bytes(8, "little")


def ends_at(data: memoryview, offset: int, first: int) -> bool:
    """Whether the entries of a segment in a file that was used before end here."""
    mark = end_mark(first)
    return data[offset : offset + len(mark)] == mark


def is_followed(data: memoryview, offset: int, entry: int, first: int) -> bool:
    """Whether something stands at an offset, behind all before it, that shows that this was written whole.

    That the file ends there shows nothing: it may have had that length before.
    """
    header = bytes(data[offset : offset + ENTRY_BYTES])
    if header[: len(MAGIC_BYTES)] == MAGIC_BYTES:
        return int.from_bytes(header[_NUMBER], "little") == entry
    return ends_at(data, offset, first)


def check_kind(header: EntryHeader, file: str, offset: int) -> Kind:
    """The kind of a sound entry; one that this version does not know is not skipped."""
    try:
        return Kind(header.kind)
    except ValueError:
        raise LogFormat(
            f"{file} has an entry of kind {header.kind} at offset {offset}, which format {FORMAT} does not know; "
            "read it with the version of intergroup that wrote it"
        ) from None
