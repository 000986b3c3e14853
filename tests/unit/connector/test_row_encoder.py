"""What a sink makes of rows, and that a source makes the same rows of it again."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intergroup_core.errors import ConfigError, ValueMalformed
from intergroup_core.wire.headers import decode_headers
from pyspark_intergroup import row_encoder
from pyspark_intergroup.values import ValueDecoder
from tests.sizes import sized
from tests.unit.connector.value_batches import a_batch
from tests.unit.connector.writes import HEADERS, a_frame, a_write, encoded, values_of

MOMENT = pa.timestamp("us", "UTC")
EVERYTHING: dict[str, pa.DataType] = {
    "flag": pa.bool_(),
    "tiny": pa.int8(),
    "small": pa.int16(),
    "whole": pa.int32(),
    "long": pa.int64(),
    "single": pa.float32(),
    "double": pa.float64(),
    "exact": pa.decimal128(38, 18),
    "large": pa.decimal128(20, 0),
    "text": pa.string(),
    "bytes": pa.binary(),
    "moment": MOMENT,
    "local": pa.timestamp("us"),
    "day": pa.date32(),
    'odd "name\\': pa.string(),
    "list": pa.list_(pa.string()),
    "numbers": pa.list_(pa.list_(pa.float64())),
    "nested": pa.struct(
        [("a", pa.int32()), ("b", pa.struct([("c", pa.string()), ("d", pa.list_(pa.date32()))]))],
    ),
    "map": pa.map_(pa.string(), pa.struct([("x", pa.float64())])),
    "days": pa.map_(pa.date32(), pa.binary()),
    "amounts": pa.map_(pa.decimal128(9, 2), pa.int32()),
}
moments = st.datetimes()
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
doubles = st.floats(allow_nan=False)


def decimals(digits: int, places: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    return st.integers(-most, most).map(lambda number: Decimal(f"{number}E-{places}"))


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


ROWS = st.fixed_dictionaries(
    {
        "flag": some(st.booleans()),
        "tiny": some(integers(8)),
        "small": some(integers(16)),
        "whole": some(integers(32)),
        "long": some(integers(64)),
        "single": some(st.floats(width=32, allow_nan=False)),
        "double": some(doubles),
        "exact": some(decimals(38, 18)),
        "large": some(decimals(20, 0)),
        "text": some(texts),
        "bytes": some(st.binary(max_size=20)),
        "moment": some(moments.map(lambda moment: moment.replace(tzinfo=UTC))),
        "local": some(moments),
        "day": some(st.dates()),
        'odd "name\\': some(texts),
        "list": some(st.lists(some(texts), max_size=3)),
        "numbers": some(st.lists(some(st.lists(some(doubles), max_size=2)), max_size=2)),
        "nested": some(
            st.fixed_dictionaries(
                {
                    "a": some(integers(32)),
                    "b": some(
                        st.fixed_dictionaries({"c": some(texts), "d": some(st.lists(some(st.dates()), max_size=2))})
                    ),
                }
            )
        ),
        "map": some(
            st.dictionaries(texts, some(st.fixed_dictionaries({"x": some(doubles)})), max_size=3).map(
                lambda found: list(found.items())
            )
        ),
        "days": some(
            st.dictionaries(st.dates(), some(st.binary(max_size=5)), max_size=2).map(lambda found: list(found.items()))
        ),
        "amounts": some(
            st.dictionaries(decimals(9, 2), some(integers(32)), max_size=2).map(lambda found: list(found.items()))
        ),
    }
)


def decoded(values: list[bytes], schema: pa.Schema, value_format: str) -> pa.RecordBatch:
    return ValueDecoder(schema, value_format, "FAILFAST").decode(a_batch(values))


@pytest.mark.parametrize("encode", ["arrow", "json"])
@settings(max_examples=sized(20, 300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(ROWS, min_size=1, max_size=4))
def test_what_is_encoded_is_decoded_to_the_same_rows(encode: str, rows: list[dict[str, Any]]) -> None:
    frame = a_frame(rows, **EVERYTHING)
    back = decoded(values_of(frame, encode), frame.schema, encode)
    for name in frame.schema.names:
        assert repr(back.column(name).to_pylist()) == repr(frame.column(name).to_pylist()), name


@pytest.mark.parametrize("encode", ["arrow", "json"])
def test_columns_without_decimals_take_the_quick_way_to_the_same_rows(encode: str) -> None:
    rows = [
        {
            "name": f'{number}"\\\n\x00ü€😀',
            "price": number / 7,
            "at": datetime(2026, 1, 1, 0, 0, number % 60, tzinfo=UTC),
        }
        for number in range(1_000)
    ]
    frame = a_frame(rows, name=pa.string(), price=pa.float64(), at=MOMENT)
    assert decoded(values_of(frame, encode), frame.schema, encode).equals(frame)


@pytest.mark.parametrize("encode", ["arrow", "json"])
def test_numbers_that_are_none_and_zeros_with_a_sign(encode: str) -> None:
    numbers = [math.nan, math.inf, -math.inf, -0.0, 0.0]
    frame = a_frame([{"price": number, "rate": number} for number in numbers], price=pa.float64(), rate=pa.float32())
    back = decoded(values_of(frame, encode), frame.schema, encode)
    assert repr(back.column("price").to_pylist()) == repr(numbers)
    assert repr(back.column("rate").to_pylist()) == repr(numbers)


def test_json_is_what_others_expect() -> None:
    row = {"n": None, "d": Decimal("1.50"), "t": datetime(2026, 5, 1, tzinfo=UTC), "b": b"\xff", "m": [("k", 1)]}
    frame = a_frame(
        [row],
        n=pa.string(),
        d=pa.decimal128(5, 2),
        t=MOMENT,
        b=pa.binary(),
        m=pa.map_(pa.string(), pa.int32()),
        day=pa.date32(),
    )
    (value,) = values_of(frame, "json")
    assert json.loads(value) == {
        "n": None,
        "d": 1.5,
        "t": "2026-05-01T00:00:00.000000Z",
        "b": "/w==",
        "m": {"k": 1},
        "day": None,
    }


def test_a_time_zone_of_the_session_is_only_another_way_to_say_a_moment() -> None:
    frame = a_frame([{"at": datetime(2026, 5, 1, tzinfo=UTC)}], at=MOMENT)
    elsewhere = frame.cast(pa.schema([("at", pa.timestamp("us", "Asia/Tokyo"))]))
    for encode in ("arrow", "json"):
        assert decoded(values_of(elsewhere, encode), frame.schema, encode).equals(frame)


def test_a_time_that_no_reader_has_is_refused_in_json() -> None:
    frame = pa.record_batch([pa.array([-(10**18)], pa.timestamp("us", "UTC"))], names=["at"])
    with pytest.raises(ValueMalformed, match="column at has a time outside of the years 1 to 9999"):
        values_of(frame, "json")
    frame = pa.record_batch([pa.array([3_000_000], pa.date32())], names=["day"])
    with pytest.raises(ValueMalformed, match="column day has a time"):
        values_of(frame, "json")


@pytest.mark.parametrize("encode", ["arrow", "json"])
def test_text_that_is_none_is_refused(encode: str) -> None:
    text = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    with pytest.raises(ValueMalformed, match=f"a row cannot be encoded as {encode}: .*UTF"):
        values_of(pa.record_batch([text], names=["text"]), encode)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            pa.map_(pa.int32(), pa.string()),
            "has a map with keys of type int32, which JSON has no form for; cast it, or",
        ),
        (pa.list_(pa.duration("us")), "has type duration\\[us\\], which JSON has no form for; cast it, or use encode"),
    ],
)
def test_types_without_a_form_in_json_are_refused(kind: pa.DataType, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        values_of(a_frame([{}], column=kind), "json")


@settings(max_examples=sized(20, 300), deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.binary(max_size=40),
            some(st.binary(max_size=40)),
            some(st.lists(st.tuples(texts, some(st.binary(max_size=300))), max_size=20)),
        ),
        max_size=5,
    )
)
def test_raw_rows_keep_their_keys_and_headers(
    rows: list[tuple[bytes, bytes | None, list[tuple[str, bytes | None]] | None]],
) -> None:
    frame = a_frame(
        [
            {"value": value, "key": key, "headers": headers and [{"key": k, "value": v} for k, v in headers]}
            for value, key, headers in rows
        ],
        value=pa.binary(),
        key=pa.binary(),
        headers=HEADERS,
    )
    found = encoded(frame, a_write())
    if not rows:
        assert found == []
        return
    ((group, made),) = found
    assert group == "prices"
    assert made.values.to_list() == [value for value, _, _ in rows]
    keys = [None] * len(rows) if made.keys is None else made.keys.to_list()
    nulls = made.nulls if made.nulls is not None else [made.keys is None] * len(rows)
    assert [None if null else key for key, null in zip(keys, nulls, strict=True)] == [key for _, key, _ in rows]
    headers = [b""] * len(rows) if made.headers is None else made.headers.to_list()
    assert [decode_headers(each) for each in headers] == [tuple(each or ()) for _, _, each in rows]


def test_raw_text_is_its_bytes() -> None:
    frame = a_frame([{"VALUE": "über", "key": "k"}, {"VALUE": ""}], VALUE=pa.string(), key=pa.string())
    ((_, rows),) = encoded(frame, a_write())
    assert rows.values.to_list() == ["über".encode(), b""]
    assert rows.keys is not None
    assert rows.keys.to_list() == [b"k", b""]
    assert rows.nulls is not None
    assert rows.nulls.tolist() == [False, True]


def test_keys_and_headers_that_no_row_has_are_not_sent() -> None:
    frame = a_frame([{"value": b"x"}] * 2, value=pa.binary(), key=pa.binary(), headers=HEADERS)
    ((_, rows),) = encoded(frame, a_write())
    assert (rows.keys, rows.nulls, rows.headers) == (None, None, None)


def test_a_value_that_is_null_is_refused() -> None:
    with pytest.raises(ValueMalformed, match="a row has null in value, and a record always has one"):
        encoded(a_frame([{"value": "a"}, {"value": None}], value=pa.string()), a_write())


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ([None], "a header without a key"),
        ([{"key": None, "value": b""}], "a header without a key"),
        ([{"key": "k", "value": b""}] * 4_097, "a row has 4097 headers; it may have 4096 at most"),
    ],
)
def test_headers_that_no_reader_would_find_are_refused(headers: list[Any], said: str) -> None:
    frame = a_frame([{"value": b"", "headers": headers}], value=pa.binary(), headers=HEADERS)
    with pytest.raises(ValueMalformed, match=said):
        encoded(frame, a_write())


def test_a_header_whose_key_is_no_text_is_refused() -> None:
    key = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    pairs = pa.StructArray.from_arrays([key, pa.array([b"v"], pa.binary())], fields=list(HEADERS.value_type))
    headers = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), pairs)
    frame = pa.record_batch([pa.array([b""], pa.binary()), headers], names=["value", "headers"])
    with pytest.raises(ValueMalformed, match="the key of a header is not text"):
        encoded(frame, a_write())


def test_a_column_routes_rows_and_keeps_their_order() -> None:
    names = ["a", None, "b", "a", None]
    frame = a_frame(
        [{"value": str(number), "group_name": name} for number, name in enumerate(names)],
        value=pa.string(),
        group_name=pa.string(),
    )
    found = {group: rows.values.to_list() for group, rows in encoded(frame, a_write())}
    assert found == {"a": [b"0", b"3"], "prices": [b"1", b"4"], "b": [b"2"]}


@pytest.mark.parametrize("encode", ["arrow", "json"])
def test_the_column_that_routes_is_not_encoded(encode: str) -> None:
    frame = a_frame([{"price": 1.0, "group_name": "a"}], price=pa.float64(), group_name=pa.string())
    ((group, rows),) = encoded(frame, a_write(encode=encode))
    assert group == "a"
    alone = frame.select(["price"])
    assert rows.values.to_list() == values_of(alone, encode)


def test_a_row_without_a_group_is_refused() -> None:
    frame = a_frame([{"value": "x"}], value=pa.string(), group_name=pa.string())
    options = a_write()
    without = type(options)(**{name: getattr(options, name) for name in options.__slots__} | {"group": None})
    with pytest.raises(ValueMalformed, match="a row has null in group_name, and the write names no group for it"):
        encoded(frame, without)


def test_a_name_that_is_none_is_refused() -> None:
    frame = a_frame([{"value": "x", "group_name": ""}], value=pa.string(), group_name=pa.string())
    with pytest.raises(ConfigError, match="a name in the column group_name is ''; it must be 1 to 255 bytes"):
        encoded(frame, a_write())


def test_a_very_large_batch_is_encoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_encoder, "MAX_ENCODED_BYTES", 100)
    frame = a_frame([{"n": number, "l": [str(number)]} for number in range(50)], n=pa.int64(), l=pa.list_(pa.string()))
    assert len(encoded(frame, a_write(encode="json"))) > 1
    assert decoded(values_of(frame, "json"), frame.schema, "json").equals(frame)


def test_days_are_those_of_a_calendar() -> None:
    frame = a_frame([{"day": date.min}, {"day": date.max}], day=pa.date32())
    assert [json.loads(value)["day"] for value in values_of(frame, "json")] == ["0001-01-01", "9999-12-31"]
