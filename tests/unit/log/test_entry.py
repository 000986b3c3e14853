"""Headers of entries: fixed layout, checked as a whole."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.errors import LogFormat
from intergroup_core.log.entry import ENTRY_BYTES, EntryFlag, EntryHeader, Kind, check_kind, header_at

SIZES = dict.fromkeys(EntryHeader._fields, 64) | {
    "kind": 8,
    "flags": 16,
    "payload_bytes": 32,
    "synced_words": 32,
    "messages": 32,
    "records": 32,
    "frames": 32,
    "runs": 16,
    "frame_words": 16,
}
headers = st.builds(EntryHeader, **{name: st.integers(0, (1 << bits) - 1) for name, bits in SIZES.items()})


def a_header(**fields: int) -> EntryHeader:
    return EntryHeader(**(dict.fromkeys(EntryHeader._fields, 0) | fields))


@given(headers)
def test_a_header_is_read_as_it_was_written(header: EntryHeader) -> None:
    packed = header.packed()
    assert len(packed) == ENTRY_BYTES
    assert header_at(memoryview(bytes(8) + packed), 8) == header


@given(headers, st.integers(0, ENTRY_BYTES * 8 - 1))
def test_no_flipped_bit_goes_unnoticed(header: EntryHeader, bit: int) -> None:
    packed = bytearray(header.packed())
    packed[bit // 8] ^= 1 << bit % 8
    assert header_at(memoryview(packed), 0) is None


def test_a_header_that_is_not_whole_is_none() -> None:
    assert header_at(memoryview(a_header(kind=1).packed()[:-1]), 0) is None
    assert header_at(memoryview(b""), 0) is None


def test_a_header_of_another_format_is_none() -> None:
    packed = a_header(kind=1).packed()
    assert struct.unpack_from("<IB", packed) == (int.from_bytes(b"IGLE", "little"), 1)
    assert header_at(memoryview(packed[:4] + b"\x02" + packed[5:]), 0) is None


def test_an_unknown_kind_names_the_format_and_the_place() -> None:
    with pytest.raises(LogFormat, match=r"f has an entry of kind 9 at offset 256, which format 1 does not know"):
        check_kind(a_header(kind=9), "f", 256)


def test_an_entry_ends_at_a_whole_word() -> None:
    assert [a_header(payload_bytes=size).size for size in (0, 1, 8, 9)] == [128, 136, 136, 144]


def test_places_count_messages_and_views_but_not_what_is_carried() -> None:
    assert a_header(kind=Kind.DATA, place=5, messages=3).next_place == 8
    assert a_header(kind=Kind.VIEW, place=5).next_place == 6
    assert a_header(kind=Kind.VIEW, place=5, flags=EntryFlag.CARRIED).next_place == 5
    assert a_header(kind=Kind.GAP, place=5).next_place == 5
