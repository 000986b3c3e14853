from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.multicast.buffer import MessageBuffer
from tests.builders import HEADER_BYTES, START, A, B, a_run, frames_of

FRAME = HEADER_BYTES + 8

FORTY = a_run(A, 1, START + 1, "|" * 40)


def a_buffer(limit: int = 100 * FRAME) -> MessageBuffer:
    return MessageBuffer(limit)


def held(buffer: MessageBuffer, first: int, last: int) -> list[tuple[int, int]]:
    return [(run.seq, run.last_seq) for run in buffer.held(A, first, last)]


def test_what_was_added_is_found_by_range_in_order() -> None:
    buffer = a_buffer()
    buffer.add(a_run(A, 1, START + 1, "|||"))
    buffer.add(a_run(A, 8, START + 8, "||"))
    buffer.add(a_run(A, 4, START + 4, "|"))
    assert held(buffer, 1, 100) == [(1, 3), (4, 4), (8, 9)]
    assert held(buffer, 2, 8) == [(2, 3), (4, 4), (8, 8)]
    assert held(buffer, 5, 7) == []
    assert held(buffer, 9, 9) == [(9, 9)]
    assert buffer.held(B, 1, 100) == []


def test_a_found_frame_is_the_stored_one_verbatim() -> None:
    buffer = a_buffer()
    run = a_run(A, 1, START + 1, "..|")
    buffer.add(run)
    (found,) = buffer.held(A, 2, 2)
    assert frames_of(found) == frames_of(run)[1:2]


def test_stable_runs_leave_and_others_stay() -> None:
    buffer = a_buffer()
    buffer.add(a_run(A, 1, START + 1, "|||"))
    buffer.add(a_run(A, 4, START + 4, "|"))
    buffer.add(a_run(B, 1, START + 2, "|"))
    assert not buffer.drop_stable(START + 1)
    assert buffer.bytes == 5 * FRAME
    assert buffer.drop_stable(START + 3)
    assert held(buffer, 1, 9) == [(4, 4)]
    assert buffer.held(B, 1, 9) == []
    assert buffer.bytes == FRAME
    assert buffer.most_bytes == 5 * FRAME


def test_nothing_is_dropped_for_being_beyond_the_bound() -> None:
    buffer = a_buffer(limit=3 * FRAME)
    for seq in range(1, 11):
        buffer.add(a_run(A, seq, START + seq))
    assert buffer.free == 0
    assert buffer.bytes == 10 * FRAME
    assert len(held(buffer, 1, 10)) == 10


def test_room_comes_back_with_stability() -> None:
    buffer = a_buffer(limit=3 * FRAME)
    buffer.add(a_run(A, 1, START + 1, "||"))
    assert buffer.free == FRAME
    buffer.drop_stable(START + 2)
    assert buffer.free == 3 * FRAME


def test_the_newest_run_of_a_source_has_its_highest_seq() -> None:
    buffer = a_buffer()
    assert buffer.newest(A) is None
    buffer.add(a_run(A, 8, START + 8, "||"))
    buffer.add(a_run(A, 2, START + 2, "|"))
    newest = buffer.newest(A)
    assert newest is not None
    assert newest.last_seq == 9
    buffer.drop_stable(START + 9)
    assert buffer.newest(A) is None


@given(
    st.permutations(range(10)).map(lambda order: order[:7]),
    st.integers(1, 40),
    st.integers(0, 12),
)
def test_a_range_is_answered_with_exactly_what_is_held_of_it(order: list[int], first: int, length: int) -> None:
    buffer = a_buffer()
    for piece in order:
        buffer.add(FORTY.slice(4 * piece, 4 * piece + 4))
    last = first + length
    found = [seq for run in buffer.held(A, first, last) for seq in range(run.seq, run.last_seq + 1)]
    here = sorted(4 * piece + 1 + index for piece in order for index in range(4))
    assert found == [seq for seq in here if first <= seq <= last]


def test_what_follows_a_cut_is_forgotten_and_what_precedes_it_stays() -> None:
    buffer = a_buffer()
    buffer.add(a_run(A, 1, START + 1, "||||"))
    buffer.add(a_run(A, 5, START + 5, "||"))
    buffer.add(a_run(B, 9, START + 9, "|"))
    buffer.drop_after(A, 3)
    assert held(buffer, 1, 99) == [(1, 3)]
    assert buffer.bytes == 4 * FRAME
    assert buffer.held(B, 9, 9)


def test_a_cut_before_everything_leaves_nothing() -> None:
    buffer = a_buffer()
    buffer.add(a_run(A, 4, START + 4, "||"))
    buffer.drop_after(A, 0)
    buffer.drop_after(B, 0)
    assert (held(buffer, 1, 99), buffer.bytes) == ([], 0)
