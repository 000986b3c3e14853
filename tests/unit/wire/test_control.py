from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.ids import MAX_TIMESTAMP, MemberId, Timestamp
from intergroup_core.wire.control import decode_control, encode_control
from intergroup_core.wire.exchange import CLOCK_MASK
from intergroup_core.wire.fields import MAX_ITEMS
from intergroup_core.wire.header import MAX_SEQ, FrameType
from intergroup_core.wire.messages import LiveReport, RepairRequest, Report
from tests.builders import START, A, B, C, R, a_live_part, a_report, speaker

members = st.integers(1, (1 << 64) - 1).map(MemberId)
seqs = st.integers(0, MAX_SEQ)
timestamps = st.integers(0, MAX_TIMESTAMP).map(Timestamp)

tags = st.integers(0, (1 << 32) - 1)
VIEW_TAG = 7


@st.composite
def spans(draw: st.DrawFn) -> tuple[MemberId, int, int]:
    first = draw(st.integers(1, MAX_SEQ))
    return draw(members), first, draw(st.integers(first, MAX_SEQ))


places = st.none() | st.tuples(members, st.none() | members)
requests = st.builds(
    RepairRequest,
    requester=members,
    view_tag=tags,
    ranges=st.lists(spans(), max_size=80).map(tuple),
    promises=st.lists(st.tuples(members, timestamps), max_size=20).map(tuple),
    place=places,
    clock=st.integers(0, CLOCK_MASK),
)
reports = st.builds(
    Report,
    member=members,
    view_tag=tags,
    serial=seqs,
    acknowledged=timestamps,
    contiguous=st.lists(st.tuples(members, seqs), max_size=40).map(tuple),
    room_frames=seqs,
    live=st.none()
    | st.builds(
        LiveReport,
        counted=st.booleans(),
        counts=st.lists(members, max_size=8).map(tuple),
        ready=timestamps,
        applied=timestamps,
        stable=timestamps,
        name=st.text(max_size=20),
        relayed=st.booleans(),
        indirect=st.booleans(),
        place=places,
    ),
)


@given(st.one_of(requests, reports))
def test_a_control_message_comes_back_as_it_was(message: RepairRequest | Report) -> None:
    kind, body = encode_control(message)
    assert decode_control(kind, speaker(message), message.view_tag, body) == message


def test_a_report_in_a_view_that_stays_has_the_body_it_always_had() -> None:
    _, plain = encode_control(a_report())
    _, live = encode_control(a_report(live=a_live_part(counts=[R])))
    assert (len(msgpack.unpackb(plain)), len(msgpack.unpackb(live))) == (4, 10)


GOOD_REQUEST: list[Any] = [[[A, 1, 5]], [[B, START]]]
GOOD_REPORT: list[Any] = [1, START, [[A, 5]], 100]
GOOD_LIVE: list[Any] = [*GOOD_REPORT, True, [B], START, START, START, "", True, True, [A, None]]


def test_the_bodies_that_the_next_tests_spoil_are_good() -> None:
    assert decode_control(FrameType.REQUEST, C, VIEW_TAG, msgpack.packb(GOOD_REQUEST)) is not None
    assert decode_control(FrameType.REPORT, C, VIEW_TAG, msgpack.packb(GOOD_REPORT)) is not None
    assert decode_control(FrameType.REPORT, C, VIEW_TAG, msgpack.packb(GOOD_LIVE)) is not None


