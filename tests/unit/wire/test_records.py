from __future__ import annotations

import struct
from collections.abc import Sequence

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.wire.headers import Headers, decode_headers, encode_headers
from intergroup_core.wire.labels import encode_label
from intergroup_core.wire.records import (
    RecordBatch,
    Rows,
    label_in,
    layout_of,
    pack_records,
    pack_rows,
    unpack_records,
    unpack_rows,
)
from tests.builders import laid_out, packed
from tests.log_builders import a_label

LABEL = encode_label(a_label())


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
    count = len(payload) // width
    rows = list(payload.rows(count, width))
    assert [stop for _, stop, _ in rows] == [start for start, _, _ in rows[1:]] + [count]
    assert all(len(content) == (stop - start) * width for start, stop, content in rows)
    assert b"".join(content.tobytes() for _, _, content in rows) == whole[: count * width]


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
        struct.pack("<II", 0x08_000001, 4) + b"next",
        struct.pack("<II", 0x81_000001, 4) + b"next",
        struct.pack("<II", 0x01_000001, 4) + b"next",
        laid_out([b"v"], label=b"none"),
        laid_out([b"v"], label=LABEL)[:-1],
        laid_out([b"v"], label=LABEL) + b"\0",
        laid_out([b"v"], label=LABEL)[: 8 + len(LABEL)],
        struct.pack("<II", 0x01_000001, 0) + struct.pack("<I", 1) + b"v",
        struct.pack("<II", 0x01_000001, 0xFFFFFFFF) + LABEL + struct.pack("<I", 1) + b"v",
        struct.pack("<I", 0x02_000001),
        struct.pack("<II", 0x02_000001, 1) + b"v",
        struct.pack("<III", 0x02_000001, 0xFFFFFFFE, 3) + b"v",
        struct.pack("<III", 0x02_000001, 1, 0xFFFFFFFF) + b"v",
        struct.pack("<III", 0x04_000001, 0xFFFFFFFF, 1) + b"v",
        laid_out([b"v"], keys=[b"k"], headers=[b"h"])[:-1],
        laid_out([b"v"], keys=[b"k"], headers=[b"h"]) + b"v",
        packed([b"ab", b"cd"])[:-1],
        packed([b"ab", b"cd"]) + b"\0",
    ],
)
def test_a_payload_whose_lengths_do_not_add_up_has_no_records(payload: bytes) -> None:
    assert unpack_records(octets(payload)) is None
    assert unpack_rows(octets(payload)) is None


def a_record_batch(records: Sequence[bytes]) -> RecordBatch:
    offsets = np.concatenate(([0], np.cumsum([len(record) for record in records]))).astype(np.int64)
    return RecordBatch(offsets, octets(b"".join(records)))


def shown_keys(rows: Rows) -> list[bytes | None] | None:
    if rows.keys is None:
        return None
    keys, nulls = rows.keys.to_list(), rows.nulls
    return list(keys) if nulls is None else [None if null else key for key, null in zip(keys, nulls, strict=True)]


some_bytes = st.binary(max_size=12)
some_rows = st.lists(st.tuples(some_bytes, st.none() | some_bytes, some_bytes), max_size=12)


@given(some_rows, st.booleans(), st.booleans(), st.booleans())
def test_rows_come_back_with_all_they_have(
    rows: list[tuple[bytes, bytes | None, bytes]], keyed: bool, headed: bool, labelled: bool
) -> None:
    values, keys, headers = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    label = LABEL if labelled else b""
    payload = pack_rows(
        Rows(
            a_record_batch(values),
            a_record_batch([key or b"" for key in keys]) if keyed else None,
            np.array([key is None for key in keys], dtype=np.bool_) if keyed else None,
            a_record_batch(headers) if headed else None,
        ),
        label,
    )
    written = payload.slice(0, len(payload)).tobytes()
    assert written == laid_out(values, keys=keys if keyed else None, headers=headers if headed else None, label=label)
    found = unpack_rows(octets(written))
    assert found is not None
    assert (found.values.to_list(), shown_keys(found)) == (values, keys if keyed else None)
    assert (found.headers.to_list() if found.headers is not None else None) == (headers if headed else None)
    assert label_in(octets(written)) == label
    assert layout_of(int.from_bytes(written[:4], "little")) == labelled | keyed << 1 | headed << 2
    batch = unpack_records(octets(written))
    assert batch is not None
    assert batch.to_list() == values


def test_rows_out_of_the_midst_of_a_column_are_packed() -> None:
    column = a_record_batch([b"one", b"two", b"three", b"four"])
    midst = RecordBatch(column.offsets[1:4], column.data)
    payload = pack_rows(Rows(midst, midst))
    assert payload.slice(0, len(payload)).tobytes() == laid_out([b"two", b"three"], keys=[b"two", b"three"])


@given(st.binary(max_size=80), st.data())
def test_whatever_a_payload_holds_nothing_is_raised(content: bytes, data: st.DataObject) -> None:
    whole = laid_out([content, b"x"], keys=[None, content], headers=[b"", content], label=LABEL)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :]
    for body in (content, struct.pack("<I", data.draw(st.integers(0, 7)) << 24 | 2) + content, whole[:at], changed):
        rows = unpack_rows(octets(body))
        label_in(octets(body))
        assert rows is None or len(rows.values.data) == rows.values.offsets[-1]


@pytest.mark.parametrize(
    "headers", [(), (("key", b"value"),), (("Schlüssel", None), ("Schlüssel", b""), ("", b"\xff" * 300))]
)
def test_headers_come_back_as_they_were(headers: Headers) -> None:
    assert decode_headers(encode_headers(headers)) == headers


@pytest.mark.parametrize(
    "content", [1, [1], [["a"]], [["a", b"b", b"c"]], [[b"a", b"b"]], [["a", "b"]], {"a": b"b"}, [["a", 1]]]
)
def test_what_is_not_headers_is_none(content: object) -> None:
    packed: bytes = msgpack.packb(content)
    assert decode_headers(packed) == decode_headers(packed[:-1]) == decode_headers(packed + b"\0") == ()


def test_a_batch_of_nothing_has_nothing() -> None:
    batch = RecordBatch(np.zeros(1, dtype=np.int64), octets(b""))
    assert len(batch) == 0
    assert batch.to_list() == []
