from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from intergroup_core.counters import Counters
from intergroup_core.ids import MAX_TIMESTAMP
from intergroup_core.wire.header import MAX_FRAME_BYTES, MAX_SEQ
from intergroup_core.wire.messages import KeepAlive, Report
from intergroup_core.wire.parse import Arrival, Parsed, parse
from intergroup_core.wire.run import Run
from tests.builders import (
    CHANGE,
    DATA,
    KEEP_ALIVE,
    LAST,
    REPAIR,
    REPORT,
    REQUEST,
    START,
    TAG,
    A,
    B,
    C,
    a_block,
    a_control_frame,
    a_frame,
    a_keepalive,
    a_message,
    a_repair,
    a_report,
    frames_of,
    messages,
    parsed,
    sealed,
)
from tests.membership_builders import a_change_frame, a_leave


def single_frames(count: int, **fields: Any) -> list[bytes]:
    """Messages of one frame each, one after the other."""
    seq, timestamp = fields.pop("seq", 1), fields.pop("timestamp", START + 1)
    return [
        a_frame(seq=seq + i, timestamp=timestamp + i, payload=f"message{i:05}".encode(), size=64, **fields)
        for i in range(count)
    ]


def outlines(found: list[Parsed]) -> list[tuple[int, int, int]]:
    """(source, first seq, count) of the runs."""
    return [(run.source, run.seq, run.count) for run in found if isinstance(run, Run)]


def causes(*received: bytes | tuple[bytes, int]) -> dict[str, int]:
    counters = Counters()
    assert parsed(*received, counters=counters) == []
    return counters.dropped


def test_a_buffer_of_consecutive_frames_is_one_run() -> None:
    (run,) = parsed(a_block(single_frames(50)))
    assert isinstance(run, Run)
    assert (run.source, run.seq, run.last_seq, run.timestamp, run.last_timestamp) == (A, 1, 50, START + 1, START + 50)
    assert (run.fragment, run.ends, run.end_lengths) == (0, list(range(50)), [12] * 50)
    assert [m.payload.tobytes() for m in messages([run])] == [f"message{i:05}".encode() for i in range(50)]


def test_spans_that_lie_end_to_end_are_one_run() -> None:
    frames = single_frames(9)
    assert outlines(parsed(a_block(frames[:4]), a_block(frames[4:6]), *frames[6:])) == [(A, 1, 9)]


def test_a_short_last_frame_is_a_run_of_its_own_and_the_message_is_whole() -> None:
    frames = a_message([bytes(range(250))], body=80)
    runs = parsed(a_block(frames))
    assert outlines(runs) == [(A, 1, 3), (A, 4, 1)]
    (message,) = messages(run for run in runs if isinstance(run, Run))
    assert message.records() == [bytes(range(250))]


def test_what_follows_a_short_last_frame_is_read_from_its_own_place() -> None:
    first, second = a_message([b"x" * 250], body=80), a_message([b"y" * 250], body=80, seq=5, timestamp=START + 5)
    found = parsed(a_block(first), a_block(second), a_keepalive(seq=8, timestamp=START + 9))
    assert outlines(found) == [(A, 1, 3), (A, 4, 1), (A, 5, 3), (A, 8, 1)]
    assert isinstance(found[-1], KeepAlive)


def test_a_block_of_several_senders_is_a_run_for_each_stretch() -> None:
    ours, theirs = single_frames(6), single_frames(4, sender=C)
    block = a_block([*ours[:3], *theirs[:2], *ours[3:], *theirs[2:]])
    assert outlines(parsed(block)) == [(A, 1, 3), (C, 1, 2), (A, 4, 3), (C, 3, 2)]


@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({"sender": B}, True),
        ({"seq": 9}, True),
        ({"seq": 4}, True),
        ({"timestamp": START + 9}, True),
        ({"timestamp": START + 4}, True),
        ({"view_tag": 77}, True),
        ({"fragment": 1}, True),
        ({}, False),
    ],
)
def test_a_run_breaks_where_sender_seq_timestamp_view_or_fragment_does(changed: dict[str, int], broken: bool) -> None:
    before = single_frames(4)
    first_after = a_frame(**{"seq": 5, "timestamp": START + 5, "payload": b"message00004", "size": 64} | changed)
    found = parsed(a_block([*before, first_after, *single_frames(2, seq=6, timestamp=START + 6)]))
    assert outlines(found)[0] == (A, 1, 4 if broken else 7)
    assert sum(count for _, _, count in outlines(found)) == 7


def test_a_run_that_starts_in_mid_message_knows_its_fragment() -> None:
    frames = a_message([bytes(700)], body=80, even=True)
    (run,) = parsed(a_block(frames[3:]))
    assert isinstance(run, Run)
    assert (run.seq, run.fragment, run.ends) == (4, 3, [len(frames) - 4])


