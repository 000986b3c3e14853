"""Rows from a log are the rows a live reader saw."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intergroup_core.errors import ConfigError
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.arrow import COLUMNS, SCHEMA, ArrowRows
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.reader import LogReader
from intergroup_core.sim.disk import SimDisk
from intergroup_core.wire.headers import encode_headers
from intergroup_core.wire.labels import encode_label
from tests.builders import START, A, B, a_message, laid_out
from tests.log_builders import (
    a_chunk,
    a_gap,
    a_history,
    a_label,
    a_log,
    an_install,
    chunk_of,
    live_rows,
    messages_alike,
    rows_of,
)
from tests.sizes import sized


@settings(max_examples=sized(20, 300))
@given(
    seed=st.integers(0, 2**32), service=st.sampled_from(Service), segment_bytes=st.sampled_from((600, 3_000, 1 << 20))
)
def test_a_log_gives_the_rows_that_were_seen_live(seed: int, service: Service, segment_bytes: int) -> None:
    history = a_history(Random(seed), 30, service)
    disk = SimDisk()
    log = a_log(disk, service=service, segment_bytes=segment_bytes)
    for delivered in history:
        log.append(delivered)
    assert rows_of(disk) == live_rows(history, service)


@pytest.mark.parametrize(
    "columns", [("value",), ("position", "value"), ("sender", "seq", "record"), ("kind", "members")]
)
def test_only_the_columns_asked_for_are_made_and_they_are_the_same(columns: tuple[str, ...]) -> None:
    history = a_history(Random(5), 60)
    disk = SimDisk()
    log = a_log(disk)
    for delivered in history:
        log.append(delivered)
    assert rows_of(disk, columns=columns) == [{name: row[name] for name in columns} for row in live_rows(history)]


def test_a_column_that_is_not_there_is_named_with_those_that_are() -> None:
    disk = SimDisk()
    a_log(disk)
    with pytest.raises(ConfigError, match=r"no column vlaue; the columns are kind, group_name"):
        ArrowRows(LogReader(disk), ("vlaue",))


def test_the_schema_is_that_of_a_spark_read() -> None:
    assert COLUMNS[:7] == ("kind", "group_name", "sender", "sender_id", "seq", "record", "position")
    assert COLUMNS[7:] == tuple(
        "timestamp sent_timestamp lamport view_id key value headers members joined departed branches txn".split()
    )
    assert SCHEMA.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert (SCHEMA.field("seq").type, SCHEMA.field("record").type) == (pa.int64(), pa.int32())


def test_a_gap_says_why_to_those_who_ask() -> None:
    disk = SimDisk()
    log = a_log(disk)
    log.append(an_install(A))
    log.append(a_gap("too slow"))
    assert rows_of(disk, columns=("kind", "reason")) == [
        {"kind": "view", "reason": None},
        {"kind": "gap", "reason": "too slow"},
    ]


def test_batches_end_at_a_number_of_rows_and_hold_whole_messages() -> None:
    disk = SimDisk()
    log = a_log(disk)
    for number in range(10):
        log.append(messages_alike(4, records=5, seq=1 + 4 * number, timestamp=START + 1 + 4 * number))
    batches = list(ArrowRows(LogReader(disk), ("value",)).batches(rows=60))
    assert [batch.num_rows for batch in batches] == [60, 60, 60, 20]
    for batch in batches:
        batch.validate(full=True)


def test_messages_alike_and_one_by_one_give_the_same() -> None:
    """Same records in one run of equal frames, and in frames that differ in size."""
    records = [b"%07d" % number for number in range(9)]
    together, apart = SimDisk(), SimDisk()
    a_log(together).append(
        chunk_of(
            [
                frame
                for at, each in enumerate(records)
                for frame in a_message([each], seq=1 + at, timestamp=START + 1 + at)
            ]
        )
    )
    log = a_log(apart)
    for at, each in enumerate(records):
        log.append(a_chunk(each, seq=1 + at, timestamp=START + 1 + at))
    assert rows_of(together) == rows_of(apart)
    assert [row["value"] for row in rows_of(apart)] == records


def test_a_range_that_begins_in_mid_log_knows_view_and_names() -> None:
    disk = SimDisk()
    log = a_log(disk, segment_bytes=400)
    log.append(an_install(A, B))
    for number in range(12):
        log.append(a_chunk(b"%d" % number, source=(A, B)[number % 2], seq=1 + number, timestamp=START + 1 + number))
    whole = rows_of(disk)
    assert rows_of(disk, OrderCut(START + 9, MemberId(B))) == whole[10:]
    assert {row["sender"] for row in whole[10:]} == {"anna", "bert"}


def test_staged_messages_that_are_alike_give_what_they_give_one_by_one() -> None:
    label = encode_label(a_label())
    payloads = [laid_out([b"%04d" % at, b"x"], label=label) for at in range(7)]
    together, apart = SimDisk(), SimDisk()
    frames = [
        frame
        for at, payload in enumerate(payloads)
        for frame in a_message(seq=1 + at, timestamp=START + 1 + at, payload=payload)
    ]
    a_log(together).append(chunk_of(frames))
    log = a_log(apart)
    for frame in frames:
        log.append(chunk_of([frame]))
    assert rows_of(together) == rows_of(apart)
    assert [(row["value"], row["txn"]) for row in rows_of(apart)][:2] == [(b"0000", "query/0"), (b"x", "query/0")]


def test_rows_show_the_transaction_key_and_headers_of_each() -> None:
    disk = SimDisk()
    log = a_log(disk)
    headers = [encode_headers([("a", b"1"), ("b", None)]), b"", b"\xc1"]
    payloads = [
        laid_out([b"x", b"y", b"z"], keys=[None, b"", b"k"], headers=headers),
        laid_out([b"s"], label=encode_label(a_label("query", 1))),
        laid_out([b"t"], label=encode_label(a_label("other", 9))),
        laid_out([b"u"]),
    ]
    for at, payload in enumerate(payloads):
        log.append(chunk_of(a_message(seq=1 + at, timestamp=START + 1 + at, payload=payload)))
    (batch,) = ArrowRows(LogReader(disk), ("value", "key", "headers", "txn")).batches()
    batch.validate(full=True)
    assert batch["key"].to_pylist() == [None, b"", b"k", None, None, None]
    assert batch["txn"].to_pylist() == [None, None, None, "query/1", "other/9", None]
    assert batch["headers"].to_pylist() == [
        [{"key": "a", "value": b"1"}, {"key": "b", "value": None}],
        *[[]] * 5,
    ]
