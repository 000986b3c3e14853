"""What becomes of rows whose values cannot be decoded, and of rows that have none."""

from __future__ import annotations

import io
import pickle

import msgpack
import pyarrow as pa
import pytest

from intergroup_core.errors import ConfigError, ValueMalformed
from pyspark_intergroup.values import ValueDecoder
from tests.unit.connector.value_batches import a_batch, decoded

PRICE = pa.schema([("price", pa.int64())])
WITH_CORRUPT = pa.schema([("price", pa.int64()), ("bad", pa.binary()), ("_seq", pa.int64())])


def a_stream_of(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


GOOD = {"json": b'{"price": 5}', "msgpack": msgpack.packb({"price": 5}), "arrow": a_stream_of(pa.table({"price": [5]}))}


@pytest.mark.parametrize("value_format", GOOD)
def test_a_malformed_value_leaves_nulls_and_itself(value_format: str) -> None:
    decoder = ValueDecoder(WITH_CORRUPT, value_format, "PERMISSIVE", "BAD")
    assert decoded(decoder, [GOOD[value_format], b"\xff{", GOOD[value_format]]) == [
        {"price": 5, "bad": None, "_seq": 100},
        {"price": None, "bad": b"\xff{", "_seq": 101},
        {"price": 5, "bad": None, "_seq": 102},
    ]


@pytest.mark.parametrize("value_format", GOOD)
def test_a_decoder_goes_to_executors_and_is_the_same_there(value_format: str) -> None:
    decoder = pickle.loads(pickle.dumps(ValueDecoder(WITH_CORRUPT, value_format, "PERMISSIVE", "BAD")))
    assert decoded(decoder, [GOOD[value_format], b"x"]) == [
        {"price": 5, "bad": None, "_seq": 100},
        {"price": None, "bad": b"x", "_seq": 101},
    ]


@pytest.mark.parametrize("value_format", GOOD)
def test_a_malformed_value_takes_its_row_with_it(value_format: str) -> None:
    decoder = ValueDecoder(pa.schema([*PRICE, ("_seq", pa.int64())]), value_format, "DROPMALFORMED")
    values = [b"", GOOD[value_format], b"x", b"y", GOOD[value_format]]
    assert decoded(decoder, values) == [{"price": 5, "_seq": 101}, {"price": 5, "_seq": 104}]


@pytest.mark.parametrize("value_format", GOOD)
def test_a_malformed_value_ends_the_read_with_a_sentence_that_names_its_record(value_format: str) -> None:
    decoder = ValueDecoder(PRICE, value_format, "FAILFAST")
    assert decoded(decoder, [GOOD[value_format]]) == [{"price": 5}]
    with pytest.raises(ValueMalformed) as refused:
        decoded(decoder, [GOOD[value_format], b"\xc1", b"x"])
    said = str(refused.value)
    assert said.startswith("the value of record 7 of message 101 from 0123456789abcdef in group prices is not ")
    assert "set mode to PERMISSIVE or DROPMALFORMED" in said
    assert str(pickle.loads(pickle.dumps(refused.value))) == said


def test_a_mismatch_is_named_with_its_column() -> None:
    with pytest.raises(ValueMalformed, match=r"column price: 'a lot' is not a whole number of 64 bits;"):
        decoded(ValueDecoder(PRICE, "json", "FAILFAST"), [b'{"price": "a lot"}'])


def test_malformed_values_as_text() -> None:
    decoder = ValueDecoder(pa.schema([*PRICE, ("bad", pa.string())]), "json", corrupt_column="bad")
    assert [row["bad"] for row in decoded(decoder, [b"caf\xc3\xa9", b"caf\xe9"])] == ["caf\u00e9", "caf\ufffd"]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])
@pytest.mark.parametrize("value_format", GOOD)
def test_rows_that_are_not_data_have_no_values_and_are_never_malformed(value_format: str, mode: str) -> None:
    decoder = ValueDecoder(pa.schema([("_kind", pa.string()), *PRICE]), value_format, mode)
    good = GOOD[value_format]
    rows = decoded(decoder, [None, good, None, good, b"junk"], ["view", "data", "gap", "data", "view"])
    assert [row["price"] for row in rows] == [None, 5, None, 5, None]
    assert [row["_kind"] for row in rows] == ["view", "data", "gap", "data", "view"]


@pytest.mark.parametrize("value_format", GOOD)
def test_malformed_rows_are_found_between_rows_that_are_not_data(value_format: str) -> None:
    decoder = ValueDecoder(WITH_CORRUPT, value_format, corrupt_column="bad")
    rows = decoded(decoder, [None, b"junk", GOOD[value_format]], ["view", "data", "data"])
    assert [(row["price"], row["bad"]) for row in rows] == [(None, None), (None, b"junk"), (5, None)]


@pytest.mark.parametrize("value_format", GOOD)
def test_data_without_a_value_is_null_and_not_malformed(value_format: str) -> None:
    assert decoded(ValueDecoder(PRICE, value_format, "FAILFAST"), [None]) == [{"price": None}]


@pytest.mark.parametrize("value_format", GOOD)
def test_a_batch_without_rows(value_format: str) -> None:
    assert decoded(ValueDecoder(WITH_CORRUPT, value_format, corrupt_column="bad"), []) == []


def test_a_batch_of_malformed_values_alone() -> None:
    for value_format in GOOD:
        assert decoded(ValueDecoder(PRICE, value_format), [b"junk"] * 100) == [{"price": None}] * 100


def test_a_schema_of_metadata_alone_decodes_nothing() -> None:
    decoder = ValueDecoder(pa.schema([("_seq", pa.int64()), ("_value", pa.binary())]), mode="FAILFAST")
    assert decoder.columns == ("seq", "value")
    assert decoded(decoder, [b"junk"]) == [{"_seq": 100, "_value": b"junk"}]


def test_a_decoder_says_which_columns_it_needs() -> None:
    schema = pa.schema([("_seq", pa.int64()), ("price", pa.int64()), ("bad", pa.string())])
    assert ValueDecoder(schema, corrupt_column="bad").columns == ("seq", "kind", "value")
    strict = ValueDecoder(schema, mode="FAILFAST", corrupt_column="bad")
    assert strict.columns == ("seq", "kind", "value", "group_name", "sender_id", "record")
    assert decoded(strict, [b'{"price": 1}']) == [{"_seq": 100, "price": 1, "bad": None}]
    assert strict.decode(a_batch([b'{"price": 1}']).select(list(strict.columns))).num_rows == 1


def test_a_format_or_mode_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="valueFormat is 'avro'; it must be one of arrow, json, msgpack"):
        ValueDecoder(PRICE, "avro")
    with pytest.raises(ConfigError, match="mode is 'lenient'; it must be one of"):
        ValueDecoder(PRICE, "json", "lenient")


def test_a_type_that_a_format_has_no_form_for() -> None:
    schema = pa.schema([("took", pa.duration("us"))])
    for value_format in ("json", "msgpack"):
        with pytest.raises(ConfigError, match=r"column took of the schema has type duration\[us\].*valueFormat arrow"):
            ValueDecoder(schema, value_format)
    assert ValueDecoder(schema, "arrow").columns == ("kind", "value")
