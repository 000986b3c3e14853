from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from intergroup_core.multicast.reception import Reception
from intergroup_core.wire.run import Run
from tests.builders import START, A, a_run, frames_of

FORTY = a_run(A, 1, START + 1, "|" * 40)


def a_reception(activation: int = 1) -> Reception:
    return Reception(activation, START)


def frames(first: int, last: int) -> Run:
    return a_run(A, first, START + first, "|" * (last - first + 1))


def arrive(reception: Reception, run: Run) -> list[int]:
    """The seqs that become contiguous because of a run, in order."""
    return [
        seq
        for part in reception.accept(run)
        for ready in reception.store(part)
        for seq in range(ready.seq, ready.last_seq + 1)
    ]


def test_the_activation_point_is_the_first_frame_expected() -> None:
    reception = a_reception(activation=5)
    assert (reception.contiguous, reception.highest, reception.promise) == (4, 4, START)
    assert arrive(reception, frames(5, 6)) == [5, 6]


def test_frames_before_the_activation_point_are_not_fresh() -> None:
    reception = a_reception(activation=5)
    assert arrive(reception, frames(1, 4)) == []
    assert arrive(reception, frames(3, 7)) == [5, 6, 7]


def test_frames_behind_a_gap_wait_for_it() -> None:
    reception = a_reception()
    assert arrive(reception, frames(1, 2)) == [1, 2]
    assert arrive(reception, frames(5, 6)) == []
    assert arrive(reception, frames(9, 9)) == []
    assert (reception.contiguous, reception.highest) == (2, 9)
    assert reception.gaps(1, 9) == [(3, 4), (7, 8)]
    assert arrive(reception, frames(3, 4)) == [3, 4, 5, 6]
    assert arrive(reception, frames(7, 8)) == [7, 8, 9]
    assert reception.gaps(1, 9) == []


def test_of_a_run_that_overlaps_only_what_is_new_is_taken() -> None:
    reception = a_reception()
    arrive(reception, frames(4, 5))
    arrive(reception, frames(8, 8))
    fresh = reception.accept(frames(1, 10))
    assert [(part.seq, part.last_seq) for part in fresh] == [(1, 3), (6, 7), (9, 10)]


def test_a_duplicate_has_nothing_fresh() -> None:
    reception = a_reception()
    arrive(reception, frames(1, 3))
    arrive(reception, frames(6, 8))
    for duplicate in (frames(1, 3), frames(2, 2), frames(6, 8), frames(7, 7)):
        assert reception.accept(duplicate) == []


def test_gaps_are_told_within_bounds() -> None:
    reception = a_reception()
    arrive(reception, frames(5, 6))
    assert reception.gaps(2, 3) == [(2, 3)]
    assert reception.gaps(2, 9) == [(2, 4), (7, 9)]
    assert reception.gaps(5, 6) == []
    assert reception.gaps(6, 8) == [(7, 8)]


def test_the_promise_is_the_last_contiguous_frames_timestamp_fragments_included() -> None:
    reception = a_reception()
    arrive(reception, a_run(A, 1, START + 10, "|.."))
    assert reception.promise == START + 12
    arrive(reception, a_run(A, 6, START + 50, "|"))
    assert reception.promise == START + 12, "a frame behind a gap promises nothing"
    arrive(reception, a_run(A, 4, START + 30, ".|"))
    assert reception.promise == START + 50


def test_a_keep_alive_for_the_last_contiguous_frame_promises_at_once() -> None:
    reception = a_reception()
    assert reception.keepalive(0, START + 5)
    assert reception.promise == START + 5
    arrive(reception, frames(1, 2))
    assert reception.keepalive(2, START + 50)
    assert reception.keepalive(2, START + 40)
    assert reception.promise == START + 50


def test_a_keep_alive_for_a_missing_frame_promises_when_the_gap_is_filled() -> None:
    reception = a_reception()
    assert not reception.keepalive(3, START + 50)
    assert (reception.promise, reception.highest) == (START, 3)
    arrive(reception, frames(1, 2))
    assert reception.settle_promises() is None
    assert reception.promise == START + 2
    arrive(reception, frames(3, 3))
    assert reception.settle_promises() == START + 50
    assert reception.promise == START + 50
    assert reception.settle_promises() is None


def test_an_old_keep_alive_promises_nothing() -> None:
    reception = a_reception()
    arrive(reception, frames(1, 5))
    assert not reception.keepalive(3, START + 50)
    assert reception.promise == START + 5


def test_a_keep_alive_overtaken_by_data_is_forgotten() -> None:
    reception = a_reception()
    reception.keepalive(2, START + 3)
    arrive(reception, a_run(A, 1, START + 10, "||||"))
    assert reception.settle_promises() is None
    assert reception.promise == START + 13


def test_of_many_keep_alives_for_missing_frames_the_newest_are_remembered() -> None:
    reception = a_reception()
    for seq in range(1, 100):
        reception.keepalive(seq, START + 1_000 + seq)
    arrive(reception, frames(1, 99))
    assert reception.settle_promises() == START + 1_099


def test_what_is_known_to_exist_never_shrinks() -> None:
    reception = a_reception()
    reception.exists(9)
    reception.exists(4)
    assert reception.highest == 9
    assert reception.gaps(1, 9) == [(1, 9)]


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 8)), max_size=30), st.integers(1, 10))
def test_any_pieces_in_any_order_become_contiguous_once_each(pieces: list[tuple[int, int]], activation: int) -> None:
    reception = a_reception(activation)
    held: set[int] = set()
    out: list[int] = []
    contents: list[bytes] = []
    for first, count in pieces:
        piece = FORTY.slice(first - 1, first - 1 + count)
        fresh = reception.accept(piece)
        new = {seq for part in fresh for seq in range(part.seq, part.last_seq + 1)}
        expected = {seq for seq in range(first, first + count) if seq >= activation and seq not in held}
        assert new == expected
        for part in fresh:
            for ready in reception.store(part):
                out += range(ready.seq, ready.last_seq + 1)
                contents += frames_of(ready)
        held |= new
        missing = [seq for seq in range(activation, 31) if seq not in held]
        gaps = [seq for start, stop in reception.gaps(activation, 30) for seq in range(start, stop + 1)]
        assert gaps == missing
    contiguous = activation - 1
    while contiguous + 1 in held:
        contiguous += 1
    assert out == list(range(activation, contiguous + 1))
    assert contents == frames_of(FORTY)[activation - 1 : contiguous]
    assert reception.contiguous == contiguous
    assert reception.promise == (START + contiguous if out else START)


def test_a_source_that_skips_is_contiguous_from_there() -> None:
    reception = a_reception()
    arrive(reception, frames(1, 2))
    arrive(reception, frames(5, 6))
    arrive(reception, frames(12, 13))
    reception.skip_to(10, START + 50)
    assert (reception.contiguous, reception.promise) == (9, START + 50)
    assert reception.gaps(1, 13) == [(10, 11)]
    assert arrive(reception, frames(10, 11)) == [10, 11, 12, 13]


def test_skipping_back_changes_nothing_but_the_promise() -> None:
    reception = a_reception()
    arrive(reception, frames(1, 5))
    reception.skip_to(3, START + 99)
    assert (reception.contiguous, reception.promise) == (5, START + 99)
    reception.skip_to(3, START)
    assert reception.promise == START + 99
