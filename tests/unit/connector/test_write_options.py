"""Options and columns of a write: what they become, and the sentence with which anything else is refused."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CalendarIntervalType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from intergroup_core.config import Config
from intergroup_core.errors import ConfigError
from pyspark_intergroup.option_table import READ_OPTIONS, WRITE_OPTIONS, Scope
from pyspark_intergroup.options import check_for_some_read
from pyspark_intergroup.source import InterGroupSource
from pyspark_intergroup.write_options import WriteOptions
from pyspark_intergroup.write_schema import RowLayout, layout_of
from tests.unit.connector.writes import a_write

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def columns(**types: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


def test_a_write_that_says_nothing_but_its_group() -> None:
    options = a_write(streaming=True)
    assert options == WriteOptions(group="prices")
    assert (options.ack, options.ack_timeout_s, options.transactional) == ("majority", 30.0, True)
    assert (options.transaction_timeout_s, options.send_from, options.encode) == (3_600, "executors", None)
    assert options.config == Config()


def test_every_option_ends_where_it_belongs() -> None:
    options = a_write(
        ACK="K:2",
        ackTimeout="500ms",
        transactionTimeout="90.5s",
        sendFrom="Driver",
        txnAppId="nightly",
        txnVersion="0",
        encode="JSON",
        agent="/var/site",
        interface="lo",
    )
    assert options == WriteOptions(
        group="prices",
        config=Config.from_mapping({"network": {"interface": "lo"}}),
        agent="/var/site",
        encode="json",
        ack="k:2",
        ack_timeout_s=0.5,
        transaction_timeout_s=91,
        send_from="driver",
        application="nightly",
        version=0,
    )
    assert pickle.loads(pickle.dumps(options)) == options
    assert not a_write(transactional="false").transactional


def test_what_spark_adds_is_no_option_of_ours() -> None:
    assert a_write(streaming=True, checkpointlocation="/tmp/x") == a_write()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ack": "some"}, "ack is 'some'; it must be sent, delivered, k:N for N further sites, majority or all"),
        ({"ack": "k:0"}, "ack is 'k:0'; it must be"),
        ({"ackTimeout": "0"}, "ackTimeout is '0'; it must be a duration"),
        ({"transactional": "no"}, "transactional is 'no'; it must be true or false"),
        ({"ack": "k:1000"}, "ack is 'k:1000'; it must be sent, delivered, k:N"),
        ({"ackTimeout": "12d"}, r"ackTimeout is '12d'; it must be 7 days \(7d\) at most"),
        ({"transactionTimeout": "8d"}, r"transactionTimeout is '8d'; it must be 7 days \(7d\) at most"),
        ({"sendFrom": "here"}, "sendFrom is 'here'; it must be executors or driver"),
        ({"encode": "avro"}, "encode is 'avro'; it must be raw, arrow or json"),
        ({"txnAppId": "x" * 129, "txnVersion": "1"}, "txnAppId is .*; it must be 1 to 128 bytes of printable text"),
        ({"txnAppId": "x", "txnVersion": "-1"}, "txnVersion is '-1'; it must be a whole number from 0 to"),
        ({"txnAppId": "x", "txnVersion": "9007199254740993"}, "txnVersion is .*; it must be a whole number from 0"),
        ({"txnAppId": "x"}, "txnAppId is given and txnVersion is not; give both, or leave it out"),
        ({"txnVersion": "1"}, "txnVersion is given and txnAppId is not"),
        ({"transactional": "false", "txnAppId": "x", "txnVersion": "1"}, "txnAppId is about transactions, and"),
        ({"transactional": "false", "transactionTimeout": "5s"}, "transactionTimeout is about transactions, and"),
        ({"group": "a,b"}, "group is 'a,b'; a write goes to one, or to those that a column group_name names"),
        ({"acks": "all"}, "there is no option 'acks'; did you mean ack?"),
        ({"startingOffsets": "latest"}, "startingOffsets is for reads; leave it out of a write"),
        ({"path": "/x"}, "path is for reads; leave it out of a write"),
        ({"executors": "auto"}, "executors is for reads; leave it out of a write"),
        ({"security": "tls"}, "security is 'tls'; only off is possible for now"),
    ],
)
def test_a_wrong_option_is_refused_in_a_sentence(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as told:
        a_write(**options)
    assert ";" in str(told.value), "it does not say what to do"


def test_a_stream_has_its_own_name_for_its_batches() -> None:
    with pytest.raises(ConfigError, match="txnAppId is for batch writes; leave it out of a stream, whose batches are"):
        a_write(streaming=True, txnAppId="x", txnVersion="1")


def test_every_option_is_for_reads_or_for_writes() -> None:
    both = {option.name for option in READ_OPTIONS} & {option.name for option in WRITE_OPTIONS}
    assert both == {option.name for option in WRITE_OPTIONS if option.scope is Scope.ALL}
    assert {"group", "interface", "agent", "quorum"} <= both


def test_before_it_is_known_what_options_are_for_only_what_nobody_takes_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no option 'acks'; did you mean ack"):
        check_for_some_read({"group": "prices", "acks": "all"})
    check_for_some_read({"group": "prices", "ack": "some"})
    check_for_some_read({"ack": "all"})


# Columns


@pytest.mark.parametrize(
    ("schema", "layout"),
    [
        (columns(value=BinaryType()), RowLayout(encode="raw", value=0)),
        (columns(key=StringType(), VALUE=StringType()), RowLayout(encode="raw", value=1, key=0)),
        (
            columns(group_name=StringType(), headers=HEADERS, key=BinaryType(), value=BinaryType()),
            RowLayout(encode="raw", group=0, headers=1, key=2, value=3),
        ),
        (columns(value=LongType()), RowLayout(encode="arrow", encoded=(0,))),
        (columns(value=BinaryType(), price=LongType()), RowLayout(encode="arrow", encoded=(0, 1))),
        (columns(key=BinaryType()), RowLayout(encode="arrow", encoded=(0,))),
        (
            columns(price=LongType(), group_name=StringType(), at=LongType()),
            RowLayout(encode="arrow", group=1, encoded=(0, 2)),
        ),
    ],
)
def test_columns_suggest_how_rows_are_encoded(schema: StructType, layout: RowLayout) -> None:
    assert layout_of(schema, a_write()) == layout


def test_an_encoding_can_be_forced() -> None:
    schema = columns(value=BinaryType(), key=BinaryType())
    assert layout_of(schema, a_write(encode="json")) == RowLayout(encode="json", encoded=(0, 1))


@pytest.mark.parametrize(
    ("schema", "encode", "said"),
    [
        (columns(price=LongType()), "raw", "encode is 'raw', and there is no column value; name one so, or use"),
        (columns(value=LongType()), "raw", "column value has type bigint; it must be binary or string"),
        (columns(value=StringType(), key=LongType()), None, "column key has type bigint; it must be binary or string"),
        (columns(value=StringType(), price=LongType()), "raw", "column price has no place in a raw record, which has"),
        (
            columns(value=StringType(), headers=MapType(StringType(), StringType())),
            None,
            "column headers has type map<string,string>; it must be array<struct<key:string,value:binary>>",
        ),
        (columns(price=LongType(), group_name=LongType()), None, "column group_name has type bigint; it must be text"),
        (columns(group_name=StringType()), None, "there is no column but group_name; name some that the records are"),
        (columns(m=MapType(LongType(), LongType())), "json", "column m has a map with keys of type int64, which JSON"),
        (
            columns(i=CalendarIntervalType()),
            "arrow",
            "column i has type interval, which Arrow has no form for; cast it",
        ),
        (columns(price=LongType(), PRICE=LongType()), None, "column PRICE is there twice; Spark tells columns apart"),
    ],
)
def test_columns_that_cannot_be_written_are_refused(schema: StructType, encode: str | None, said: str) -> None:
    options = a_write(**({"encode": encode} if encode else {}))
    with pytest.raises(ConfigError, match=said.replace("(", r"\(")) as told:
        layout_of(schema, options)
    assert ";" in str(told.value), "it does not say what to do"


def test_a_row_goes_somewhere() -> None:
    nowhere = WriteOptions.of({}, streaming=True)
    with pytest.raises(ConfigError, match="there is no group to write to; name it with"):
        layout_of(columns(value=StringType()), nowhere)
    assert layout_of(columns(value=StringType(), group_name=StringType()), nowhere).group == 1


def test_nothing_that_was_sent_is_replaced() -> None:
    source = InterGroupSource({"group": "prices"})
    schema = columns(value=BinaryType())
    with pytest.raises(ConfigError, match=r'the mode is "overwrite", and nothing that was sent .*; use "append"'):
        source.writer(schema, overwrite=True)
    with pytest.raises(ConfigError, match=r'outputMode is "complete", and nothing that was sent .*; use "append"'):
        source.streamWriter(schema, overwrite=True)
    for writer in (source.writer(schema, overwrite=False), source.streamWriter(schema, overwrite=False)):
        assert pickle.loads(pickle.dumps(writer)) is not None
