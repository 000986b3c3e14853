from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.run import Run
from tests.builders import HEADER_BYTES, START, A, a_block, a_message, a_run, parsed


def a_chunk(*parts: Run) -> Chunk:
    return Chunk(tuple(parts[:-1]), parts[-1])


def seqs_inside(chunk: Chunk) -> list[list[int]]:
    """The seqs of the frames of each message: what `a_run` writes into them."""
    return [[seq for (seq,) in struct.iter_unpack("<Q", message.payload.tobytes())] for message in chunk.messages()]


def test_messages_are_named_and_ordered_by_their_last_frame() -> None:
    chunk = a_chunk(a_run(A, 5, START + 50, "..|||.|"))
    assert [(m.seq, m.timestamp) for m in chunk.messages()] == [
        (7, START + 52),
        (8, START + 53),
        (9, START + 54),
        (11, START + 56),
    ]
    assert seqs_inside(chunk) == [[5, 6, 7], [8], [9], [10, 11]]
    assert (chunk.count, chunk.first_seq, chunk.last_seq) == (4, 5, 11)
    assert (chunk.start_timestamp, chunk.first_timestamp, chunk.last_timestamp) == (START + 50, START + 52, START + 56)


def test_a_message_begun_in_earlier_runs_is_put_together() -> None:
    chunk = a_chunk(a_run(A, 5, START + 50, ".."), a_run(A, 7, START + 90, "."), a_run(A, 8, START + 99, ".||"))
    assert seqs_inside(chunk) == [[5, 6, 7, 8, 9], [10]]
    assert (chunk.first_seq, chunk.last_seq, chunk.count) == (5, 10, 2)
    assert (chunk.start_timestamp, chunk.first_timestamp, chunk.last_timestamp) == (
        START + 50,
        START + 100,
        START + 101,
    )
    assert chunk.nbytes == 6 * (HEADER_BYTES + 8)
    assert chunk.source == A


@given(st.text(alphabet="|.", max_size=12).map(lambda ends: ends + "|"), st.data())
def test_a_cut_gives_the_messages_at_or_below_a_timestamp_and_the_others(ends: str, data: st.DataObject) -> None:
    chunk = a_chunk(a_run(A, 1, START + 1, ends))
    stamps = [message.timestamp for message in chunk.messages()]
    if len(stamps) < 2:
        return
    bound = data.draw(st.integers(stamps[0], stamps[-1] - 1))
    below, above = chunk.cut(bound)
    assert [m.timestamp for m in below.messages()] == [stamp for stamp in stamps if stamp <= bound]
    assert [m.timestamp for m in above.messages()] == [stamp for stamp in stamps if stamp > bound]
    assert seqs_inside(below) + seqs_inside(above) == seqs_inside(chunk)


def test_the_part_above_a_cut_does_not_keep_what_began_the_first_message() -> None:
    chunk = a_chunk(a_run(A, 5, START + 50, ".."), a_run(A, 7, START + 90, "||"))
    below, above = chunk.cut(START + 90)
    assert (seqs_inside(below), seqs_inside(above)) == ([[5, 6, 7]], [[8]])
    assert above.start_timestamp == START + 91


@pytest.mark.parametrize("body", [16, 24, 80, 800])
def test_records_are_the_same_one_by_one_and_by_batch(body: int) -> None:
    records = [b"", b"a", bytes(range(100)), b"z" * 33]
    runs = [run for run in parsed(a_block(a_message(records, body=body))) if isinstance(run, Run)]
    chunk = a_chunk(*runs)
    assert [message.records() for message in chunk.messages()] == [records]
    assert [batch.to_list() for batch in chunk.batches()] == [records]


def test_a_payload_that_is_not_made_of_records_has_none() -> None:
    chunk = a_chunk(a_run(seq=5))
    assert [message.records() for message in chunk.messages()] == [[]]
    assert list(chunk.batches()) == []
