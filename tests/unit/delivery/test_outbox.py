from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.delivery.outbox import Outbox
from intergroup_core.errors import Backpressure, LocalProtocolError, MessageTooLarge
from intergroup_core.wire.records import Payload, RecordBatch, unpack_records

OVERHEAD = 4
"""Bytes of a record's length."""


def an_outbox(limit: int = 1_000, largest: int = 500) -> Outbox:
    return Outbox(limit, largest)


def records_in(payload: Payload) -> list[bytes]:
    batch = unpack_records(payload.slice(0, len(payload)).copy())
    assert batch is not None
    return batch.to_list()


def a_batch(records: list[bytes]) -> RecordBatch:
    offsets = np.cumsum([0, *map(len, records)], dtype=np.int64)
    return RecordBatch(offsets, np.frombuffer(b"".join(records), dtype=np.uint8))


def test_records_of_several_calls_are_bundled_in_order() -> None:
    outbox = an_outbox()
    outbox.offer([b"one", b"two"])
    outbox.offer([b"three"])
    payload, count = outbox.bundle(1_000)
    assert (records_in(payload), count) == ([b"one", b"two", b"three"], 3)
    assert not outbox
    assert outbox.bytes == 0


@pytest.mark.parametrize("records", [[b"alone"], a_batch([b"alone"]), a_batch([b"before", b"alone", b"after"])])
def test_a_record_that_waits_alone_is_a_message(records: list[bytes] | RecordBatch) -> None:
    outbox = an_outbox()
    if isinstance(records, RecordBatch) and len(records) == 3:
        records = RecordBatch(records.offsets[1:3], records.data)  # a batch may be part of a larger one
    outbox.offer(records)
    assert (outbox.records, outbox.first_payload_bytes()) == (1, 4 + OVERHEAD + 5)
    payload, count = outbox.bundle(1_000)
    assert (records_in(payload), count, outbox.bytes, bool(outbox)) == ([b"alone"], 1, 0, False)


def test_a_record_alone_that_another_follows_is_bundled_with_it() -> None:
    outbox = an_outbox()
    outbox.offer([b"one"])
    outbox.offer([b"two"])
    outbox.offer(a_batch([b"three"]))
    payload, count = outbox.bundle(1_000)
    assert (records_in(payload), count, outbox.bytes) == ([b"one", b"two", b"three"], 3, 0)


def test_a_bundle_ends_before_the_record_that_would_exceed_its_limit() -> None:
    outbox = an_outbox()
    outbox.offer([b"12345678"] * 5)
    exactly_two = 4 + 2 * (OVERHEAD + 8)
    assert len(records_in(outbox.bundle(exactly_two)[0])) == 2
    assert len(records_in(outbox.bundle(exactly_two - 1)[0])) == 1
    assert outbox.bytes == 2 * (OVERHEAD + 8)


def test_one_record_is_taken_however_small_the_limit() -> None:
    outbox = an_outbox()
    outbox.offer([b"x" * 400, b"y"])
    payload, count = outbox.bundle(10)
    assert (records_in(payload), count) == ([b"x" * 400], 1)


def test_the_least_payload_of_the_next_message_is_its_first_record() -> None:
    outbox = an_outbox()
    outbox.offer([b"", b"x" * 400])
    assert outbox.first_payload_bytes() == 4 + OVERHEAD
    outbox.bundle(1)
    assert outbox.first_payload_bytes() == 4 + OVERHEAD + 400


def test_what_does_not_fit_the_queue_is_refused_and_nothing_of_it_is_taken() -> None:
    outbox = an_outbox(limit=100)
    outbox.offer([b"x" * 50])
    free = outbox.free
    with pytest.raises(Backpressure, match=f"room for {free}"):
        outbox.offer([b"a", b"b" * free])
    assert outbox.free == free
    outbox.offer([b"c" * (free - OVERHEAD)])
    assert outbox.free == 0
    assert records_in(outbox.bundle(1_000)[0]) == [b"x" * 50, b"c" * (free - OVERHEAD)]


def test_a_record_beyond_the_maximum_is_named_and_nothing_is_taken() -> None:
    outbox = an_outbox(largest=100)
    with pytest.raises(MessageTooLarge, match=r"record 2 has 101 bytes; the group takes at most 100"):
        outbox.offer([b"", b"x" * 100, b"y" * 101])
    assert not outbox
    outbox.offer([b"x" * 100])


def test_an_empty_queue_takes_a_list_of_any_size_or_it_could_never_be_sent() -> None:
    outbox = an_outbox(limit=100)
    outbox.offer([b"x" * 60] * 3)
    assert outbox.free == 0
    with pytest.raises(Backpressure):
        outbox.offer([b""])


def test_no_records_are_no_message() -> None:
    outbox = an_outbox()
    outbox.offer([])
    assert not outbox


@pytest.mark.parametrize("single", [b"record", bytearray(b"record"), memoryview(b"record")])
def test_a_single_record_must_be_wrapped(single: bytes) -> None:
    outbox = an_outbox()
    with pytest.raises(LocalProtocolError, match="wrap"):
        outbox.offer(single)  # type: ignore[arg-type]
    assert not outbox


def test_what_the_caller_does_with_its_list_afterwards_is_its_own_affair() -> None:
    outbox = an_outbox()
    mine = [b"one", b"two"]
    outbox.offer(mine)
    mine[0] = b"changed"
    mine.clear()
    assert records_in(outbox.bundle(1_000)[0]) == [b"one", b"two"]


@pytest.mark.parametrize("kind", [list, tuple, a_batch])
def test_lists_tuples_and_batches_are_the_same_to_it(kind: type) -> None:
    outbox = an_outbox()
    outbox.offer(kind([b"one", b"", b"three", b"four"]))
    assert records_in(outbox.bundle(4 + 2 * OVERHEAD + 3)[0]) == [b"one", b""]
    assert records_in(outbox.bundle(1_000)[0]) == [b"three", b"four"]


@given(
    st.lists(st.lists(st.binary(max_size=30), max_size=12), max_size=8),
    st.lists(st.integers(1, 200), min_size=1, max_size=60),
    st.booleans(),
)
def test_everything_offered_comes_out_once_in_order_within_the_limits(
    calls: list[list[bytes]], limits: list[int], batches: bool
) -> None:
    outbox = Outbox(1_000_000, 500)
    for records in calls:
        outbox.offer(a_batch(records) if batches else records)
    assert outbox.bytes == sum(OVERHEAD + len(record) for records in calls for record in records)
    out: list[bytes] = []
    turn = 0
    while outbox:
        limit = limits[turn % len(limits)]
        least = outbox.first_payload_bytes()
        payload, count = outbox.bundle(limit)
        records = records_in(payload)
        assert len(records) == count >= 1
        assert len(payload) <= max(limit, least)
        out += records
        turn += 1
    assert out == [record for records in calls for record in records]
    assert outbox.bytes == 0


def test_who_was_refused_is_told_once_that_much_fits() -> None:
    outbox = Outbox(10_000, max_message_bytes=10_000)
    for _ in range(9):
        outbox.offer([bytes(996)])
    with pytest.raises(Backpressure):
        outbox.offer([bytes(2_996)])
    assert not outbox.has_room_again()
    outbox.bundle(1)
    assert not outbox.has_room_again()
    outbox.bundle(1)
    assert outbox.free == 3_000
    assert outbox.has_room_again()
    assert not outbox.has_room_again(), "it is said once"
