"""Rows as JSON objects, a column at a time: what `JsonValues` decodes to the same columns.

Numbers are numbers, also decimals, of which no digit is lost; timestamps and dates are ISO 8601, those with a zone in
UTC; binary is base64; NaN and the infinities have the names that JavaScript has for them; null is null.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from intergroup_core.errors import ConfigError, ValueMalformed
from intergroup_core.wire.records import RecordBatch
from pyspark_intergroup.arrow_records import is_bytes, is_text, records_of

_DAYS = date.min.toordinal() - date(1970, 1, 1).toordinal(), date.max.toordinal() - date(1970, 1, 1).toordinal()
"""The first and the last of the calendar that readers have."""
_DAY_US = 86_400_000_000
_CONTROL = "[\\x00-\\x1f]"
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def check_json(schema: pa.Schema) -> None:
    """A ConfigError where a column has a type that JSON has no form for."""
    for field in schema:
        for kind, why in _formless(field.type):
            raise ConfigError(
                f"column {field.name} has {why} {kind}, which JSON has no form for; cast it, or use encode arrow"
            )


def _formless(kind: pa.DataType) -> Iterator[tuple[pa.DataType, str]]:
    if kinds.is_map(kind):
        if not _may_be_key(kind.key_type):
            yield kind.key_type, "a map with keys of type"
        yield from _formless(kind.item_type)
    elif kinds.is_struct(kind):
        for field in kind:
            yield from _formless(field.type)
    elif _is_list(kind):
        yield from _formless(kind.value_type)
    elif _form(kind) is None:
        yield kind, "type"


def json_records(batch: pa.RecordBatch) -> RecordBatch:
    """A record per row."""
    names = [(field.name, column) for field, column in zip(batch.schema, batch.columns, strict=True)]
    return records_of(_objects(names, batch.num_rows))


def _objects(fields: list[tuple[str, pa.Array]], rows: int) -> pa.Array:
    if not fields:
        return pa.repeat("{}", rows)
    parts: list[pa.Array | str] = []
    for number, (name, column) in enumerate(fields):
        parts += [f"{',' if number else '{'}{json.dumps(name, ensure_ascii=False)}:", _texts(column, name)]
    return pc.binary_join_element_wise(*parts, "}", "")


def _texts(column: pa.Array, name: str) -> pa.Array:
    """Of every value its JSON; none is null."""
    kind = column.type
    if kinds.is_struct(kind):
        fields = [(field.name, part) for field, part in zip(kind, column.flatten(), strict=True)]
        texts = _objects(fields, len(column))
    elif kinds.is_map(kind):
        keys, items = _keys(column.keys, name), _texts(column.items, name)
        texts = _joined(column, pc.binary_join_element_wise(keys, items, ":"), "{", "}")
    elif _is_list(kind):
        texts = _joined(column, _texts(column.values, name), "[", "]")
    else:
        form = _form(kind)
        assert form is not None, "check_json has looked"
        texts = form(column, name)
    return pc.if_else(column.is_valid(), texts, "null") if column.null_count else texts


def _joined(column: pa.Array, elements: pa.Array, opening: str, closing: str) -> pa.Array:
    """The elements of each list, those behind a null with them: nobody will see these."""
    wide = kinds.is_large_list(column.type)
    lists = (pa.LargeListArray if wide else pa.ListArray).from_arrays(column.offsets, elements)
    return pc.binary_join_element_wise(opening, pc.binary_join(lists, ","), closing, "")


def _keys(keys: pa.Array, name: str) -> pa.Array:
    texts = _texts(keys, name)
    return pc.binary_join_element_wise('"', texts, '"', "") if kinds.is_decimal(keys.type) else texts


Form = Callable[[pa.Array, str], pa.Array]


def _form(kind: pa.DataType) -> Form | None:
    """How values of a type that has no parts are written."""
    if is_text(kind):
        return _quoted
    if is_bytes(kind):
        return _base64
    if kinds.is_boolean(kind) or kinds.is_integer(kind) or kinds.is_decimal(kind) or kinds.is_null(kind):
        return _plain
    if kinds.is_float32(kind) or kinds.is_float64(kind):
        return _number
    if kinds.is_timestamp(kind):
        return _moment
    return _day if kinds.is_date32(kind) else None


def _plain(column: pa.Array, name: str) -> pa.Array:
    return column.cast(pa.string())


def _number(column: pa.Array, name: str) -> pa.Array:
    texts = column.cast(pa.float64()).cast(pa.string())  # a reader comes to a float over a double
    for word, written in _NOT_FINITE.items():
        texts = pc.if_else(pc.equal(texts, word), written, texts)
    return pc.if_else(pc.equal(texts, "-0"), "-0.0", texts)  # -0 would be a whole number, which has no sign of its own


def _quoted(column: pa.Array, name: str) -> pa.Array:
    texts = column.cast(pa.string())
    texts = pc.replace_substring(texts, "\\", "\\\\")
    texts = pc.replace_substring(texts, '"', '\\"')
    if pc.any(pc.match_substring_regex(texts, _CONTROL)).as_py():
        for code in range(0x20):
            texts = pc.replace_substring(texts, chr(code), f"\\u{code:04x}")
    return pc.binary_join_element_wise('"', texts, '"', "")


def _base64(column: pa.Array, name: str) -> pa.Array:
    texts = [None if value is None else b64encode(value).decode() for value in column.to_pylist()]
    return pc.binary_join_element_wise('"', pa.array(texts, pa.string()), '"', "")


def _moment(column: pa.Array, name: str) -> pa.Array:
    zoned = column.type.tz is not None
    micros = (
        column.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us")) if zoned else column.cast(pa.timestamp("us"))
    )
    first, last = _DAYS
    _check_calendar(micros.view(pa.int64()), first * _DAY_US, (last + 1) * _DAY_US - 1, name)
    texts = pc.utf8_replace_slice(micros.cast(pa.string()), 10, 11, "T")
    return pc.binary_join_element_wise('"', texts, 'Z"' if zoned else '"', "")


def _day(column: pa.Array, name: str) -> pa.Array:
    _check_calendar(column.view(pa.int32()), *_DAYS, name)
    return pc.binary_join_element_wise('"', column.cast(pa.string()), '"', "")


def _check_calendar(numbers: pa.Array, first: int, last: int, name: str) -> None:
    found = pc.min_max(numbers).as_py()
    if found["min"] is not None and not first <= found["min"] <= found["max"] <= last:
        raise ValueMalformed(f"column {name} has a time outside of the years 1 to 9999, which JSON has no form for")


def _may_be_key(kind: pa.DataType) -> bool:
    """Whether a reader finds it again in text, which all keys of JSON are."""
    return bool(
        is_text(kind) or is_bytes(kind) or kinds.is_timestamp(kind) or kinds.is_date32(kind) or kinds.is_decimal(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind))
