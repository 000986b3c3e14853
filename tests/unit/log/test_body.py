"""What entries carry."""

from __future__ import annotations

import struct
from random import Random

import pytest

from intergroup_core.config import HEADER_BYTES
from intergroup_core.effects import Departure
from intergroup_core.log.body import gap_of, install_of, message_flags, packed_gap, packed_install, stated_records
from intergroup_core.log.entry import EntryFlag
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.labels import encode_label
from intergroup_core.wire.statements import Holding, encode_statement
from tests.builders import START, A, B, C, a_frame, a_message, laid_out, packed
from tests.log_builders import a_chunk, a_gap, a_history, a_label, an_install, chunk_of, messages_alike


def test_views_and_gaps_are_read_as_they_were_written() -> None:
    install = an_install(
        A,
        C,
        transitional=(A,),
        joined=(C,),
        departed=(Departure(B, "bert", "failed"),),
        branches=("there", "and there"),
    )
    assert install_of(memoryview(packed_install(install))) == install
    assert install_of(memoryview(packed_install(an_install()))) == an_install()
    assert gap_of(memoryview(packed_gap(a_gap("too slow", unsure=3)))) == a_gap("too slow", unsure=3)


@pytest.mark.parametrize("body", [None, 16, 40])
def test_records_are_counted_without_looking_at_them(body: int | None) -> None:
    assert stated_records(a_chunk(b"x", b"", b"yy" * 20, body=body)) == 3
    assert stated_records(messages_alike(5, records=4, body=body)) == 20


def test_what_is_not_made_of_records_counts_for_none() -> None:
    for payload in (b"", b"\xff" * 40, b"\x05\0\0\0"):
        assert stated_records(chunk_of([a_frame(seq=1, timestamp=START + 1, payload=payload)])) == 0


def test_the_count_is_never_less_than_the_records_there_are() -> None:
    for delivered in a_history(Random(3), 400):
        if isinstance(delivered, Chunk):
            there = sum(len(message.records()) for message in delivered.messages())
            assert there <= stated_records(delivered) <= delivered.nbytes // 4


def of_payloads(*payloads: bytes) -> Chunk:
    """A message of one frame for each, all frames of one size."""
    width = max(map(len, payloads)) + 7 & ~7
    return chunk_of(
        [
            a_frame(seq=1 + at, timestamp=START + 1 + at, payload=payload, size=HEADER_BYTES + width)
            for at, payload in enumerate(payloads)
        ]
    )


def test_rows_of_every_layout_are_counted() -> None:
    values, label = [b"a", b"bb", b""], encode_label(a_label())
    every = [
        laid_out(values, keys=keys, headers=headers, label=staged)
        for keys in (None, [b"k"] * 3)
        for headers in (None, [b""] * 3)
        for staged in (b"", label)
    ]
    assert [stated_records(of_payloads(payload)) for payload in every] == [3] * 8
    assert stated_records(of_payloads(*every)) == 24
    unknown = struct.pack("<I", 0x08_000001) + bytes(20)
    assert stated_records(of_payloads(unknown, every[0], unknown)) == 3


def test_entries_are_marked_by_what_is_among_their_messages() -> None:
    plain, keyed = packed([b"plain"]), laid_out([b"v"], keys=[b"k"])
    staged = laid_out([b"v"], headers=[b""], label=encode_label(a_label()))
    says = encode_statement(Holding(7, "here", True, 60))
    states = says.slice(0, len(says)).tobytes()
    assert message_flags(of_payloads(plain)) == message_flags(of_payloads(plain, keyed, plain)) == 0
    assert message_flags(of_payloads(staged)) == message_flags(of_payloads(plain, staged)) == EntryFlag.STAGED
    assert message_flags(of_payloads(states)) == message_flags(of_payloads(plain, states)) == EntryFlag.STATES
    assert message_flags(of_payloads(states, plain, staged)) == EntryFlag.STAGED | EntryFlag.STATES
    assert message_flags(chunk_of([a_frame(payload=b"")])) == 0
    assert message_flags(chunk_of(a_message(payload=staged, body=8))) == EntryFlag.STAGED
