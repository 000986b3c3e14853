"""Python values as Arrow columns, strictly: what is not of a column's type is malformed, never bent to fit.

Arrow itself would take 1 for true and bytes for text. Every format that goes through Python objects is read here, so
that they agree on what a mismatch is.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from math import inf
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from intergroup_core.errors import ConfigError
from pyspark_intergroup.moments import micros_of

Read = Callable[[Any], Any]
"""Makes of a value what Arrow takes for a type; raises Mismatch."""
_EPOCH_DAY = date(1970, 1, 1).toordinal()


class Mismatch(ValueError):
    """A value is not what the schema says; the message goes on from the name of the column."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Columns of the values, all of a row null where its value is malformed."""

    columns: list[pa.Array]
    malformed: dict[int, str]
    """Why, by row."""


class StrictColumns:
    """The columns of a schema, from a mapping per row."""

    def __init__(self, schema: pa.Schema, *, base64: bool) -> None:
        """`base64` says that binary comes as text, as in formats that have no bytes."""
        self._schema = schema
        self._reads = [(field.name, _read_of(field.type, field.name, base64=base64)) for field in schema]

    def decoded(self, values: Iterable[bytes], parse: Callable[[bytes], Mapping[Any, Any]]) -> Decoded:
        rows: list[list[Any]] = []
        malformed: dict[int, str] = {}
        nothing = [None] * len(self._reads)
        for row, value in enumerate(values):
            try:
                rows.append(self._row(parse(value)))
            except Mismatch as mismatch:
                malformed[row] = str(mismatch)
                rows.append(nothing)
        columns = zip(*rows, strict=True) if rows else ([] for _ in self._reads)
        return Decoded(
            [pa.array(column, type=field.type) for column, field in zip(columns, self._schema, strict=True)], malformed
        )

    def _row(self, record: Mapping[Any, Any]) -> list[Any]:
        cells = []
        for name, read in self._reads:
            try:
                cells.append(read(record.get(name)))
            except Mismatch as mismatch:
                raise Mismatch(f"column {name}: {mismatch}") from None
        return cells


def _read_of(kind: pa.DataType, column: str, *, base64: bool) -> Read:
    def inner(part: pa.DataType) -> Read:
        return _read_of(part, column, base64=base64)

    if kinds.is_boolean(kind):
        read: Read = _boolean
    elif kinds.is_signed_integer(kind):
        read = _integer(kind.bit_width)
    elif kinds.is_float32(kind) or kinds.is_float64(kind):
        read = _double
    elif kinds.is_string(kind) or kinds.is_large_string(kind):
        read = _text
    elif kinds.is_binary(kind) or kinds.is_large_binary(kind):
        read = _base64 if base64 else _bytes
    elif kinds.is_timestamp(kind) and kind.unit == "us":
        read = _zoned if kind.tz is not None else _zoneless
    elif kinds.is_date32(kind):
        read = _day
    elif kinds.is_decimal(kind):
        read = _decimal(kind)
    elif kinds.is_list(kind) or kinds.is_large_list(kind):
        read = _listed(inner(kind.value_type))
    elif kinds.is_map(kind):
        read = _mapped(inner(kind.key_type), inner(kind.item_type))
    elif kinds.is_struct(kind):
        read = _structured([(field.name, inner(field.type)) for field in kind])
    elif kinds.is_null(kind):
        read = _nothing
    else:
        raise ConfigError(
            f"column {column} of the schema has type {kind}, which JSON and msgpack have no form for; "
            "use another type, such as string, or valueFormat arrow"
        )
    return lambda value: None if value is None else read(value)


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise _mismatch(value, "true or false")
    return value


def _integer(bits: int) -> Read:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def read(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise _mismatch(value, f"a whole number of {bits} bits")
        return value

    return read


def _double(value: Any) -> float:
    if type(value) is bool or not isinstance(value, int | float | Decimal):
        raise _mismatch(value, "a number")
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _text(value: Any) -> str:
    if type(value) is not str or not _is_unicode(value):
        raise _mismatch(value, "text")
    return value


def _is_unicode(text: str) -> bool:
    # JSON can spell half of a surrogate pair; no string of Arrow can hold it.
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bytes(value: Any) -> bytes:
    if type(value) is not bytes:
        raise _mismatch(value, "bytes")
    return value


def _base64(value: Any) -> bytes:
    try:
        return b64decode(_text(value), validate=True)
    except (Mismatch, binascii.Error, ValueError):
        raise _mismatch(value, "text in base64") from None


def _zoned(value: Any) -> int:
    return micros_of(_moment(value))


def _zoneless(value: Any) -> int:
    moment = _moment(value)
    if moment.tzinfo is not None:
        raise _mismatch(value, "a timestamp without an offset")
    return micros_of(moment)


def _moment(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _mismatch(value, "a timestamp in ISO 8601") from None


def _day(value: Any) -> int:
    try:
        return date.fromisoformat(value).toordinal() - _EPOCH_DAY
    except (TypeError, ValueError):
        raise _mismatch(value, "a date in ISO 8601") from None


def _decimal(kind: pa.DataType) -> Read:
    def read(value: Any) -> Decimal:
        # Of a double the digits that were meant cannot be known any more.
        if type(value) is int or type(value) is str or isinstance(value, Decimal):
            try:
                exact = Decimal(value)
                pa.scalar(exact, type=kind)
                return exact
            except (InvalidOperation, ValueError, OverflowError, pa.ArrowException):
                pass
        raise _mismatch(value, f"a number that {kind} holds exactly")

    return read


def _listed(read_element: Read) -> Read:
    def read(value: Any) -> list[Any]:
        if type(value) is not list:
            raise _mismatch(value, "a list")
        return [read_element(element) for element in value]

    return read


def _mapped(read_key: Read, read_item: Read) -> Read:
    def read(value: Any) -> list[tuple[Any, Any]]:
        if type(value) is not dict or None in value:
            raise _mismatch(value, "a map")
        return [(read_key(key), read_item(item)) for key, item in value.items()]

    return read


def _structured(fields: list[tuple[str, Read]]) -> Read:
    def read(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _mismatch(value, "a map of fields")
        return {name: read_field(value.get(name)) for name, read_field in fields}

    return read


def _nothing(value: Any) -> None:
    raise _mismatch(value, "null")


def _mismatch(value: Any, wanted: str) -> Mismatch:
    # A container may be huge, and an integer too long to be printed.
    shown = f"{value!r:.40}" if isinstance(value, str | bytes | float) else f"a {type(value).__name__}"
    return Mismatch(f"{shown} is not {wanted}")
