"""Bytes of a stable log, kept for ever: a change here is a new version of the log's format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from intergroup_core.effects import Departure, Gap, Install
from intergroup_core.ids import MemberId, Service, Timestamp, View, ViewId, group_tag
from intergroup_core.log.cut import BEHIND_ALL, OrderCut, SourceCut
from intergroup_core.log.entry import EntryFlag
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.manifest import MANIFEST, read_manifest
from intergroup_core.log.reader import LogReader
from intergroup_core.log.writer import Durability, create_log, open_log
from intergroup_core.sim.disk import SimDisk
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.labels import Label, encode_label
from intergroup_core.wire.records import Payload, RecordBatch, Rows, pack_records, pack_rows
from intergroup_core.wire.statements import Holding, encode_statement
from tests.log_builders import contents, rows_of, what_was_delivered

LOG_FILES = Path(__file__).parent / "log"
CLOSED_LOG_FILES = Path(__file__).parent / "closed_log"
STAGED_LOG_FILES = Path(__file__).parent / "staged_log"
SOURCES_LOG_FILES = Path(__file__).parent / "sources_log"
SENDER, OTHER = MemberId(0x0123_4567_89AB_CDEF), MemberId(0xFEDC_BA98_7654_3210)
LOG = 0x1122_3344_5566_7788
TIMESTAMP = 0x0777_8888_9999_AAAA
FIRST, SECOND = ViewId(Timestamp(TIMESTAMP), SENDER, 3), ViewId(Timestamp(TIMESTAMP + 500), SENDER, 4)
MAKER = FrameMaker(group_tag("golden"), SENDER, FIRST.tag, frame_bytes=128)


def a_chunk(records: list[bytes], seq: int, timestamp: int) -> Chunk:
    return chunk_of(pack_records(records), seq, timestamp)


def chunk_of(payload: Payload, seq: int, timestamp: int) -> Chunk:
    *head, run = MAKER.message(payload, seq, Timestamp(timestamp)).runs
    return Chunk(tuple(head), run)


DELIVERED: list[Delivered] = [
    Install(
        View(id=FIRST, members=(SENDER, OTHER), names=("pricing", "Bücher")),
        transitional=(SENDER,),
        joined=(OTHER,),
        branches=("0000000000000001-0000000000000002-3",),
    ),
    a_chunk([b"one record"], 1, TIMESTAMP + 1),
    a_chunk([b"first", b"", bytes(range(200))], 2, TIMESTAMP + 2),
    Gap("behind the others", OTHER, unsure=2),
    Install(View(id=SECOND, members=(SENDER,), names=("pricing",)), departed=(Departure(OTHER, "Bücher", "failed"),)),
    a_chunk([bytes([fill]) * 100 for fill in range(0x61, 0x67)], 5, TIMESTAMP + 501),
    a_chunk([b"the last"], 13, TIMESTAMP + 509),
]


LABEL = encode_label(Label("5f0c-query", "run 1", 7, 0xFEDC_BA98_7654_3210, 3_600))
VALUES = RecordBatch(np.array([0, 3, 6]), np.frombuffer(b"onetwo", dtype=np.uint8))
STAGED: list[Delivered] = [
    DELIVERED[0],
    chunk_of(pack_rows(Rows(VALUES), LABEL), 1, TIMESTAMP + 1),
    chunk_of(encode_statement(Holding(7, "here", True, 60)), 2, TIMESTAMP + 2),
    chunk_of(pack_rows(Rows(VALUES, keys=VALUES)), 3, TIMESTAMP + 3),
]


def a_golden_log() -> SimDisk:
    """Two segments: the second begins with the view carried into it and an entry that knows what is durable."""
    disk = SimDisk()
    create_log(disk, log=LOG, group="golden", service=Service.RTO)
    log = open_log(disk, segment_bytes=2_400)
    for delivered in DELIVERED[:-1]:
        log.append(delivered)
    log.flush(Durability.DISK)
    log.append(DELIVERED[-1])
    log.settle()
    return disk


def a_closed_golden_log() -> SimDisk:
    """The same, with a manifest that says how much of the last segment is durable."""
    disk = a_golden_log()
    open_log(disk, segment_bytes=2_400).close()
    return disk


def test_a_closed_log_says_so_in_its_manifest() -> None:
    disk = a_closed_golden_log()
    written = bytes(disk.map(MANIFEST, 0, disk.size(MANIFEST)))
    assert written.hex(" ", 8) == bytes.fromhex((CLOSED_LOG_FILES / "manifest.hex").read_text()).hex(" ", 8)


def test_a_closed_log_on_file_is_read() -> None:
    disk = SimDisk()
    closed = bytes.fromhex((CLOSED_LOG_FILES / "manifest.hex").read_text())
    for name, content in (on_file() | {MANIFEST: closed}).items():
        disk.create(name).appendv([content])
    reader = LogReader(disk)
    assert contents(reader) == [what_was_delivered(delivered) for delivered in DELIVERED]
    assert reader.manifest.durable is not None
    assert (reader.manifest.durable.stop, reader.damaged_end) == (reader.stop, None)


def a_staged_golden_log() -> SimDisk:
    """Entries of staged rows, of a statement, and of rows with keys."""
    disk = SimDisk()
    create_log(disk, log=LOG, group="golden", service=Service.RTO)
    log = open_log(disk)
    for delivered in STAGED:
        log.append(delivered)
    return disk


def test_entries_say_that_something_is_staged_or_stated_in_them() -> None:
    disk = a_staged_golden_log()
    (name,) = (name for name in disk.names() if name.endswith(".segment"))
    (path,) = STAGED_LOG_FILES.iterdir()
    on_file = bytes.fromhex(path.read_text())
    assert path.stem == name
    assert bytes(disk.map(name, 0, disk.size(name))).hex(" ", 8) == on_file.hex(" ", 8)
    read = SimDisk()
    create_log(read, log=LOG, group="golden", service=Service.RTO)
    read.create(name).appendv([on_file])
    reader = LogReader(read)
    flags = [0, EntryFlag.STAGED, EntryFlag.STATES, 0]
    assert [entry.header.flags for entry in reader.entries(0)] == flags
    assert contents(reader) == [what_was_delivered(delivered) for delivered in STAGED]
    shown = [(row["key"], row["value"], row["txn"]) for row in rows_of(read) if row["kind"] == "data"]
    assert shown[:2] == [(None, b"one", "5f0c-query/7"), (None, b"two", "5f0c-query/7")]
    assert shown[2:] == [(b"one", b"one", None), (b"two", b"two", None)]


def test_a_log_of_rto_says_where_its_senders_stood() -> None:
    disk = SimDisk()
    create_log(disk, log=LOG, group="golden", service=Service.RTO)
    stood = SourceCut({SENDER: 7, OTHER: 0}, FIRST)
    open_log(disk).bound(after=OrderCut(TIMESTAMP - 1, BEHIND_ALL), sources=stood)
    written = bytes(disk.map(MANIFEST, 0, disk.size(MANIFEST)))
    on_file = bytes.fromhex((SOURCES_LOG_FILES / "manifest.hex").read_text())
    assert written.hex(" ", 8) == on_file.hex(" ", 8)
    assert read_manifest(disk).sources == stood


def files() -> dict[str, bytes]:
    disk = a_golden_log()
    return {name: bytes(disk.map(name, 0, disk.size(name))) for name in disk.names()}


def on_file() -> dict[str, bytes]:
    return {path.stem: bytes.fromhex(path.read_text()) for path in LOG_FILES.glob("*.hex")}


def test_every_file_of_the_log_is_on_file() -> None:
    assert set(files()) == set(on_file())
    assert len(files()) == 4


@pytest.mark.parametrize("name", sorted(files()))
def test_writing_gives_the_bytes_on_file(name: str) -> None:
    assert files()[name].hex(" ", 8) == on_file()[name].hex(" ", 8)


def test_the_log_on_file_is_read() -> None:
    disk = SimDisk()
    for name, content in on_file().items():
        disk.create(name).appendv([content])
    reader = LogReader(disk)
    assert (reader.manifest.log, reader.manifest.group, reader.manifest.service) == (LOG, "golden", Service.RTO)
    assert contents(reader) == [what_was_delivered(delivered) for delivered in DELIVERED]
    assert len(reader.segments) == 2
    assert rows_of(disk) == rows_of(a_golden_log())
    assert MANIFEST in on_file()
