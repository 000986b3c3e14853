"""What the columns of a written frame are: parts of a record as they stand, or what a record is encoded from."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import PySparkTypeError
from pyspark.sql.types import ArrayType, BinaryType, DataType, StringType, StructType

from intergroup_core.errors import ConfigError
from pyspark_intergroup.json_encoder import check_json
from pyspark_intergroup.schema import arrow_schema
from pyspark_intergroup.write_options import WriteOptions

GROUP_COLUMN = "group_name"
RAW_COLUMNS = ("value", "key", "headers")
_ALLOWED = "value, key, headers and group_name"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """Places of columns, None where there is no such one."""

    encode: str
    """raw, arrow or json."""
    group: int | None = None
    value: int | None = None
    """With `raw` only, as the two that follow."""
    key: int | None = None
    headers: int | None = None
    encoded: tuple[int, ...] = ()
    """With `arrow` and `json`: what becomes a part of a record."""


def layout_of(schema: StructType, options: WriteOptions) -> RowLayout:
    """How rows of a schema are written, or a ConfigError that says why they cannot be."""
    places = _places(schema)
    group = places.get(GROUP_COLUMN)
    if group is not None:
        _check_type(schema, group, StringType(), "text")
    elif options.group is None:
        raise ConfigError(
            'there is no group to write to; name it with .option("group", NAME), or in a column group_name of each row'
        )
    encode = options.encode or _suggested(schema, places)
    if encode == "raw":
        return _raw_layout(schema, places, group)
    encoded = tuple(place for place in places.values() if place != group)
    if not encoded:
        raise ConfigError("there is no column but group_name; name some that the records are to have")
    _check_encoded(schema, encoded, encode)
    return RowLayout(encode=encode, group=group, encoded=encoded)


def _places(schema: StructType) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, name in enumerate(schema.fieldNames()):
        if places.setdefault(name.lower(), place) != place:
            raise ConfigError(f"column {name} is there twice; Spark tells columns apart without their case")
    return places


def _suggested(schema: StructType, places: dict[str, int]) -> str:
    value = places.get("value")
    is_raw = (
        value is not None
        and isinstance(schema.fields[value].dataType, BinaryType | StringType)
        and places.keys() <= {*RAW_COLUMNS, GROUP_COLUMN}
    )
    return "raw" if is_raw else "arrow"


def _raw_layout(schema: StructType, places: dict[str, int], group: int | None) -> RowLayout:
    if "value" not in places:
        raise ConfigError("encode is 'raw', and there is no column value; name one so, or use encode arrow or json")
    for name, place in places.items():
        if name not in (*RAW_COLUMNS, GROUP_COLUMN):
            raise ConfigError(
                f"column {schema.fieldNames()[place]} has no place in a raw record, which has {_ALLOWED}; leave it "
                "out, or use encode arrow or json"
            )
    for name in ("value", "key"):
        if name in places:
            _check_type(schema, places[name], BinaryType(), "binary or string", StringType())
    if "headers" in places:
        _check_headers(schema, places["headers"])
    return RowLayout(
        encode="raw", group=group, value=places["value"], key=places.get("key"), headers=places.get("headers")
    )


def _check_type(schema: StructType, place: int, wanted: DataType, said: str, *others: DataType) -> None:
    field = schema.fields[place]
    if not isinstance(field.dataType, tuple(type(each) for each in (wanted, *others))):
        raise ConfigError(f"column {field.name} has type {field.dataType.simpleString()}; it must be {said}")


def _check_headers(schema: StructType, place: int) -> None:
    field = schema.fields[place]
    match field.dataType:
        case ArrayType(elementType=StructType(fields=[key, value])) if (
            (key.name, value.name) == ("key", "value")
            and isinstance(key.dataType, StringType)
            and isinstance(value.dataType, BinaryType)
        ):
            return
    raise ConfigError(
        f"column {field.name} has type {field.dataType.simpleString()}; "
        "it must be array<struct<key:string,value:binary>>"
    )


def _check_encoded(schema: StructType, places: tuple[int, ...], encode: str) -> None:
    for place in places:
        field = schema.fields[place]
        try:
            columns = arrow_schema(StructType([field]))
        except PySparkTypeError:
            raise ConfigError(
                f"column {field.name} has type {field.dataType.simpleString()}, which Arrow has no form for; cast it"
            ) from None
        if encode == "json":
            check_json(columns)
