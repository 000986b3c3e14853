from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.wire.records import RecordBatch, pack_records, unpack_records
from tests.builders import packed


def octets(data: bytes) -> np.ndarray:  # type: ignore[type-arg]
    return np.frombuffer(data, dtype=np.uint8)


def written(records: list[bytes]) -> bytes:
    payload = pack_records(records)
    return payload.slice(0, len(payload)).tobytes()


@given(st.lists(st.binary(max_size=60), max_size=40))
def test_records_come_back_as_they_were(records: list[bytes]) -> None:
    batch = unpack_records(octets(written(records)))
    assert batch is not None
    assert batch.to_list() == records
    assert len(batch) == len(records)


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_a_payload_is_a_count_then_lengths_then_bytes(records: list[bytes]) -> None:
    assert written(records) == packed(records)


def test_many_records_of_many_sizes_come_back() -> None:
    records = [bytes([size % 256]) * size for size in range(2_000)]
    batch = unpack_records(octets(written(records)))
    assert batch is not None
    assert batch.to_list() == records
    assert batch.offsets.dtype == np.int64
    assert batch.offsets[-1] == len(batch.data) == sum(map(len, records))


@given(st.binary(max_size=40), st.data())
def test_a_payload_can_be_read_in_any_slices_and_rows(content: bytes, data: st.DataObject) -> None:
    payload = pack_records([content, content])
    whole = packed([content, content])
    start = data.draw(st.integers(0, len(payload)))
    stop = data.draw(st.integers(start, len(payload)))
    assert payload.slice(start, stop).tobytes() == whole[start:stop]
    width = data.draw(st.integers(1, len(payload)))
    rows = np.zeros((len(payload) // width, width), dtype=np.uint8)
    payload.copy_rows(rows)
    assert rows.tobytes() == whole[: rows.size]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\1\0\0",
        struct.pack("<I", 1),
        struct.pack("<II", 1, 5) + b"four",
        struct.pack("<II", 1, 3) + b"four",
        struct.pack("<III", 2, 0xFFFFFFFF, 5) + b"four",
        struct.pack("<I", 0) + b"more",
        struct.pack("<II", 0xFFFFFFFF, 0),
        struct.pack("<II", 0x01_000001, 4) + b"next",
        packed([b"ab", b"cd"])[:-1],
        packed([b"ab", b"cd"]) + b"\0",
    ],
)
def test_a_payload_whose_lengths_do_not_add_up_has_no_records(payload: bytes) -> None:
    assert unpack_records(octets(payload)) is None


def test_a_batch_of_nothing_has_nothing() -> None:
    batch = RecordBatch(np.zeros(1, dtype=np.int64), octets(b""))
    assert len(batch) == 0
    assert batch.to_list() == []
