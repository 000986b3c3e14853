"""What entries carry."""

from __future__ import annotations

from random import Random

import pytest

from intergroup_core.effects import Departure
from intergroup_core.log.body import gap_of, install_of, packed_gap, packed_install, stated_records
from intergroup_core.wire.chunk import Chunk
from tests.builders import START, A, B, C, a_frame
from tests.log_builders import a_chunk, a_gap, a_history, an_install, chunk_of, messages_alike


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
