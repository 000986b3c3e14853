"""Values that are JSON objects, by Arrow's parser wherever it can be trusted to say the same as the strict one.

Arrow parses all values as one text. What it accepts is what `StrictColumns` would make of them one by one, only sooner;
what it refuses, or might take differently, is decided there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json
import pyarrow.types as kinds

from pyspark_intergroup.strict_values import Decoded, Mismatch, StrictColumns

LEAST_ROWS = 64
"""So few that it is quicker to go through them one by one than to look for the malformed one."""
MAX_TEXT_BYTES = 1 << 30
"""Of one parse; more is parsed in halves."""
MAX_BRACKETS = 400
"""Of one value for Arrow: Python's parser gives up at some depth, and the two must agree."""
_YEAR_ONE_DAY = 1 - date(1970, 1, 1).toordinal()
_YEAR_ONE_US = _YEAR_ONE_DAY * 86_400_000_000
_SPACE = b" \t\r\n"
_ENDS_TO_TABS = bytes.maketrans(b"\r\n", b"\t\t")
_NOT_FINITE = re.compile(rb"[:,\[][ \t\r\n]*-?(?:NaN|Inf(?:inity)?)[ \t\r\n]*[],}]")


class JsonValues:
    """Columns of a schema from JSON objects: missing fields are null, others are ignored."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._strict = StrictColumns(schema, base64=True)
        exact = any(_holds_decimals(field.type) for field in schema)
        self._decoder = json.JSONDecoder(parse_int=_whole, parse_float=Decimal if exact else None)
        parsed = [_parsed_as(field.type) for field in schema]
        self._options: arrow_json.ParseOptions | None = None
        if None not in parsed:
            explicit = pa.schema(list(zip(schema.names, parsed, strict=True)))
            self._options = arrow_json.ParseOptions(explicit_schema=explicit, unexpected_field_behavior="ignore")

    def decode(self, values: pa.Array) -> Decoded:
        """Of binary values, none of them null."""
        texts = [value.strip(_SPACE) for value in values.to_pylist()]
        return self._decode(texts) if self._options is not None else self._one_by_one(texts)

    def _decode(self, texts: Sequence[bytes]) -> Decoded:
        if len(texts) <= LEAST_ROWS:
            return self._at_once(texts) or self._one_by_one(texts)
        if (decoded := self._at_once(texts)) is not None:
            return decoded
        middle = len(texts) // 2
        first, second = self._decode(texts[:middle]), self._decode(texts[middle:])
        return Decoded(
            [pa.concat_arrays(halves) for halves in zip(first.columns, second.columns, strict=True)],
            first.malformed | {middle + row: why for row, why in second.malformed.items()},
        )

    def _one_by_one(self, texts: Sequence[bytes]) -> Decoded:
        return self._strict.decoded(texts, self._record)

    def _record(self, text: bytes) -> dict[str, Any]:
        try:
            record = self._decoder.decode(text.decode())
        except (ValueError, RecursionError) as error:
            raise Mismatch(f"it is not JSON ({str(error) or 'nested too deeply':.80})") from None
        if type(record) is not dict:
            raise Mismatch("it is not a JSON object")
        return record

    def _at_once(self, texts: Sequence[bytes]) -> Decoded | None:
        """All rows by one parse, or None where that fails or would not be safe."""
        joined = _joined(texts)
        if joined is None:
            return None
        options = arrow_json.ReadOptions(use_threads=False, block_size=len(joined) + 1)
        try:
            table = arrow_json.read_json(pa.BufferReader(joined), read_options=options, parse_options=self._options)
            # Every line is one object or more, see _joined: as many rows as lines means one row a line.
            if table.num_rows != len(texts):
                return None
            columns = [_whole_column(table.column(field.name)).cast(field.type) for field in self._schema]
        except pa.ArrowException:
            return None
        return None if any(_has_year_zero(column) for column in columns) else Decoded(columns, {})


def _joined(texts: Sequence[bytes]) -> bytes | None:
    """A line per value, or None where Arrow's parser could misunderstand them.

    Its parser does not care for line ends, so that the half of an object might go on in the next value. Each value
    begins with { and ends with }: behind such an end, unless it is in a string, no { can follow inside an object, and
    no string goes over a line end. So every line is made of whole objects. (Other texts can even crash it, as `null`
    alone does.)
    """
    if not texts or not all(text[:1] == b"{" and text[-1:] == b"}" for text in texts):
        return None
    joined = b"\n".join(texts)
    if len(joined) > MAX_TEXT_BYTES or not _is_utf8(joined):
        return None
    if b"\r" in joined or joined.count(b"\n") != len(texts) - 1:
        # A tab is space where a line end is, and as forbidden inside a string.
        joined = b"\n".join(text.translate(_ENDS_TO_TABS) for text in texts)
    if joined.count(b"{") + joined.count(b"[") > MAX_BRACKETS and any(
        text.count(b"{") + text.count(b"[") > MAX_BRACKETS for text in texts
    ):
        return None
    if (b"NaN" in joined or b"Inf" in joined) and _NOT_FINITE.search(joined):
        return None
    return joined


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _whole_column(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _has_year_zero(column: pa.Array) -> bool:
    """Arrow's calendar begins a year before Python's."""
    if kinds.is_timestamp(column.type) or kinds.is_date32(column.type):
        counted, first = (pa.int64(), _YEAR_ONE_US) if kinds.is_timestamp(column.type) else (pa.int32(), _YEAR_ONE_DAY)
        least = pc.min(column.view(counted)).as_py()
        return least is not None and least < first
    if kinds.is_list(column.type):
        return _has_year_zero(column.flatten())
    if kinds.is_struct(column.type):
        return any(_has_year_zero(part) for part in column.flatten())
    return False


def _parsed_as(kind: pa.DataType) -> pa.DataType | None:
    """The type to parse as, from which a cast leads to the one wanted; None where there is no such way."""
    if kinds.is_boolean(kind) or kinds.is_signed_integer(kind) or kinds.is_string(kind):
        return kind
    if kinds.is_floating(kind):
        return pa.float64()  # the strict way to a float leads over a double, too
    if kinds.is_timestamp(kind) or kinds.is_date32(kind):
        return pa.string()
    if kinds.is_list(kind):
        element = _parsed_as(kind.value_type)
        return None if element is None else pa.list_(kind.value_field.with_type(element))
    if kinds.is_struct(kind):
        parts = [_parsed_as(field.type) for field in kind]
        if not parts or None in parts:
            return None
        return pa.struct([field.with_type(part) for field, part in zip(kind, parts, strict=True)])
    return None


def _holds_decimals(kind: pa.DataType) -> bool:
    if kinds.is_decimal(kind):
        return True
    return any(_holds_decimals(kind.field(place).type) for place in range(kind.num_fields))


def _whole(digits: str) -> int | float:
    # Python refuses to make integers of thousands of digits; no column but one of doubles takes them anyway.
    return int(digits) if len(digits) < 1_000 else float(digits)
