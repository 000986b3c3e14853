from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgpack
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_intergroup.values import ValueDecoder
from tests.unit.connector.value_batches import decoded

MOMENT = datetime(2026, 5, 1, 12, 0, 0, 250, tzinfo=UTC)
TWO = pa.schema([("name", pa.string()), ("count", pa.int64()), ("bad", pa.binary())])


def read(kind: pa.DataType, value: Any) -> Any:
    decoder = ValueDecoder(pa.schema([("a", kind), ("bad", pa.binary())]), "msgpack", corrupt_column="bad")
    (row,) = decoded(decoder, [msgpack.packb({"a": value}, datetime=True)])
    return row["a"] if row["bad"] is None else "malformed"


@pytest.mark.parametrize(
    ("kind", "given_value", "value"),
    [
        (pa.int32(), 5, 5),
        (pa.float64(), 5, 5.0),
        (pa.float64(), 1.5, 1.5),
        (pa.bool_(), True, True),
        (pa.string(), "é", "é"),
        (pa.binary(), b"\xff", b"\xff"),
        (pa.timestamp("us", tz="UTC"), MOMENT, MOMENT),
        (pa.timestamp("us", tz="UTC"), "2026-05-01T14:00:00.00025+02:00", MOMENT),
        (pa.date32(), "2026-05-01", date(2026, 5, 1)),
        (pa.decimal128(10, 2), "1.25", Decimal("1.25")),
        (pa.decimal128(10, 2), 3, Decimal("3.00")),
        (pa.list_(pa.int64()), [1, None], [1, None]),
        (pa.struct([("x", pa.int64()), ("y", pa.int64())]), {"x": 1, "w": 2}, {"x": 1, "y": None}),
        (pa.map_(pa.int64(), pa.string()), {7: "x"}, [(7, "x")]),
        (pa.int64(), None, None),
    ],
)
def test_what_a_column_gets(kind: pa.DataType, given_value: Any, value: Any) -> None:
    assert read(kind, given_value) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int32(), 1 << 31),
        (pa.int64(), (1 << 64) - 1),
        (pa.int64(), 5.0),
        (pa.int64(), "5"),
        (pa.bool_(), 1),
        (pa.float64(), True),
        (pa.string(), b"x"),
        (pa.binary(), "x"),
        (pa.binary(), "aGk="),
        (pa.decimal128(10, 2), 1.25),
        (pa.decimal128(10, 2), "much"),
        (pa.timestamp("us"), MOMENT),
        (pa.timestamp("us", tz="UTC"), 5),
        (pa.map_(pa.int64(), pa.string()), {None: "x"}),
        (pa.map_(pa.int64(), pa.string()), {"7": "x"}),
        (pa.struct([("x", pa.int64())]), [1]),
    ],
)
def test_what_is_malformed(kind: pa.DataType, value: Any) -> None:
    assert read(kind, value) == "malformed"


def test_an_array_has_its_elements_in_the_order_of_the_schema() -> None:
    decoder = ValueDecoder(TWO, "msgpack", corrupt_column="bad")
    (row,) = decoded(decoder, [msgpack.packb(["x", 5])])
    assert row == {"name": "x", "count": 5, "bad": None}


@pytest.mark.parametrize("array", [[], ["x"], ["x", 5, 6], [5, "x"]])
def test_an_array_that_is_not_as_the_schema_is_malformed(array: list[object]) -> None:
    value = msgpack.packb(array)
    (row,) = decoded(ValueDecoder(TWO, "msgpack", corrupt_column="bad"), [value])
    assert row == {"name": None, "count": None, "bad": value}


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xc1",
        b"\xa5abc",
        msgpack.packb(5),
        msgpack.packb({"name": "x"}) + b"\x00",
        b"\x91" * 5_000,
        b"\x81\x90\x01",
        b"\xdf\xff\xff\xff\xff",
        msgpack.packb({"name": msgpack.Timestamp(1 << 60)}),
    ],
)
def test_what_is_no_record(value: bytes) -> None:
    (row,) = decoded(ValueDecoder(TWO, "msgpack", corrupt_column="bad"), [value])
    assert row == {"name": None, "count": None, "bad": value}


@given(values=st.lists(st.binary(max_size=30), max_size=5))
def test_no_value_raises(values: list[bytes]) -> None:
    assert len(decoded(ValueDecoder(TWO, "msgpack", corrupt_column="bad"), values)) == len(values)