def test_fragments_must_be_consecutive_inside_a_message() -> None:
    frames = [
        a_frame(seq=1 + i, timestamp=START + 1 + i, payload=bytes(16), flags=0, fragment=fragment)
        for i, fragment in enumerate([0, 1, 3, 4])
    ]
    assert outlines(parsed(a_block(frames))) == [(A, 1, 2), (A, 3, 2)]


def test_a_bad_frame_in_a_block_costs_only_itself() -> None:
    frames = single_frames(10)
    frames[4] = frames[4][:-1] + b"\x01"
    counters = Counters()
    assert outlines(parsed(a_block(frames), counters=counters)) == [(A, 1, 4), (A, 6, 5)]
    assert counters.dropped == {"checksum": 1}


def test_control_frames_between_data_are_read_in_their_place() -> None:
    report = a_report(B, contiguous={A: 3})
    frame = a_control_frame(report)
    data = [a_frame(seq=1 + i, timestamp=START + 1 + i, payload=b"x", size=len(frame)) for i in range(4)]
    found = parsed(a_block([*data[:2], frame, *data[2:]]))
    assert outlines(found) == [(A, 1, 2), (A, 3, 2)]
    assert found[1] == report


def test_a_block_of_repairs_is_the_runs_inside() -> None:
    repairs = [a_repair(frame) for frame in single_frames(6)]
    found = parsed(a_block(repairs))
    assert outlines(found) == [(A, 1, 6)]
    assert all(isinstance(run, Run) and run.repaired for run in found)


def test_a_bad_frame_among_repairs_costs_only_itself() -> None:
    frames = single_frames(6)
    frames[2] = frames[2][:-1] + b"\x01"
    counters = Counters()
    assert outlines(parsed(a_block([a_repair(frame) for frame in frames]), counters=counters)) == [(A, 1, 2), (A, 4, 3)]
    assert counters.dropped == {"checksum": 1}


def test_frames_stay_where_they_were_received() -> None:
    block, segment = a_block(single_frames(5))
    memory = np.frombuffer(bytearray(block), dtype=np.uint8)
    (run,) = parse(Arrival(memory, [(0, len(block), segment)]), TAG, Counters())
    assert isinstance(run, Run)
    assert np.shares_memory(run.frames, memory)
    assert b"".join(frames_of(run)) == block


@pytest.mark.parametrize(
    ("frame", "cause"),
    [
        (a_frame(magic_version=0xB2), "version"),
        (a_frame(magic_version=0xB0), "version"),
        (a_frame(magic_version=0xC1), "magic"),
        (a_frame(group=TAG + 1), "group"),
        (a_frame(payload=b"payload", length=9), "length"),
        (a_frame(KEEP_ALIVE, payload=b"p", length=200), "length"),
        (a_frame(REPORT, payload=b"\x94" + bytes(16), length=3), "length"),
        (a_frame()[:40], "length"),
        (a_frame()[:8], "length"),
        (a_frame(payload=b"payload")[:-3], "length"),
        (bytes(MAX_FRAME_BYTES + 8), "length"),
        (a_frame()[:-8] + bytes(8), "checksum"),
        (a_frame(flags=LAST | 2), "field"),
        (a_frame(flags=0x80), "field"),
        (a_frame(seq=0), "field"),
        (a_frame(seq=MAX_SEQ + 1), "field"),
        (a_frame(timestamp=0), "field"),
        (a_frame(timestamp=MAX_TIMESTAMP + 1), "field"),
        (a_frame(sender=0), "field"),
        (a_frame(flags=0, payload=b"7 bytes"), "field"),
        (a_keepalive(seq=MAX_SEQ + 1), "field"),
        (a_keepalive(timestamp=1 << 63), "field"),
        (a_frame(0), "type"),
        (a_frame(29), "type"),
        (a_frame(255), "type"),
        (a_frame(REQUEST, payload=b"\xc1"), "body"),
        (a_frame(REPORT, payload=b""), "body"),
        (a_repair(a_repair(a_frame())), "nested"),
        (a_repair(a_control_frame(a_report())), "nested"),
        (a_repair(a_frame(DATA)[:40]), "length"),
        (a_repair(b""), "length"),
        (a_repair(a_frame(group=1)), "group"),
        (a_repair(a_frame(seq=0)), "field"),
    ],
)
def test_a_bad_frame_is_dropped_under_its_cause_alone_and_among_its_like(frame: bytes, cause: str) -> None:
    assert causes(frame) == {cause: 1}
    assert causes((frame * 3, len(frame))) == {cause: 3}


def test_a_datagram_of_a_size_nobody_sends_costs_only_itself() -> None:
    counters = Counters()
    frames = single_frames(2)
    assert outlines(parsed(frames[0], b"\xb1" * 61, frames[1], counters=counters)) == [(A, 1, 1), (A, 2, 1)]
    assert counters.dropped == {"length": 1}


