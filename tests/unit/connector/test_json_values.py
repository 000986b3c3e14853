"""JSON values: the quick way and the strict one agree, and nothing that is sent can shift a row or crash the reader."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyspark_intergroup.json_values import JsonValues
from pyspark_intergroup.values import ValueDecoder
from tests.sizes import sized
from tests.unit.connector.value_batches import decoded

PLAIN = pa.schema(
    [
        ("flag", pa.bool_()),
        ("small", pa.int8()),
        ("count", pa.int64()),
        ("price", pa.float64()),
        ("ratio", pa.float32()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.int32()), ("at", pa.timestamp("us", tz="UTC"))])),
    ]
)


def read(kind: pa.DataType, text: str | bytes, name: str = "a") -> Any:
    """What a column of a type gets from a value; the text where it is malformed."""
    decoder = ValueDecoder(pa.schema([(name, kind), ("bad", pa.binary())]), "json", corrupt_column="bad")
    value = text.encode() if isinstance(text, str) else text
    # Once alone and once among many others, which goes another way.
    (alone,) = decoded(decoder, [value])
    among = decoded(decoder, [b'{"a": null}'] * 200 + [value])[-1]
    assert repr(alone) == repr(among)
    return "malformed" if alone["bad"] == value else alone[name]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.int64(), '{"a": 5}', 5),
        (pa.int64(), ' \t\r\n{"a": 5}\n', 5),
        (pa.int64(), '{\n  "a": 5,\r\n  "b": [\n1]\n}', 5),
        (pa.int64(), '{"a": 5, "b": {"a": 6}, "c": [1, "x", null]}', 5),
        (pa.int64(), '{"b": 5}', None),
        (pa.int64(), "{}", None),
        (pa.int64(), '{"a": null}', None),
        (pa.int64(), '{"A": 5}', None),
        (pa.int64(), '{"a": 1, "a": 2}', 2),
        (pa.int64(), '{"\\u0061": 5}', 5),
        (pa.int64(), '{"a": -9223372036854775808}', -(1 << 63)),
        (pa.float64(), '{"a": 5}', 5.0),
        (pa.float64(), '{"a": 9007199254740993}', 9007199254740992.0),
        (pa.float64(), '{"a": 1e400}', float("inf")),
        (pa.float64(), '{"a": -Infinity}', float("-inf")),
        (pa.float64(), f'{{"a": {"1" * 400}}}', float("inf")),
        (pa.float64(), f'{{"a": -{"1" * 9_000}}}', float("-inf")),
        (pa.int64(), f'{{"b": {"1" * 9_000}}}', None),
        (pa.float32(), '{"a": 1e300}', float("inf")),
        (pa.string(), '{"a": "caf\\u00e9 \U0001f600 \\u0000"}', "caf\u00e9 \U0001f600 \0"),
        (pa.string(), '{"a": "x\\ny"}', "x\ny"),
        (pa.string(), '{"a": "}{ Information: NaN, [Inf"}', "}{ Information: NaN, [Inf"),
        (pa.bool_(), '{"a": false}', False),
        (pa.binary(), '{"a": "aGk="}', b"hi"),
        (pa.decimal128(10, 2), '{"a": 12.34}', Decimal("12.34")),
        (pa.decimal128(20, 0), '{"a": 12345678901234567890}', Decimal("12345678901234567890")),
        (pa.decimal128(10, 2), '{"a": "7.5"}', Decimal("7.50")),
        (pa.date32(), '{"a": "2026-05-01"}', date(2026, 5, 1)),
        (pa.timestamp("us", tz="UTC"), '{"a": "2026-05-01T12:00:00Z"}', datetime(2026, 5, 1, 12, tzinfo=UTC)),
        (pa.timestamp("us", tz="UTC"), '{"a": "2026-05-01 12:00:00+02:00"}', datetime(2026, 5, 1, 10, tzinfo=UTC)),
        (pa.timestamp("us", tz="UTC"), '{"a": "2026-05-01T12:00:00"}', datetime(2026, 5, 1, 12, tzinfo=UTC)),
        (pa.timestamp("us"), '{"a": "2026-05-01T12:00:00.5"}', datetime.fromisoformat("2026-05-01T12:00:00.5")),
        (pa.list_(pa.int64()), '{"a": [1, null]}', [1, None]),
        (pa.list_(pa.int64()), '{"a": []}', []),
        (pa.struct([("x", pa.int64()), ("y", pa.string())]), '{"a": {"x": 1, "z": 2}}', {"x": 1, "y": None}),
        (pa.map_(pa.string(), pa.int64()), '{"a": {"k": 1, "l": null}}', [("k", 1), ("l", None)]),
        (pa.null(), '{"a": null}', None),
    ],
)
def test_what_a_column_gets(kind: pa.DataType, text: str, value: Any) -> None:
    assert read(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.int64(), ""),
        (pa.int64(), "null"),
        (pa.int64(), "5"),
        (pa.int64(), '[{"a": 5}]'),
        (pa.int64(), '{"a": 5'),
        (pa.int64(), '"a": 5}'),
        (pa.int64(), '{"a": 5}{"a": 6}'),
        (pa.int64(), '{"a": 5}\n{"a": 6}'),
        (pa.int64(), '{"a": 5}null'),
        (pa.int64(), '{"a": 5,}'),
        (pa.int64(), "{'a': 5}"),
        (pa.int64(), '{"a": 5.0}'),
        (pa.int64(), '{"a": 1e2}'),
        (pa.int64(), '{"a": "5"}'),
        (pa.int64(), '{"a": true}'),
        (pa.int64(), '{"a": 9223372036854775808}'),
        (pa.int64(), '{"a": NaN}'),
        (pa.int8(), '{"a": 128}'),
        (pa.bool_(), '{"a": 1}'),
        (pa.float64(), '{"a": "1.5"}'),
        (pa.float64(), '{"a": Inf}'),
        (pa.float64(), '{"a": -NaN}'),
        (pa.int64(), '{"b": Inf}'),
        (pa.string(), '{"a": 5}'),
        (pa.string(), '{"a": "x\ny"}'),
        (pa.string(), '{"a": "x\ry"}'),
        (pa.string(), '{"a": "\\ud800"}'),
        (pa.string(), b'{"a": "\xff"}'),
        (pa.string(), b'{"b": "\xff"}'),
        (pa.string(), b'\xef\xbb\xbf{"a": "x"}'),
        (pa.string(), '{"a": "x"}'.encode("utf-16")),
        (pa.binary(), '{"a": "not base64!"}'),
        (pa.decimal128(10, 2), '{"a": 12.345}'),
        (pa.decimal128(4, 2), '{"a": 123.45}'),
        (pa.decimal128(4, 2), '{"a": NaN}'),
        (pa.date32(), '{"a": "01.05.2026"}'),
        (pa.timestamp("us", tz="UTC"), '{"a": 1700000000}'),
        (pa.timestamp("us", tz="UTC"), '{"a": "noon"}'),
        (pa.timestamp("us"), '{"a": "2026-05-01T12:00:00Z"}'),
        (pa.list_(pa.int64()), '{"a": [1, "x"]}'),
        (pa.list_(pa.int64()), '{"a": {}}'),
        (pa.struct([("x", pa.int64())]), '{"a": []}'),
        (pa.struct([("x", pa.int64())]), '{"a": {"x": "1"}}'),
        (pa.map_(pa.string(), pa.int64()), '{"a": [1]}'),
        (pa.null(), '{"a": 1}'),
        (pa.int64(), '{"b": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    ],
)
def test_what_is_malformed(kind: pa.DataType, text: str | bytes) -> None:
    assert read(kind, text) == "malformed"


def test_a_value_cannot_borrow_from_the_next_one() -> None:
    """As one text these would be three objects for three rows, all of them in the wrong place."""
    decoder = ValueDecoder(pa.schema([("a", pa.int64())]), "json")
    values = [b'{"a":1', b',"b":2}', b'{"a":3}{"a":4}{"a":5}', b'{"a":6}']
    assert [row["a"] for row in decoded(decoder, values)] == [None, None, None, 6]


@pytest.mark.parametrize("bad", [[0], [4_999], [63, 64, 65, 3_000], list(range(0, 5_000, 7)), list(range(5_000))])
def test_malformed_rows_are_found_wherever_they_are(bad: list[int]) -> None:
    decoder = ValueDecoder(pa.schema([("a", pa.int64()), ("bad", pa.binary())]), "json", corrupt_column="bad")
    values = [b'{"a": %d}' % row for row in range(5_000)]
    for row in bad:
        values[row] = b'{"a": "%d"}' % row
    rows = decoded(decoder, values)
    assert [place for place, row in enumerate(rows) if row["bad"] is not None] == bad
    assert all(row["a"] == place for place, row in enumerate(rows) if row["bad"] is None)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-200, 200)
    | st.integers(-(1 << 65), 1 << 65)
    | st.floats()
    | st.text(max_size=8)
    | st.datetimes().map(str)
    | st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)
    | st.dates().map(str)
    | st.sampled_from(["2026-05-01T12:00Z", " 2026-05-01", "2026-05-01T24:00:00", "2026-05-01T12:00:00.1234567Z"])
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "at", "z"]), inner, max_size=3),
    max_leaves=6,
)
MOMENTS = (
    st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)
    | st.datetimes().map(str)
    | st.dates().map(str)
    | st.sampled_from(
        "2026-05-01T12:00Z 2026-05-01T12Z 2026-05-01T24:00:00Z 2026-05-01T12:00:60Z 2026-05-01T12:00:00.123456789Z "
        "2026-05-01T12:00:00+05 2026-05-01T12:00:00+0530 20260501T120000Z 0000-01-01T00:00:00Z 2026-02-30 +2026-05-01 "
        "2026-05-01T12:00:00+23:59 1600-02-29T00:00:00.1Z 2026-5-1 10000-01-01T00:00:00Z -0001-01-01".split()
    )
    | st.sampled_from([" 2026-05-01", "2026-05-01 ", "2026-05-01T12:00:00Z\n", "2026-05-01 12:00:00 Z"])
)
NUMBERS = st.floats() | st.integers(-(1 << 70), 1 << 70)
FITTING = st.fixed_dictionaries(
    {},
    optional={
        "flag": st.booleans() | st.none(),
        "small": st.integers(-128, 127),
        "count": st.integers(-(1 << 63), (1 << 63) - 1),
        "price": NUMBERS,
        "ratio": NUMBERS,
        "name": st.text(max_size=6),
        "tags": st.lists(st.text(max_size=3) | st.none(), max_size=3),
        "place": st.fixed_dictionaries({}, optional={"x": st.integers(-9, 9), "z": ANYTHING}),
        "else": ANYTHING,
    },
).map(json.dumps)
TIMES = st.fixed_dictionaries(
    {}, optional={"at": MOMENTS, "local": MOMENTS, "day": MOMENTS, "place": st.fixed_dictionaries({"at": MOMENTS})}
).map(json.dumps)
RECORDS = st.dictionaries(st.sampled_from([*PLAIN.names, "else"]), ANYTHING, max_size=4).map(json.dumps)
FRAGMENTS = st.lists(
    st.sampled_from(
        ['{"count":1', '"', "{", "}", "[", "]", ",", ":", '"name"', "1", "\n", "\r", " ", "null", "NaN", "\\"]
    ),
    max_size=8,
).map("".join)


@given(
    texts=st.lists(FITTING, max_size=6)
    | st.lists(TIMES, max_size=2)
    | st.lists(FITTING | TIMES | RECORDS | FRAGMENTS, max_size=6)
)
@example(texts=['{"ratio": 0.1}', '{"ratio": 16777217}', '{"price": -0}'])
@settings(max_examples=sized(100, 4_000))
def test_the_quick_way_says_what_the_strict_one_says(texts: list[str]) -> None:
    values = JsonValues(PLAIN)
    stripped = [text.encode("utf-8", "surrogatepass").strip() for text in texts]
    strict = values._one_by_one(stripped)
    quick = values._at_once(stripped)
    if quick is not None:
        assert strict.malformed == {}
        for ours, theirs in zip(strict.columns, quick.columns, strict=True):
            assert _comparable(ours) == _comparable(theirs)


def _comparable(column: pa.Array) -> list[str]:
    return [repr(value).replace("-0.0", "0.0") for value in column.to_pylist()]


def test_the_quick_way_is_taken_where_nothing_is_wrong() -> None:
    record = {
        "flag": True,
        "small": 5,
        "count": 6,
        "price": 1.5,
        "ratio": 0.5,
        "name": "NaN, Information",
        "at": "2026-05-01T12:00:00Z",
        "local": "2026-05-01T12:00:00",
        "day": "2026-05-01",
        "tags": ["a", None],
        "place": {"x": 1, "at": "2026-05-01T12:00:00Z"},
    }
    assert JsonValues(PLAIN)._at_once([json.dumps(record, indent=1).encode()] * 3) is not None


def test_base64_in_other_places() -> None:
    kind = pa.list_(pa.struct([("key", pa.binary())]))
    text = json.dumps({"a": [{"key": base64.b64encode(b"\xff\x00").decode()}]})
    assert read(kind, text) == [{"key": b"\xff\x00"}]
