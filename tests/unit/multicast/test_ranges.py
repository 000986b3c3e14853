from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.ids import MemberId
from intergroup_core.multicast.ranges import Disjoint, Span, coalesced, without

ANN, BOB = MemberId(1), MemberId(2)


@dataclass(eq=False)
class Piece:
    first: int
    last: int
    name: str = ""

    def part(self, first: int, last: int) -> Piece:
        return Piece(first, last, self.name)

    @property
    def bounds(self) -> tuple[int, int]:
        return self.first, self.last


def a_table(*bounds: tuple[int, int]) -> Disjoint[Piece]:
    table: Disjoint[Piece] = Disjoint()
    for first, last in bounds:
        table.add(Piece(first, last, f"{first}-{last}"))
    return table


def bounds(pieces: Disjoint[Piece] | list[Piece]) -> list[tuple[int, int]]:
    return [piece.bounds for piece in pieces]


def test_a_span_counts_both_its_ends() -> None:
    assert Span(ANN, 5, 9).count == 5


def test_stretches_are_kept_ascending_whatever_order_they_come_in() -> None:
    assert bounds(a_table((20, 29), (0, 9), (10, 19))) == [(0, 9), (10, 19), (20, 29)]


def test_overlapping_finds_stretches_touched_at_an_end() -> None:
    table = a_table((0, 4), (10, 14), (20, 24))
    assert bounds(table.overlapping(4, 10)) == [(0, 4), (10, 14)]
    assert bounds(table.overlapping(5, 9)) == []
    assert bounds(table.overlapping(12, 12)) == [(10, 14)]


def test_uncovered_is_what_lies_between() -> None:
    assert a_table((5, 9), (20, 24)).uncovered(0, 30) == [(0, 4), (10, 19), (25, 30)]
    assert a_table((5, 9)).uncovered(6, 8) == []
    assert a_table().uncovered(6, 8) == [(6, 8)]


def test_a_stretch_taken_whole_is_handed_back_itself() -> None:
    table = a_table((5, 9))
    [piece] = table
    taken, tails = table.take(0, 20)
    assert taken == [piece]
    assert tails == []
    assert len(table) == 0


def test_a_stretch_taken_in_part_stays_with_the_rest() -> None:
    table = a_table((5, 9))
    [piece] = table
    taken, tails = table.take(0, 6)
    assert bounds(taken) == [(5, 6)]
    assert list(table) == [piece]
    assert piece.bounds == (7, 9)
    assert tails == []


def test_a_stretch_taken_in_the_middle_leaves_a_tail_of_its_own() -> None:
    table = a_table((5, 9))
    taken, tails = table.take(7, 7)
    assert bounds(taken) == [(7, 7)]
    assert bounds(tails) == [(8, 9)]
    assert bounds(table) == [(5, 6), (8, 9)]
    assert tails[0].name == "5-9"


def test_only_wanted_stretches_are_retained() -> None:
    table = a_table((0, 4), (10, 14), (20, 24))
    table.retain(lambda piece: piece.first != 10)
    assert bounds(table) == [(0, 4), (20, 24)]
    assert table.uncovered(0, 24) == [(5, 19)]


def test_adjacent_spans_of_one_source_become_one() -> None:
    spans = [Span(ANN, 8, 9), Span(BOB, 3, 3), Span(ANN, 5, 7), Span(ANN, 11, 11)]
    assert coalesced(spans) == [Span(ANN, 5, 9), Span(ANN, 11, 11), Span(BOB, 3, 3)]


def test_cuts_may_overlap_each_other_and_the_ends() -> None:
    assert without(10, 20, [(18, 25), (12, 15), (13, 14), (0, 10), (40, 50)]) == [(11, 11), (16, 17)]
    assert without(10, 20, [(0, 30)]) == []


seqs = st.integers(0, 40)
ranges = st.tuples(seqs, seqs).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(st.tuples(st.booleans(), ranges), max_size=30), ranges)
def test_a_table_holds_exactly_what_was_added_and_not_taken(
    steps: list[tuple[bool, tuple[int, int]]], asked: tuple[int, int]
) -> None:
    table: Disjoint[Piece] = Disjoint()
    held: set[int] = set()
    for adding, (first, last) in steps:
        touched = set(range(first, last + 1))
        if adding:
            for start, end in table.uncovered(first, last):
                table.add(Piece(start, end))
            held |= touched
        else:
            taken, _ = table.take(first, last)
            assert {seq for piece in taken for seq in range(piece.first, piece.last + 1)} == held & touched
            held -= touched
        assert bounds(table) == sorted(bounds(table))
        assert [seq for piece in table for seq in range(piece.first, piece.last + 1)] == sorted(held)
    wanted = set(range(asked[0], asked[1] + 1))
    uncovered = [seq for first, last in table.uncovered(*asked) for seq in range(first, last + 1)]
    assert uncovered == sorted(wanted - held)


@given(ranges, st.lists(ranges, max_size=6))
def test_without_leaves_what_no_cut_touches(whole: tuple[int, int], cuts: list[tuple[int, int]]) -> None:
    left = [seq for first, last in without(*whole, cuts) for seq in range(first, last + 1)]
    assert left == [seq for seq in range(whole[0], whole[1] + 1) if not any(a <= seq <= b for a, b in cuts)]
