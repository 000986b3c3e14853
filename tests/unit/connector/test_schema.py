"""Schemas of a read; Spark's types need no JVM."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    YearMonthIntervalType,
)

from intergroup_core.errors import ConfigError
from intergroup_core.log.arrow import COLUMNS, SCHEMA
from pyspark_intergroup.schema import arrow_schema, checked_user_schema, default_schema

CONTRACT = {
    "kind": "string",
    "group_name": "string",
    "sender": "string",
    "sender_id": "string",
    "seq": "bigint",
    "record": "int",
    "position": "string",
    "timestamp": "timestamp",
    "sent_timestamp": "timestamp",
    "lamport": "bigint",
    "view_id": "string",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "members": "array<string>",
    "joined": "array<string>",
    "departed": "array<string>",
    "branches": "array<string>",
    "txn": "string",
}


def a_schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_the_default_schema_is_the_contract() -> None:
    schema = default_schema()
    assert {field.name: field.dataType.simpleString() for field in schema.fields} == CONTRACT
    assert schema.fieldNames() == list(CONTRACT)
    assert all(field.nullable for field in schema.fields)


def test_a_subset_has_the_order_that_was_asked_for() -> None:
    assert default_schema(["value", "kind"]).simpleString() == "struct<value:binary,kind:string>"


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no column vlaue"):
        default_schema(["vlaue"])


def test_the_default_schema_in_arrow_has_the_types_that_logs_are_read_with() -> None:
    assert arrow_schema(default_schema()).equals(SCHEMA)


def test_columns_are_told_apart_by_where_they_come_from() -> None:
    schema = a_schema(
        price=LongType(), _seq=LongType(), _corrupt_record=StringType(), _id=StringType(), _KIND=StringType()
    )
    found = checked_user_schema(schema)
    assert found.schema == schema
    assert found.value_columns == ("price", "_id")
    assert found.metadata_columns == ("_seq", "_KIND")
    assert found.corrupt_column == "_corrupt_record"
    assert pickle.loads(pickle.dumps(found)) == found


def test_names_of_the_default_schema_without_their_prefix_are_fields_of_the_value() -> None:
    found = checked_user_schema(a_schema(seq=StringType(), value=BooleanType()))
    assert (found.value_columns, found.metadata_columns) == (("seq", "value"), ())


def test_every_column_of_the_default_schema_can_be_asked_for() -> None:
    schema = StructType([StructField(f"_{field.name}", field.dataType) for field in default_schema().fields])
    found = checked_user_schema(schema)
    assert found.metadata_columns == tuple(f"_{column}" for column in COLUMNS)
    assert found.value_columns == ()


@pytest.mark.parametrize("kind", [StringType(), BinaryType()])
def test_malformed_values_go_where_the_option_says(kind: DataType) -> None:
    found = checked_user_schema(a_schema(price=LongType(), Bad=kind), corrupt_column="bad")
    assert (found.value_columns, found.corrupt_column) == (("price",), "Bad")


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (a_schema(_seq=IntegerType()), "column _seq of the schema has type int; it must be bigint"),
        (
            a_schema(_headers=ArrayType(StringType())),
            "column _headers of the schema has type array<string>; it must be array<struct<key:string,value:binary>>",
        ),
        (a_schema(_timestamp=LongType()), "column _timestamp of the schema has type bigint; it must be timestamp"),
        (StructType(), "the schema has no columns; name some, or leave .schema(...) out"),
        (a_schema(price=LongType(), Price=LongType()), "the schema names column Price twice"),
        (a_schema(a=LongType(), _corrupt_record=LongType()), "column _corrupt_record of the schema is for malformed"),
        (
            a_schema(_corrupt_record=StringType()),
            "column _corrupt_record of the schema is for malformed values, and no",
        ),
        (a_schema(age=YearMonthIntervalType()), "column age of the schema has type interval year to month, which no"),
        (StructType([StructField("a", LongType(), nullable=False)]), "column a of the schema is NOT NULL"),
        (
            a_schema(a=StructType([StructField("b", TimestampType(), nullable=False)])),
            "column a.b of the schema is NOT NULL",
        ),
        (a_schema(a=ArrayType(LongType(), containsNull=False)), "an element of column a of the schema is NOT NULL"),
        (
            a_schema(a=ArrayType(MapType(StringType(), LongType(), valueContainsNull=False))),
            "a value of column a of the schema is NOT NULL",
        ),
    ],
)
def test_what_a_schema_cannot_have(schema: StructType, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        checked_user_schema(schema)
    assert str(refused.value).startswith(said)