@pytest.mark.parametrize(
    "fields",
    [
        None,
        7,
        "text",
        [],
        [[]],
        [[], [], []],
        [[1, 2, 3], []],
        [[[A, 1]], []],
        [[[A, 1, 5, 9]], []],
        [[[A, 0, 5]], []],
        [[[A, 6, 5]], []],
        [[[A, -1, 5]], []],
        [[[A, 1, MAX_SEQ + 1]], []],
        [[[-1, 1, 5]], []],
        [[[0, 1, 5]], []],
        [[["A", 1, 5]], []],
        [[[A, 1.0, 5]], []],
        [[[A, True, 5]], []],
        [[[A, 1, None]], []],
        [[], [[B]]],
        [[], [[B, -1]]],
        [[], [[B, MAX_TIMESTAMP + 1]]],
        [[], [[B, START, 1]]],
        [[], B],
        [[], [], [A]],
        [[], [], [0, A]],
        [[], [], [A, 0]],
        [[], [], [A, B]],
        [[], [], [A, B], -1],
        [[], [], [A, B], CLOCK_MASK + 1],
        [[], [], [A, B], 1, 1],
        [[[A, 1, 5]] * (MAX_ITEMS + 1), []],
    ],
)
def test_a_body_that_is_not_a_request_is_none(fields: Any) -> None:
    assert decode_control(FrameType.REQUEST, C, VIEW_TAG, msgpack.packb(fields)) is None


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        [1, START, [[A, 5]]],
        [1, START, [[A, 5]], 100, 0],
        [1, START, [[A, 5]], 100, True],
        [1, START, [[A, 5]], 100, True, []],
        [1, START, [[A, 5]], 100, 1, [], START, START, ""],
        [1, START, [[A, 5]], 100, True, None, START, START, ""],
        [1, START, [[A, 5]], 100, True, [0], START, START, ""],
        [1, START, [[A, 5]], 100, True, [B], -1, START, ""],
        [1, START, [[A, 5]], 100, True, [B], START, ""],
        [1, START, [[A, 5]], 100, True, [B], START, START, None],
        [1, START, [[A, 5]], 100, True, [B], START, START, "", 7],
        [1, START, [[A, 5]], 100, True, [B], START, START, START, "", True],
        [1, START, [[A, 5]], 100, True, [B], START, START, START, "", True, 1, None],
        [1, START, [[A, 5]], 100, True, [B], START, START, START, "", True, True, [A]],
        [-1, START, [[A, 5]], 100],
        [MAX_SEQ + 1, START, [[A, 5]], 100],
        [1, MAX_TIMESTAMP + 1, [[A, 5]], 100],
        [1, START, [[A]], 100],
        [1, START, [[A, -5]], 100],
        [1, START, [A, 5], 100],
        [1, START, 5, 100],
        [1, START, [[A, 5]], -1],
        [1, START, [[A, 5]], 1 << 63],
        [True, START, [[A, 5]], 100],
        [1, START, [[A, b"5"]], 100],
        GOOD_REQUEST,
    ],
)
def test_a_body_that_is_not_a_report_is_none(fields: Any) -> None:
    assert decode_control(FrameType.REPORT, C, VIEW_TAG, msgpack.packb(fields)) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\x92",
        b"\xdd\xff\xff\xff\xff",
        b"\xdc\x10\x00" * 400,
        b"\x91" * 3_000,
        b"\x91" * 60_000,
        b"\x81\x00\x00",
        b"\xc7\x00\x05",
        b"\xc7\x00\xff",
        b"\xd6\xff\0\0\0\0",
        b"\xd9\x02\xff\xfe",
        b"\xdb\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        msgpack.packb(GOOD_REPORT) + b"\0",
        msgpack.packb(GOOD_REPORT)[:-1],
    ],
    ids=lambda body: f"{body[:6].hex()}({len(body)})",
)
@pytest.mark.parametrize("kind", [FrameType.REQUEST, FrameType.REPORT])
def test_bytes_that_are_no_msgpack_array_are_none(kind: FrameType, body: bytes) -> None:
    assert decode_control(kind, C, VIEW_TAG, body) is None


@given(st.sampled_from([FrameType.REQUEST, FrameType.REPORT]), st.binary(max_size=200))
def test_any_bytes_are_read_without_raising(kind: FrameType, body: bytes) -> None:
    message = decode_control(kind, C, VIEW_TAG, body)
    assert message is None or encode_control(message)[0] is kind


@given(st.sampled_from([GOOD_REQUEST, GOOD_REPORT]), st.data())
def test_a_good_body_with_any_byte_changed_is_read_without_raising(fields: list[Any], data: st.DataObject) -> None:
    kind = FrameType.REQUEST if fields is GOOD_REQUEST else FrameType.REPORT
    body = bytearray(msgpack.packb(fields))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    message = decode_control(kind, C, VIEW_TAG, bytes(body))
    assert message is None or speaker(message) == C