@pytest.mark.parametrize("kind", [DATA, KEEP_ALIVE])
def test_a_frame_too_large_for_a_repair_to_carry_is_not_taken(kind: int) -> None:
    largest = MAX_FRAME_BYTES - 48
    stored = [a_frame(kind, seq=1 + i, timestamp=START + 1 + i, payload=bytes(largest - 48)) for i in range(3)]
    assert len(parsed(*stored)) == (1 if kind == DATA else 3)
    beyond = [a_frame(kind, seq=1 + i, timestamp=START + 1 + i, payload=bytes(largest - 40)) for i in range(3)]
    assert causes(*beyond) == {"length": 3}
    assert causes(a_block(beyond)) == {"length": 3}


def test_an_odd_end_of_a_burst_costs_only_itself() -> None:
    counters = Counters()
    frames = single_frames(5)
    found = parsed(a_block(frames[:2]), a_block([*frames[2:], b"\xb1" * 13]), counters=counters)
    assert outlines(found) == [(A, 1, 5)]
    assert counters.dropped == {"length": 1}


def test_an_empty_arrival_has_nothing_in_it() -> None:
    assert causes() == {}


@pytest.mark.parametrize("received", [[b""], [b"", b""], [b"", b"", a_frame()[:40]], [a_frame()[:40], b"", b""]])
def test_an_empty_datagram_is_dropped_like_any_that_is_too_short(received: list[bytes]) -> None:
    assert causes(*received) == {"length": len(received)}


def test_the_highest_seq_and_timestamp_are_good() -> None:
    (run,) = parsed(a_frame(seq=MAX_SEQ, timestamp=MAX_TIMESTAMP))
    assert isinstance(run, Run)
    assert (run.seq, run.timestamp) == (MAX_SEQ, MAX_TIMESTAMP)


def test_a_repair_says_whose_frame_it_carries_not_who_carries_it() -> None:
    (run,) = parsed(a_repair(a_frame(sender=C, payload=b"c"), sender=B))
    assert isinstance(run, Run)
    assert (run.source, run.repaired) == (C, True)


def test_a_report_is_from_the_sender_in_the_header() -> None:
    (report,) = parsed(a_control_frame(a_report(C)))
    assert isinstance(report, Report)
    assert report.member == C


def test_the_frame_of_another_type_is_not_data_whatever_its_flags() -> None:
    for kind in (KEEP_ALIVE, REQUEST, REPAIR, REPORT):
        assert not any(isinstance(found, Run) for found in parsed(a_frame(kind, payload=b"12345678")))


def test_sealing_by_hand_agrees_with_what_was_sealed() -> None:
    frame = a_frame(payload=b"payload")
    assert sealed(frame) == frame


def test_an_ordered_change_is_a_run_of_its_own() -> None:
    change = a_change_frame(a_leave(), seq=3, timestamp=START + 3)
    (run,) = parsed(change)
    assert isinstance(run, Run)
    assert (run.change, run.source, run.seq, run.timestamp, run.ends) == (True, A, 3, START + 3, [0])


def test_a_change_among_data_of_its_size_ends_no_run_of_data() -> None:
    frames = single_frames(3)
    change = a_change_frame(a_leave("silence"), seq=4, timestamp=START + 4)
    assert len(change) == len(frames[0])
    later = single_frames(3, seq=5, timestamp=START + 5)
    runs = parsed(a_block([*frames, change, *later]))
    assert [(run.seq, run.count, run.change) for run in runs if isinstance(run, Run)] == [
        (1, 3, False),
        (4, 1, True),
        (5, 3, False),
    ]


def test_a_repair_may_carry_a_change() -> None:
    change = a_change_frame(a_leave())
    (run,) = parsed(a_repair(change))
    assert isinstance(run, Run)
    assert (run.change, run.repaired, frames_of(run)) == (True, True, [change])


def test_several_repairs_of_changes_of_one_size_are_read_one_by_one() -> None:
    changes = [a_change_frame(a_leave(), seq=seq, timestamp=START + seq) for seq in (1, 2, 3)]
    runs = parsed(a_block([a_repair(change) for change in changes]))
    assert [(run.seq, run.change, run.repaired) for run in runs if isinstance(run, Run)] == [
        (seq, True, True) for seq in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    "frame", [a_frame(CHANGE, flags=0, payload=bytes(16)), a_frame(CHANGE, seq=0), a_frame(CHANGE, timestamp=0)]
)
def test_a_change_is_one_whole_frame_with_a_place_in_the_order(frame: bytes) -> None:
    assert causes(frame) == {"field": 1}


@pytest.mark.parametrize("kind", range(7, 17))
def test_what_is_said_about_membership_is_not_repaired(kind: int) -> None:
    assert causes(a_repair(a_frame(kind, payload=b"\x90"))) == {"nested": 1}


@pytest.mark.parametrize("kind", range(7, 17))
def test_a_body_that_says_nothing_about_membership_is_dropped_as_such(kind: int) -> None:
    assert causes(a_frame(kind, payload=b"\xc1")) == {"body": 1}


def test_a_change_that_says_nothing_is_dropped_as_such() -> None:
    assert causes(a_frame(CHANGE, payload=b"\xc1")) == {"body": 1}
