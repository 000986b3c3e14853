"""Decodes the values of a batch into the columns of a user's schema, with the modes that Spark's JSON reader has."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from intergroup_core.errors import ConfigError, ValueMalformed
from pyspark_intergroup.arrow_values import ArrowValues
from pyspark_intergroup.columns import IDENTITY, metadata_of
from pyspark_intergroup.json_values import JsonValues
from pyspark_intergroup.msgpack_values import MsgpackValues
from pyspark_intergroup.options import MODES, VALUE_FORMATS
from pyspark_intergroup.strict_values import Decoded


class Values(Protocol):
    """One format of values."""

    def decode(self, values: pa.Array) -> Decoded: ...


class ValueDecoder:
    """Makes batches of a user's schema from batches with columns of the default one.

    A malformed value leaves its row with nulls, and itself in the corrupt-record column if there is one (PERMISSIVE);
    without the row (DROPMALFORMED); or raises ValueMalformed (FAILFAST). View and gap rows have no value, so that the
    columns decoded from it are null in them, and nothing is malformed.
    """

    def __init__(
        self, schema: pa.Schema, value_format: str = "json", mode: str = "PERMISSIVE", corrupt_column: str | None = None
    ) -> None:
        if mode not in MODES:
            raise ConfigError(f"mode is {mode!r:.60}; it must be one of {', '.join(MODES)}")
        self.schema = schema
        self._mode = mode
        self._value_format = value_format
        self._corrupt = corrupt_column.lower() if corrupt_column is not None else None
        fields = [field for field in schema if metadata_of(field.name) is None and not self._is_corrupt(field)]
        self._names = [field.name for field in fields]
        self._values = _values(value_format, pa.schema(fields)) if fields else None

    def __reduce__(self) -> tuple[type[ValueDecoder], tuple[object, ...]]:
        # Sent to executors with the read; parsers cannot be, and are made there.
        return ValueDecoder, (self.schema, self._value_format, self._mode, self._corrupt)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the default schema that a batch must have to be decoded."""
        wanted = [column for name in self.schema.names if (column := metadata_of(name)) is not None]
        if self._values is not None:
            wanted += ["kind", "value"]
            if self._mode == "FAILFAST":
                wanted += IDENTITY
        return tuple(dict.fromkeys(wanted))

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        decoded = self._decoded(batch)
        if decoded.malformed and self._mode == "FAILFAST":
            row = min(decoded.malformed)
            raise self._complaint(batch, row, decoded.malformed[row])
        by_name = dict(zip(self._names, decoded.columns, strict=True))
        arrays = []
        for field in self.schema:
            if (column := metadata_of(field.name)) is not None:
                arrays.append(batch.column(column))
            elif self._is_corrupt(field):
                arrays.append(_corrupt_values(batch, field.type, decoded.malformed))
            else:
                arrays.append(by_name[field.name])
        result = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        if decoded.malformed and self._mode == "DROPMALFORMED":
            kept = np.ones(batch.num_rows, dtype=bool)
            kept[list(decoded.malformed)] = False
            return result.filter(pa.array(kept))
        return result

    def _decoded(self, batch: pa.RecordBatch) -> Decoded:
        """Columns and malformed rows of the whole batch."""
        if self._values is None:
            return Decoded([], {})
        values = batch.column("value")
        wanted = pc.and_(pc.fill_null(pc.equal(batch.column("kind"), "data"), False), pc.is_valid(values))
        rows = np.flatnonzero(wanted.to_numpy(zero_copy_only=False))
        if len(rows) == batch.num_rows:
            return self._values.decode(values)
        decoded = self._values.decode(values.filter(wanted))
        places = np.full(batch.num_rows, -1, dtype=np.int64)
        places[rows] = np.arange(len(rows))
        taken = pa.array(places, mask=places < 0)
        return Decoded(
            [column.take(taken) for column in decoded.columns],
            {int(rows[row]): why for row, why in decoded.malformed.items()},
        )

    def _is_corrupt(self, field: pa.Field) -> bool:
        return bool(field.name.lower() == self._corrupt)

    def _complaint(self, batch: pa.RecordBatch, row: int, why: str) -> ValueMalformed:
        group, sender, seq, record = (batch.column(column)[row].as_py() for column in IDENTITY)
        return ValueMalformed(
            f"the value of record {record} of message {seq} from {sender} in group {group} is not {self._value_format} "
            f"as the schema says: {why}; change the schema or valueFormat, or set mode to PERMISSIVE or DROPMALFORMED"
        )


def _values(value_format: str, schema: pa.Schema) -> Values:
    match value_format:
        case "json":
            return JsonValues(schema)
        case "msgpack":
            return MsgpackValues(schema)
        case "arrow":
            return ArrowValues(schema)
        case _:
            raise ConfigError(f"valueFormat is {value_format!r:.60}; it must be one of {', '.join(VALUE_FORMATS)}")


def _corrupt_values(batch: pa.RecordBatch, kind: pa.DataType, malformed: dict[int, str]) -> pa.Array:
    if not malformed:
        return pa.nulls(batch.num_rows, kind)
    raw: list[str | bytes | None] = [None] * batch.num_rows
    values = batch.column("value")
    as_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    for row in malformed:
        value = values[row].as_py()
        raw[row] = value.decode(errors="replace") if as_text else value
    return pa.array(raw, type=kind)
