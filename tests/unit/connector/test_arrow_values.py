from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_intergroup.values import ValueDecoder
from tests.unit.connector.value_batches import decoded

SCHEMA = pa.schema([("name", pa.string()), ("count", pa.int64()), ("bad", pa.binary())])


def a_value(*batches: pa.RecordBatch) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def a_row(**columns: Any) -> bytes:
    arrays = {name: value if isinstance(value, pa.Array) else pa.array([value]) for name, value in columns.items()}
    return a_value(pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)))


def rows_of(*values: bytes) -> list[dict[str, object]]:
    return decoded(ValueDecoder(SCHEMA, "arrow", corrupt_column="bad"), values)


def test_columns_are_found_by_name() -> None:
    assert rows_of(a_row(count=5, name="x"), a_row(name="y", more=1.5, count=6), a_row(name="z")) == [
        {"name": "x", "count": 5, "bad": None},
        {"name": "y", "count": 6, "bad": None},
        {"name": "z", "count": None, "bad": None},
    ]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["x"], pa.large_string()),
        pa.array(["x"]).dictionary_encode(),
        pa.nulls(1),
        pa.array(["x"], pa.string_view()),
    ],
)
def test_other_forms_of_text_are_text(array: pa.Array) -> None:
    assert rows_of(a_row(name=array)) == [{"name": array.to_pylist()[0], "count": None, "bad": None}]


def test_narrower_and_wider_numbers_are_taken_as_far_as_they_fit() -> None:
    fits, too_large = pa.array([7], pa.uint64()), pa.array([1 << 63], pa.uint64())
    values = [a_row(count=pa.array([5], pa.int8())), a_row(count=fits), a_row(count=too_large)]
    assert rows_of(*values) == [
        {"name": None, "count": 5, "bad": None},
        {"name": None, "count": 7, "bad": None},
        {"name": None, "count": None, "bad": values[2]},
    ]


@pytest.mark.parametrize(
    "columns", [{"name": 5}, {"count": "5"}, {"count": 5.0}, {"name": b"x"}, {"count": True}, {"name": ["x"]}]
)
def test_another_type_is_malformed_even_where_arrow_would_cast_it(columns: dict[str, object]) -> None:
    value = a_row(**columns)
    good = a_row(name="y", count=1)
    assert rows_of(good, value, good)[1] == {"name": None, "count": None, "bad": value}


def test_a_value_has_one_row() -> None:
    one, two = pa.record_batch({"count": [1]}), pa.record_batch({"count": [1, 2]})
    none = one.slice(0, 0)
    several = [a_value(two), a_value(one, one), a_value(none), a_value(one, none, one)]
    assert [row["bad"] for row in rows_of(*several)] == several
    assert rows_of(a_value(none, one, none)) == [{"name": None, "count": 1, "bad": None}]


def test_a_column_that_is_there_twice_is_malformed() -> None:
    value = a_value(pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["count", "count"]))
    assert rows_of(value)[0]["bad"] == value


def test_rows_keep_their_places_whatever_schemas_come_between_them() -> None:
    values = [a_row(count=0), a_row(name="1"), b"junk", a_row(count=3), a_row(name="4", count="4"), a_row(name="5")]
    rows = rows_of(*values)
    assert [row["count"] for row in rows] == [0, None, None, 3, None, None]
    assert [row["name"] for row in rows] == [None, "1", None, None, None, "5"]
    assert [row["bad"] for row in rows] == [None, None, values[2], None, values[4], None]


def test_metadata_of_a_schema_makes_no_difference() -> None:
    plain = pa.record_batch({"count": [1]})
    values = [a_value(plain), a_value(plain.replace_schema_metadata({"a": "b"})), a_value(plain)]
    assert [row["count"] for row in rows_of(*values)] == [1, 1, 1]


def test_names_that_are_not_text_are_malformed() -> None:
    value = a_row(place=pa.array([{"xyz": 1}])).replace(b"xyz", b"\xff\xffz")
    schema = pa.schema([("place", pa.struct([("xyz", pa.int64())])), ("bad", pa.binary())])
    (row,) = decoded(ValueDecoder(schema, "arrow", corrupt_column="bad"), [value])
    assert row == {"place": None, "bad": value}


def test_dictionaries_of_their_own() -> None:
    values = [a_row(name=pa.array([text]).dictionary_encode()) for text in ("x", "y", "z")]
    assert [row["name"] for row in rows_of(*values)] == ["x", "y", "z"]


def test_types_that_only_arrow_has() -> None:
    schema = pa.schema([("took", pa.duration("us")), ("place", pa.struct([("x", pa.int64())]))])
    value = a_row(took=pa.array([5], pa.duration("us")), place=pa.array([{"x": 1}], pa.struct([("x", pa.int16())])))
    (row,) = decoded(ValueDecoder(schema, "arrow"), [value])
    assert row["place"] == {"x": 1}


@given(place=st.integers(0, 600), byte=st.integers(0, 255), cut=st.integers(0, 600))
def test_a_damaged_value_is_malformed_or_decoded_but_raises_nothing(place: int, byte: int, cut: int) -> None:
    good = a_row(name="some text", count=5)
    damaged = bytearray(good)
    damaged[place % len(damaged)] = byte
    rows = rows_of(good, bytes(damaged), good[: cut % len(good)], good)
    assert len(rows) == 4
    assert rows[0] == rows[3] == {"name": "some text", "count": 5, "bad": None}
