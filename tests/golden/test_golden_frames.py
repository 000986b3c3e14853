"""Bytes of every frame type, kept for ever: a change here is a new version of the wire format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from intergroup_core.counters import Counters
from intergroup_core.ids import MemberId, SiteId, Timestamp, ViewId, group_tag
from intergroup_core.membership.quorum import Pending, QuorumRecord
from intergroup_core.wire.control import decode_change, encode_change, encode_control
from intergroup_core.wire.exchange import Exchange, Repair
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.header import FrameType
from intergroup_core.wire.headers import decode_headers, encode_headers
from intergroup_core.wire.hierarchy_codec import HIERARCHY_TYPES
from intergroup_core.wire.keeping import KEEPING_TYPES
from intergroup_core.wire.labels import Label, encode_label
from intergroup_core.wire.membership import (
    Add,
    AddRequest,
    Change,
    Cut,
    Entry,
    FailureBlock,
    Farewell,
    Join,
    Leave,
    MembershipChange,
    MembershipMessage,
    Peer,
    ReadyToCommit,
    RecoveryInfo,
    Solicitation,
    Sponsorship,
    ViewRequest,
)
from intergroup_core.wire.messages import ControlMessage, KeepAlive, LiveReport, RepairRequest, Report
from intergroup_core.wire.parse import Parsed
from intergroup_core.wire.records import RecordBatch, Rows, pack_records, pack_rows
from intergroup_core.wire.run import Run
from tests.builders import a_block, messages, parsed

FRAMES = Path(__file__).parent / "frames"

GROUP = group_tag("golden")
SENDER, OTHER = MemberId(0x0123_4567_89AB_CDEF), MemberId(0xFEDC_BA98_7654_3210)
VIEW_TAG = 0xA1B2_C3D4
SEQ, TIMESTAMP = 0x0000_1122_3344_5566, Timestamp(0x0777_8888_9999_AAAA)
MAKER = FrameMaker(GROUP, SENDER, VIEW_TAG, frame_bytes=128)
OTHER_MAKER = FrameMaker(GROUP, OTHER, VIEW_TAG, frame_bytes=128)

ONE = [b"one record"]
THREE_FRAMES = [b"first", b"", bytes(range(200))]
PADDED = [bytes([fill]) * 100 for fill in range(0x61, 0x67)]
LABEL = Label("5f0c-query", "run 1", 7, 0xFEDC_BA98_7654_3210, 3_600)
HEADERS = (("trace", b"\x01\x02"), ("none", None))


def a_record_batch(*records: bytes) -> RecordBatch:
    offsets = np.cumsum([0, *map(len, records)], dtype=np.int64)
    return RecordBatch(offsets, np.frombuffer(b"".join(records), dtype=np.uint8))


ROWS = Rows(a_record_batch(b"first", b"second"))
WHOLE_ROWS = Rows(
    a_record_batch(b"first", b"", b"third"),
    a_record_batch(b"key", b"", b""),
    np.array([False, True, False]),
    a_record_batch(encode_headers(HEADERS), b"", b""),
)
ASKED = RepairRequest(
    requester=SENDER,
    view_tag=VIEW_TAG,
    ranges=((OTHER, 5, 9), (SENDER, 1, (1 << 48) - 1)),
    promises=((OTHER, TIMESTAMP),),
)
TIMED = replace(ASKED, place=(SiteId(7), None), clock=0xC0FFEE42)
TOLD = Report(
    member=SENDER,
    view_tag=VIEW_TAG,
    serial=258,
    acknowledged=TIMESTAMP,
    contiguous=((SENDER, SEQ), (OTHER, 0)),
    room_frames=70_000,
)

OLD, NEW = ViewId(Timestamp(TIMESTAMP - 9_000), OTHER, 3), ViewId(TIMESTAMP, SENDER, SEQ)
BOUND = Timestamp(TIMESTAMP - 5)
LIVE = replace(
    TOLD, live=LiveReport(counted=True, counts=(OTHER,), ready=TIMESTAMP, applied=BOUND, stable=BOUND, name="pricing")
)
ATTEMPT = 0x7FED_CBA9_8765_4321
PEER, OTHER_PEER = Peer(SENDER, "pricing", "berlin"), Peer(OTHER, "Bücher", "")
CUT = Cut(epoch=OLD, changes=BOUND, last=((SENDER, SEQ), (OTHER, 0)))
REMEMBERED = QuorumRecord(OLD, 3, frozenset({5, 1 << 63}), (Pending(ATTEMPT, 4, frozenset({5})),))
RECORD = REMEMBERED.to_bytes()
CHANGES: dict[str, Change] = {
    "change-add": Add(peer=PEER, first_seq=SEQ),
    "change-leave": Leave(reason="silence"),
}
MEMBERSHIP: dict[str, MembershipMessage] = {
    "solicitation": Solicitation(
        member=SENDER, name="pricing", site="berlin", attempt=300, clock=TIMESTAMP, sends=True
    ),
    "sponsorship": Sponsorship(
        member=SENDER,
        newcomer=OTHER,
        attempt=300,
        refusal="",
        ahead_us=-70_000,
        epoch=OLD,
        view=NEW,
        peers=(PEER, OTHER_PEER),
        position=BOUND,
        acknowledged=Timestamp(BOUND - 1),
        activations=((SENDER, SEQ), (OTHER, 1)),
        promises=((SENDER, BOUND), (OTHER, TIMESTAMP)),
        departed=((OTHER, SEQ),),
        primary=True,
        number=3,
    ),
    "sponsorship-refused": Sponsorship(
        member=SENDER,
        newcomer=OTHER,
        attempt=0,
        refusal="clock",
        ahead_us=1 << 40,
        epoch=OLD,
        view=OLD,
        peers=(),
        position=BOUND,
        acknowledged=BOUND,
        activations=(),
        promises=(),
        departed=(),
        primary=False,
        number=3,
    ),
    "add-request": AddRequest(
        member=SENDER, name="pricing", site="berlin", sponsor=OTHER, epoch=OLD, first_seq=SEQ, clock=TIMESTAMP
    ),
    "join": Join(
        member=SENDER, name="pricing", site="berlin", serial=258, epoch=OLD, procs=(SENDER, OTHER), fails=(OTHER,)
    ),
    "join-from-nowhere": Join(member=SENDER, name="", site="", serial=1, epoch=None, procs=(SENDER,), fails=()),
    "failure-block": FailureBlock(member=SENDER, serial=258, epoch=OLD, process=OTHER, seq=SEQ),
    "recovery-info": RecoveryInfo(
        member=SENDER,
        attempt=ATTEMPT,
        epoch=OLD,
        last_seq=SEQ,
        clock=TIMESTAMP,
        leaving=True,
        changed=BOUND,
        failed=((OTHER, 7, BOUND),),
        record=RECORD,
    ),
    "ready": ReadyToCommit(member=SENDER, attempt=ATTEMPT, first_seq=SEQ, cut=CUT),
    "ready-from-nowhere": ReadyToCommit(member=SENDER, attempt=ATTEMPT, first_seq=1, cut=None),
    "membership": MembershipChange(
        member=SENDER,
        attempt=ATTEMPT,
        view=NEW,
        entries=(Entry(peer=PEER, first_seq=SEQ, old=OLD), Entry(peer=OTHER_PEER, first_seq=1, old=None)),
        cuts=(CUT,),
        left=(SENDER,),
        blocked=(OTHER,),
        primary=True,
        number=3,
        again=False,
    ),
    "view-request": ViewRequest(member=SENDER, epoch=OLD, tag=VIEW_TAG),
    "farewell": Farewell(member=SENDER),
}


def a_burst(records: list[bytes]) -> bytes:
    return bytes(MAKER.message(pack_records(records), SEQ, TIMESTAMP).data)


def a_burst_of_rows(rows: Rows, label: bytes = b"") -> bytes:
    return bytes(MAKER.message(pack_rows(rows, label), SEQ, TIMESTAMP).data)


def a_control(message: ControlMessage) -> bytes:
    kind, body = encode_control(message)
    return MAKER.single(kind, 0, 0, body)


def a_keepalive() -> bytes:
    return MAKER.single(FrameType.KEEP_ALIVE, SEQ, TIMESTAMP)


def a_change(change: Change) -> bytes:
    return MAKER.change(encode_change(change), SEQ, TIMESTAMP)[0]


def a_repaired_message(exchange: Exchange | None = None) -> bytes:
    run = MAKER.message(pack_records(PADDED), SEQ, TIMESTAMP).runs[0]
    data, segment = OTHER_MAKER.repairs(run.frames[:2], exchange)
    assert segment == 128 + 48
    return bytes(data)


ENCODED: dict[str, Callable[[], bytes]] = {
    "data-single": lambda: a_burst(ONE),
    "data-multi-frame": lambda: a_burst(THREE_FRAMES),
    "data-padded": lambda: a_burst(PADDED),
    "data-labelled": lambda: a_burst_of_rows(ROWS, encode_label(LABEL)),
    "data-keyed": lambda: a_burst_of_rows(replace(WHOLE_ROWS, headers=None)),
    "data-headed": lambda: a_burst_of_rows(replace(WHOLE_ROWS, keys=None, nulls=None)),
    "data-keyed-headed-labelled": lambda: a_burst_of_rows(WHOLE_ROWS, encode_label(LABEL)),
    "keep-alive": a_keepalive,
    "request": lambda: a_control(ASKED),
    "request-timed": lambda: a_control(TIMED),
    "report": lambda: a_control(TOLD),
    "repair-of-data": a_repaired_message,
    "repair-in-answer": lambda: a_repaired_message(Exchange.of(SENDER, 0xC0FFEE42, 1_500_000)),
    "repair-of-keep-alive": lambda: OTHER_MAKER.repair(a_keepalive()),
    "report-live": lambda: a_control(LIVE),
    "repair-of-change": lambda: OTHER_MAKER.repair(a_change(CHANGES["change-leave"])),
    **{name: partial(a_change, change) for name, change in CHANGES.items()},
    **{name: partial(a_control, message) for name, message in MEMBERSHIP.items()},
}


def golden(name: str) -> list[bytes]:
    """The frames of a file: lines of hexadecimal, an empty line between frames."""
    text = (FRAMES / f"{name}.hex").read_text()
    return [bytes.fromhex(frame) for frame in text.split("\n\n")]


def parsed_golden(name: str) -> list[Parsed]:
    counters = Counters()
    found = parsed(a_block(golden(name)), group=GROUP, counters=counters)
    assert counters.dropped == {}
    return found


@pytest.mark.parametrize("name", ENCODED)
def test_encoding_gives_the_bytes_on_file(name: str) -> None:
    assert ENCODED[name]().hex(" ", 8) == b"".join(golden(name)).hex(" ", 8)


def test_every_file_is_tested_and_every_frame_type_has_one() -> None:
    assert {path.stem for path in FRAMES.glob("*.hex")} == set(ENCODED)
    assert {golden(name)[0][5] for name in ENCODED} == set(FrameType) - HIERARCHY_TYPES - KEEPING_TYPES


@pytest.mark.parametrize(
    ("name", "records", "frames"),
    [("data-single", ONE, 1), ("data-multi-frame", THREE_FRAMES, 3), ("data-padded", PADDED, 8)],
)
def test_the_data_on_file_is_read_as_the_message_it_was(name: str, records: list[bytes], frames: int) -> None:
    runs = [run for run in parsed_golden(name) if isinstance(run, Run)]
    assert [(run.source, run.view_tag, run.repaired) for run in runs] == [(SENDER, VIEW_TAG, False)] * len(runs)
    assert (runs[0].seq, runs[0].timestamp, runs[0].fragment) == (SEQ, TIMESTAMP, 0)
    assert sum(run.count for run in runs) == frames
    (message,) = messages(runs)
    assert (message.source, message.seq, message.timestamp) == (SENDER, SEQ + frames - 1, TIMESTAMP + frames - 1)
    assert message.records() == records


@pytest.mark.parametrize(
    ("name", "keyed", "headed", "label"),
    [
        ("data-keyed", True, False, None),
        ("data-headed", False, True, None),
        ("data-keyed-headed-labelled", True, True, LABEL),
    ],
)
def test_the_rows_on_file_are_read_with_all_they_have(
    name: str, keyed: bool, headed: bool, label: Label | None
) -> None:
    (message,) = messages([run for run in parsed_golden(name) if isinstance(run, Run)])
    rows = message.rows()
    assert rows is not None
    assert (rows.values.to_list(), message.label()) == ([b"first", b"", b"third"], label)
    assert (rows.keys is not None, rows.headers is not None) == (keyed, headed)
    if rows.keys is not None:
        assert rows.nulls is not None
        assert (rows.keys.to_list(), rows.nulls.tolist()) == ([b"key", b"", b""], [False, True, False])
    if rows.headers is not None:
        assert list(map(decode_headers, rows.headers.to_list())) == [HEADERS, (), ()]


def test_the_staged_rows_on_file_are_read() -> None:
    (message,) = messages([run for run in parsed_golden("data-labelled") if isinstance(run, Run)])
    assert (message.records(), message.label()) == ([b"first", b"second"], LABEL)


def test_a_message_of_many_frames_is_padded_to_equal_ones_and_a_shorter_one_is_not() -> None:
    assert {len(frame) for frame in golden("data-padded")} == {128}
    assert [len(frame) for frame in golden("data-multi-frame")] == [128, 128, 48 + 64]


def test_the_keep_alive_on_file_is_read() -> None:
    (frame,) = golden("keep-alive")
    expected = KeepAlive(source=SENDER, seq=SEQ, timestamp=TIMESTAMP, view_tag=VIEW_TAG, frame=frame)
    assert parsed_golden("keep-alive") == [expected]


def test_the_request_and_the_reports_on_file_are_read() -> None:
    assert parsed_golden("request") == [ASKED]
    assert parsed_golden("request-timed") == [TIMED]
    assert parsed_golden("report") == [TOLD]
    assert parsed_golden("report-live") == [LIVE]


@pytest.mark.parametrize("name", MEMBERSHIP)
def test_what_was_said_about_membership_is_read_from_file(name: str) -> None:
    assert parsed_golden(name) == [MEMBERSHIP[name]]


@pytest.mark.parametrize("name", CHANGES)
def test_the_ordered_changes_on_file_have_their_place_and_their_meaning(name: str) -> None:
    (run,) = parsed_golden(name)
    assert isinstance(run, Run)
    assert (run.change, run.source, run.seq, run.timestamp, run.count) == (True, SENDER, SEQ, TIMESTAMP, 1)
    (message,) = messages([run])
    assert decode_change(message.payload.tobytes()) == CHANGES[name]


def test_the_quorum_record_on_file_is_read() -> None:
    (info,) = parsed_golden("recovery-info")
    assert isinstance(info, RecoveryInfo)
    record = QuorumRecord.from_bytes(info.record)
    assert record == REMEMBERED


def test_the_repairs_on_file_carry_the_stored_frames_verbatim() -> None:
    stored = golden("data-padded")[:2]
    (run,) = parsed_golden("repair-of-data")
    assert isinstance(run, Run)
    assert (run.source, run.seq, run.repaired) == (SENDER, SEQ, True)
    assert run.frames.tobytes() == b"".join(stored)
    assert run.repair == Repair(OTHER, None)
    (run,) = parsed_golden("repair-in-answer")
    assert isinstance(run, Run)
    assert run.repair == Repair(OTHER, Exchange(SENDER & 0xFFFFFFFF, 0xC0FFEE42, 1_500))
    assert run.frames.tobytes() == b"".join(stored)
    (left,) = golden("change-leave")
    (run,) = parsed_golden("repair-of-change")
    assert isinstance(run, Run)
    assert (run.change, run.repaired, run.frames.tobytes()) == (True, True, left)
    (kept,) = golden("keep-alive")
    (keepalive,) = parsed_golden("repair-of-keep-alive")
    assert isinstance(keepalive, KeepAlive)
    assert (keepalive.frame, keepalive.repaired) == (kept, True)
