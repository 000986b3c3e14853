"""Streams whose member once skipped something, or was on the other side of a partition."""

from __future__ import annotations

import pytest

from intergroup_core.effects import Gap
from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import MemberId
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.reader import LogReader
from intergroup_core.log.stream import StreamReader
from tests.builders import START, A, B
from tests.log_builders import a_chunk, a_gap, an_install
from tests.unit.log.stream_parts import a_part, content, everything, fetched
from tests.unit.log.test_stream import first_life, keeper_cut, meanwhile, second_life
from tests.unit.log.test_transfer import a_reader


def test_what_begins_with_a_gap_is_no_continuation() -> None:
    history: list[Delivered] = [a_gap(), *second_life()]
    stream = StreamReader([a_part(first_life(), 1), a_part(history, 2)])
    assert stream.holes() == [
        (
            LogReader(a_part(first_life(), 1)).head(),
            OrderCut(START + 41, MemberId(B - 1), an_install(A, start=START + 40).view.id),
        )
    ]


def test_a_cut_in_what_a_gap_skipped_is_not_held_though_its_view_is() -> None:
    new = an_install(B, start=START + 100)
    skipped = [a_chunk(b"%d" % number, source=B, seq=number, timestamp=START + 101 + number) for number in (1, 2, 3)]
    after = a_chunk(b"after", source=B, seq=4, timestamp=START + 110)
    before = [an_install(A), a_chunk(b"before", seq=1, timestamp=START + 5)]
    whole = StreamReader([a_part([*before, new, *skipped, after], 1)])
    gapped = StreamReader([a_part([*before, a_gap(), new, after], 2)])
    own = [OrderCut(START + 5, A, before[0].view.id), OrderCut(START + 100, B, new.view.id)]
    stop = OrderCut(START + 110, B, new.view.id)
    for cut in own:  # where a reader of this very stream may have been
        assert content(gapped, cut, stop)[-1][2] == content(whole, cut, stop)[-1][2]
    for chunk in skipped:
        start = OrderCut(chunk.last_timestamp, B, new.view.id)
        assert len(content(whole, start, stop)) == 4 - chunk.last_seq
        with pytest.raises(RangeUnavailable):
            content(gapped, start, stop)
    both = StreamReader([a_part([*before, a_gap(), new, after], 2), fetched(whole, start, stop, 3)])
    assert content(both, start, stop) == content(whole, start, stop)


def test_what_was_fetched_of_the_other_side_of_a_partition_goes_on_where_both_sides_met() -> None:
    before = [an_install(A, B), a_chunk(b"before", timestamp=START + 5)]
    met = an_install(A, B, start=START + 100, seq=9)
    after = [a_chunk(b"%d" % number, seq=9 + number, timestamp=START + 101 + number) for number in range(4)]
    island = [an_install(A, start=START + 10), a_chunk(b"island", seq=2, timestamp=START + 12)]
    mainland = [an_install(B, start=START + 14), a_chunk(b"mainland", source=B, seq=2, timestamp=START + 15)]
    other = StreamReader([a_part([*before, *island, met, *after], 1)])
    start, stop = OrderCut(START + 10, A, island[0].view.id), OrderCut(START + 104, A, met.view.id)
    branch = fetched(other, start, OrderCut(START + 102, A, met.view.id), 3)
    for history in ([*before, *mainland, met, *after], [*mainland, met, *after]):
        stream = StreamReader([a_part(history, 2), branch])
        assert content(stream, start, stop) == content(other, start, stop)
        assert stream.steps(start)[-1][1] == stop


def test_a_gap_that_ends_a_part_is_gone_once_what_it_tells_of_is_fetched() -> None:
    keeper = a_reader([*first_life(), *meanwhile(), *second_life()])
    parts = [a_part([*first_life(), a_gap()], 1), a_part(second_life(), 2)]
    (hole,) = StreamReader(parts).holes()
    stream = StreamReader([*parts, fetched(keeper, *hole, 3)])
    assert not any(isinstance(found, Gap) for found in everything(stream))
    assert everything(stream) == content(keeper, keeper_cut(keeper, 0), keeper.head())
