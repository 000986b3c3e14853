"""What a member's log does not hold yet."""

from __future__ import annotations

import pytest

from intergroup_core.delivery.undurable import NO_BOUND, Undurable
from intergroup_core.wire.chunk import Chunk
from tests.builders import START, A, B, a_run


def a_chunk(source: int, timestamp: int) -> Chunk:
    return Chunk((), a_run(A if source == 1 else B, 1, timestamp, "|"))


def test_nothing_is_held_back_where_all_is_durable() -> None:
    assert Undurable().least() == NO_BOUND


def test_what_is_before_the_least_of_them_may_be_acknowledged() -> None:
    """In rso deliveries are not in the order of their timestamps."""
    undurable = Undurable()
    for source, timestamp in ((1, START + 9), (2, START + 4), (1, START + 12)):
        undurable.delivered(a_chunk(source, timestamp))
    assert undurable.least() == START + 3
    undurable.appended(1)
    assert undurable.least() == START + 3
    undurable.appended(1)
    assert undurable.least() == START + 11
    undurable.appended(1)
    assert (undurable.least(), len(undurable)) == (NO_BOUND, 0)


def test_a_message_that_began_earlier_counts_from_its_first_frame() -> None:
    undurable = Undurable()
    undurable.delivered(Chunk((a_run(A, 1, START + 1, ".."),), a_run(A, 3, START + 3, ".|")))
    assert undurable.least() == START


def test_a_new_incarnation_waits_for_none_of_it_and_counts_go_on() -> None:
    undurable = Undurable()
    undurable.delivered(a_chunk(1, START + 1))
    undurable.forget()
    undurable.delivered(a_chunk(1, START + 20))
    assert undurable.least() == START + 19
    undurable.appended(1)
    assert undurable.least() == START + 19
    undurable.appended(1)
    assert undurable.least() == NO_BOUND


def test_more_than_was_delivered_cannot_be_durable() -> None:
    with pytest.raises(IndexError):
        Undurable().appended(1)
