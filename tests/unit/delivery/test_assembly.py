from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.delivery.assembly import Assembly
from tests.builders import START, A, a_run


def test_a_message_is_complete_with_its_last_frame_only() -> None:
    assembly = Assembly()
    assert assembly.add(a_run(A, 1, START + 1, "..")) is None
    assert assembly.start_timestamp == START + 1
    assert assembly.add(a_run(A, 3, START + 3, ".")) is None
    chunk = assembly.add(a_run(A, 4, START + 4, "|"))
    assert chunk is not None
    assert [(m.seq, len(m.payload)) for m in chunk.messages()] == [(4, 4 * 8)]
    assert assembly.start_timestamp is None


def test_what_begins_the_next_message_is_kept_back() -> None:
    assembly = Assembly()
    chunk = assembly.add(a_run(A, 1, START + 1, "|.|.."))
    assert chunk is not None
    assert [m.seq for m in chunk.messages()] == [1, 3]
    assert assembly.start_timestamp == START + 4
    chunk = assembly.add(a_run(A, 6, START + 6, "||"))
    assert chunk is not None
    assert [(m.seq, len(m.payload)) for m in chunk.messages()] == [(6, 3 * 8), (7, 8)]


def test_a_cleared_assembly_has_begun_nothing() -> None:
    assembly = Assembly()
    assembly.add(a_run(ends=".."))
    assembly.clear()
    assert assembly.start_timestamp is None
    chunk = assembly.add(a_run(A, 9, START + 9, "|"))
    assert chunk is not None
    assert chunk.first_seq == 9


@given(st.text(alphabet="|.", min_size=1, max_size=25), st.data())
def test_however_the_frames_come_the_same_messages_are_complete(ends: str, data: st.DataObject) -> None:
    run = a_run(ends=ends)
    assembly, found, at = Assembly(), [], 0
    while at < run.count:
        stop = data.draw(st.integers(at + 1, run.count))
        chunk = assembly.add(run.slice(at, stop))
        found += [(m.seq, len(m.payload) // 8) for m in chunk.messages()] if chunk is not None else []
        at = stop
    lengths = [len(part) + 1 for part in ends.split("|")[:-1]]
    assert found == [(sum(lengths[: index + 1]), length) for index, length in enumerate(lengths)]
    assert (assembly.start_timestamp is None) == ends.endswith("|")
