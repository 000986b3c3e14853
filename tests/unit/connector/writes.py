"""Frames that are written, and records made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from intergroup_core.wire.records import Rows
from pyspark_intergroup.row_encoder import RowEncoder
from pyspark_intergroup.schema import arrow_schema
from pyspark_intergroup.write_options import WriteOptions
from pyspark_intergroup.write_schema import layout_of


def a_write(*, streaming: bool = False, **options: str) -> WriteOptions:
    return WriteOptions.of({"group": "prices"} | options, streaming=streaming)


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def a_frame(rows: Sequence[Mapping[str, Any]], **columns: pa.DataType) -> pa.RecordBatch:
    """As Spark hands it to a task."""
    spark = from_arrow_schema(pa.schema(list(columns.items())), prefer_timestamp_ntz=True)
    return pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(spark))


def encoded(frame: pa.RecordBatch, options: WriteOptions) -> list[tuple[str, Rows]]:
    schema = from_arrow_schema(frame.schema, prefer_timestamp_ntz=True)
    return list(RowEncoder(layout_of(schema, options), options.group).encoded(frame))


def values_of(frame: pa.RecordBatch, encode: str) -> list[bytes]:
    """Of a frame that goes to one group."""
    values: list[bytes] = []
    for group, rows in encoded(frame, a_write(encode=encode)):
        assert group == "prices"
        values += rows.values.to_list()
    return values
