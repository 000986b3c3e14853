"""Schemas of a read: the default one, and what a user's asks for. The only module of these that needs Spark's types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructField, StructType

from intergroup_core.errors import ConfigError
from intergroup_core.log.arrow import COLUMNS, schema_of
from pyspark_intergroup.columns import METADATA_PREFIX, metadata_of
from pyspark_intergroup.options import CORRUPT_COLUMN


def default_schema(columns: Sequence[str] | None = None) -> StructType:
    """All columns of the default schema, or these in this order."""
    return from_arrow_schema(schema_of(COLUMNS if columns is None else columns), prefer_timestamp_ntz=False)


def arrow_schema(schema: StructType) -> pa.Schema:
    """What Spark compares the first batch of a read with; it must be equal, names of list items and all."""
    return to_arrow_schema(schema, timezone="UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSchema:
    """What a user's `.schema(...)` asks for, by where it comes from."""

    schema: StructType
    value_columns: tuple[str, ...]
    """Decoded from the value."""
    metadata_columns: tuple[str, ...]
    """Columns of the default schema, as the user spells them, prefix and all."""
    corrupt_column: str | None
    """Gets values that are malformed."""


def checked_user_schema(schema: StructType, *, corrupt_column: str = CORRUPT_COLUMN) -> UserSchema:
    """The columns of a user's schema, or a ConfigError that says which of them cannot be had and why."""
    if not schema.fields:
        raise ConfigError("the schema has no columns; name some, or leave .schema(...) out")
    _check_names(schema)
    _check_nullable(schema)
    values: list[str] = []
    metadata: list[str] = []
    corrupt: str | None = None
    for field in schema.fields:
        if (column := metadata_of(field.name)) is not None:
            _check_metadata(field, column)
            metadata.append(field.name)
        elif field.name.lower() == corrupt_column.lower():
            if not isinstance(field.dataType, StringType | BinaryType):
                raise ConfigError(
                    f"column {field.name} of the schema is for malformed values and has type "
                    f"{field.dataType.simpleString()}; it must be string or binary"
                )
            corrupt = field.name
        else:
            _check_arrow(field)
            values.append(field.name)
    if corrupt is not None and not values:
        raise ConfigError(
            f"column {corrupt} of the schema is for malformed values, and no column is decoded from a value; "
            f"add one that is, or take {METADATA_PREFIX}value"
        )
    return UserSchema(
        schema=schema, value_columns=tuple(values), metadata_columns=tuple(metadata), corrupt_column=corrupt
    )


def _check_names(schema: StructType) -> None:
    seen: set[str] = set()
    for name in schema.fieldNames():
        if name.lower() in seen:
            raise ConfigError(f"the schema names column {name} twice; Spark tells columns apart without their case")
        seen.add(name.lower())


def _check_metadata(field: StructField, column: str) -> None:
    (wanted,) = default_schema([column]).fields
    if field.dataType != wanted.dataType:
        raise ConfigError(
            f"column {field.name} of the schema has type {field.dataType.simpleString()}; "
            f"it must be {wanted.dataType.simpleString()}"
        )


def _check_nullable(schema: StructType) -> None:
    # Any value may lack any field, and Spark takes NOT NULL for a promise.
    for place in _never_null(schema, ""):
        raise ConfigError(
            f"{place} of the schema is NOT NULL, which nobody can promise of what others send; let it be null"
        )


def _never_null(kind: DataType, place: str) -> Iterator[str]:
    match kind:
        case StructType():
            for field in kind.fields:
                inside = f"{place}.{field.name}" if place else f"column {field.name}"
                if not field.nullable:
                    yield inside
                yield from _never_null(field.dataType, inside)
        case ArrayType():
            if not kind.containsNull:
                yield f"an element of {place}"
            yield from _never_null(kind.elementType, place)
        case MapType():
            if not kind.valueContainsNull:
                yield f"a value of {place}"
            yield from _never_null(kind.keyType, place)
            yield from _never_null(kind.valueType, place)


def _check_arrow(field: StructField) -> None:
    try:
        arrow_schema(StructType([field]))
    except PySparkTypeError:
        raise ConfigError(
            f"column {field.name} of the schema has type {field.dataType.simpleString()}, which no value is decoded "
            "to; use another type, such as string"
        ) from None
