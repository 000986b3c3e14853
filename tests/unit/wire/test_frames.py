from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.counters import Counters
from intergroup_core.ids import Timestamp
from intergroup_core.wire.frames import PADDED_FRAMES, Emission, FrameMaker
from intergroup_core.wire.header import FrameType
from intergroup_core.wire.messages import KeepAlive
from intergroup_core.wire.records import Payload, pack_records
from intergroup_core.wire.run import Run
from tests.builders import HEADER_BYTES, START, TAG, VIEW, A, B, a_message, a_repair, frames_of, messages, parsed

LARGEST_FRAME = 65_000 - HEADER_BYTES
FRAME_SIZES = (128, 256, 1_400, 9_000, LARGEST_FRAME)


def a_maker(frame_bytes: int = 128) -> FrameMaker:
    return FrameMaker(TAG, A, VIEW.id.tag, frame_bytes)


def emitted(maker: FrameMaker, payload: Payload, seq: int = 7) -> Emission:
    return maker.message(payload, seq, Timestamp(START + 5))


def on_the_wire(emission: Emission) -> list[Run]:
    counters = Counters()
    runs = parsed((bytes(emission.data), emission.segment), counters=counters)
    assert counters.dropped == {}
    return [run for run in runs if isinstance(run, Run)]


def described(runs: list[Run]) -> list[tuple[object, ...]]:
    """What the frames of some runs say, however they were cut into runs."""
    return [
        (run.source, run.seq + index, run.timestamp + index, run.view_tag, frame)
        for run in runs
        for index, frame in enumerate(frames_of(run))
    ]


@given(
    size=st.one_of(st.integers(0, 2_000), st.integers(0, 200_000)),
    frame_bytes=st.sampled_from(FRAME_SIZES),
    split=st.floats(0, 1),
)
def test_a_payload_of_any_size_in_frames_of_any_size_comes_back(size: int, frame_bytes: int, split: float) -> None:
    content = (bytes(range(251)) * (size // 251 + 1))[:size]
    head = round(size * split)
    maker = a_maker(frame_bytes)
    emission = emitted(maker, Payload(content[:head], content[head:]))
    (message,) = messages(on_the_wire(emission))
    assert message.payload.tobytes() == content
    frames = maker.frames_for(size)
    assert (message.source, message.seq, message.timestamp) == (A, 7 + frames - 1, START + 5 + frames - 1)


@pytest.mark.parametrize("frame_bytes", FRAME_SIZES)
@pytest.mark.parametrize("over", [-9, -8, -7, -1, 0, 1, 7, 8, 9])
@pytest.mark.parametrize("frames", [1, 2, PADDED_FRAMES - 1, PADDED_FRAMES])
def test_a_payload_around_the_end_of_a_frame_comes_back(frame_bytes: int, over: int, frames: int) -> None:
    content = bytes(7) + b"\xff" * (frames * (frame_bytes - HEADER_BYTES) + over - 7)
    (message,) = messages(on_the_wire(emitted(a_maker(frame_bytes), Payload(b"", content))))
    assert message.payload.tobytes() == content


@given(size=st.integers(0, 3_000), frame_bytes=st.sampled_from((128, 256)))
def test_the_senders_own_runs_are_those_its_receivers_parse(size: int, frame_bytes: int) -> None:
    emission = emitted(a_maker(frame_bytes), Payload(b"", bytes(size)))
    assert described(emission.runs) == described(on_the_wire(emission))
    assert [m.payload.tobytes() for m in messages(emission.runs)] == [bytes(size)]


@given(size=st.integers(0, 3_000), frame_bytes=st.sampled_from((128, 256)), data=st.data())
def test_first_words_are_those_of_the_frames_wherever_a_run_is_made_or_cut(
    size: int, frame_bytes: int, data: st.DataObject
) -> None:
    emission = emitted(a_maker(frame_bytes), Payload(b"", bytes(range(256)) * (size // 256 + 1)))
    for run in (*emission.runs, *on_the_wire(emission)):
        start = data.draw(st.integers(0, run.count - 1))
        part = run.slice(start, data.draw(st.integers(start + 1, run.count)))
        assert run.first_words.tolist() == run.frames[:, 0].tolist()
        assert part.first_words.tolist() == part.frames[:, 0].tolist()


@pytest.mark.parametrize("size", [0, 1, 60, 72, 73, 400, 540, 541])
def test_frames_are_laid_out_as_the_format_says(size: int) -> None:
    records = [b"r" * size]
    emission = emitted(a_maker(128), pack_records(records))
    expected = a_message(records, seq=7, timestamp=START + 5, body=80)
    if len(expected) >= PADDED_FRAMES:
        expected = a_message(records, seq=7, timestamp=START + 5, body=80, even=True)
    assert bytes(emission.data) == b"".join(expected)


def test_a_message_of_one_frame_takes_no_more_than_it_needs() -> None:
    emission = emitted(a_maker(1_400), pack_records([b"tiny"]))
    assert (len(emission.data), emission.segment) == (HEADER_BYTES + 16, HEADER_BYTES + 16)


@pytest.mark.parametrize("frame_bytes", FRAME_SIZES)
def test_the_count_of_frames_is_known_before_they_are_made(frame_bytes: int) -> None:
    maker = a_maker(frame_bytes)
    body = frame_bytes - HEADER_BYTES
    assert [maker.frames_for(size) for size in (0, 1, body, body + 1, 3 * body)] == [1, 1, 1, 2, 3]


def test_repairs_of_a_run_carry_its_frames_verbatim() -> None:
    (run,) = on_the_wire(emitted(a_maker(128), Payload(b"", bytes(900))))
    data, segment = FrameMaker(TAG, B, VIEW.id.tag, 128).repairs(run.frames)
    assert segment == 128 + HEADER_BYTES
    assert bytes(data) == b"".join(a_repair(frame, sender=B) for frame in frames_of(run))
    (repaired,) = parsed((bytes(data), segment))
    assert isinstance(repaired, Run)
    assert repaired.repaired
    assert described([repaired]) == described([run])


def test_the_largest_data_frame_can_still_be_repaired() -> None:
    (run,) = on_the_wire(emitted(a_maker(LARGEST_FRAME), Payload(b"", bytes(LARGEST_FRAME - HEADER_BYTES))))
    data, segment = a_maker(LARGEST_FRAME).repairs(run.frames)
    (repaired,) = parsed((bytes(data), segment))
    assert isinstance(repaired, Run)
    assert described([repaired]) == described([run])


def test_a_repaired_keep_alive_is_the_same_keep_alive() -> None:
    frame = a_maker().single(FrameType.KEEP_ALIVE, 9, START + 9)
    (original,), (repaired,) = parsed(frame), parsed(a_maker().repair(frame))
    assert isinstance(original, KeepAlive)
    assert isinstance(repaired, KeepAlive)
    assert (repaired.source, repaired.seq, repaired.timestamp) == (original.source, original.seq, original.timestamp)
    assert (original.repaired, repaired.repaired) == (False, True)
    assert repaired.frame == original.frame == frame
