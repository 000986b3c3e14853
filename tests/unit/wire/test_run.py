from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import HEADER_BYTES, START, A, a_run, frames_of, messages

layouts = st.text(alphabet="|.", min_size=1, max_size=20)


@given(layouts, st.data())
def test_a_slice_is_the_run_of_its_frames(ends: str, data: st.DataObject) -> None:
    run = a_run(A, 5, START + 5, ends)
    start = data.draw(st.integers(0, run.count - 1))
    stop = data.draw(st.integers(start + 1, run.count))
    since_last_end = start - (ends.rfind("|", 0, start) + 1)
    part = run.slice(start, stop)
    expected = a_run(A, 5 + start, START + 5 + start, ends[start:stop], fragment=since_last_end)
    assert (part.seq, part.timestamp, part.count) == (expected.seq, expected.timestamp, expected.count)
    assert (part.fragment, part.ends, part.end_lengths) == (expected.fragment, expected.ends, expected.end_lengths)
    assert frames_of(part) == frames_of(expected)


@given(layouts, st.data())
def test_a_slice_of_a_slice_is_a_slice(ends: str, data: st.DataObject) -> None:
    run = a_run(ends=ends)
    start = data.draw(st.integers(0, run.count - 1))
    middle = data.draw(st.integers(start, run.count - 1))
    twice, once = run.slice(start, run.count).slice(middle - start, run.count - start), run.slice(middle, run.count)
    assert (twice.seq, twice.fragment, twice.ends, twice.count) == (once.seq, once.fragment, once.ends, once.count)


def test_a_run_that_began_in_mid_message_counts_on_from_there() -> None:
    run = a_run(ends="..|..", fragment=7)
    assert [run.slice(at, 5).fragment for at in range(5)] == [7, 8, 9, 0, 1]


def test_a_slice_keeps_that_it_was_repaired() -> None:
    assert a_run(ends="|||", repaired=True).slice(1, 2).repaired
    assert not a_run(ends="|||").slice(1, 2).repaired


def test_a_run_knows_its_last_frame_and_its_size() -> None:
    run = a_run(A, 5, START + 5, "|..")
    assert (run.last_seq, run.last_timestamp) == (7, START + 7)
    assert (run.frame_bytes, run.nbytes) == (HEADER_BYTES + 8, 3 * (HEADER_BYTES + 8))
    assert "seq 5..7" in repr(run)


@given(layouts)
def test_a_run_cut_anywhere_completes_the_same_messages(ends: str) -> None:
    run = a_run(ends=ends)
    whole = [(m.seq, m.timestamp, m.payload.tobytes()) for m in messages([run])]
    for at in range(1, run.count):
        cut = messages([run.slice(0, at), run.slice(at, run.count)])
        assert [(m.seq, m.timestamp, m.payload.tobytes()) for m in cut] == whole
