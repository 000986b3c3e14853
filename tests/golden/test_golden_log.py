"""Bytes of a stable log, kept for ever: a change here is a new version of the log's format."""

from __future__ import annotations

from pathlib import Path

import pytest

from intergroup_core.effects import Departure, Gap, Install
from intergroup_core.ids import MemberId, Service, Timestamp, View, ViewId, group_tag
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.manifest import MANIFEST
from intergroup_core.log.reader import LogReader
from intergroup_core.log.writer import Durability, create_log, open_log
from intergroup_core.sim.disk import SimDisk
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.records import pack_records
from tests.log_builders import contents, rows_of, what_was_delivered

LOG_FILES = Path(__file__).parent / "log"
CLOSED_LOG_FILES = Path(__file__).parent / "closed_log"
SENDER, OTHER = MemberId(0x0123_4567_89AB_CDEF), MemberId(0xFEDC_BA98_7654_3210)
LOG = 0x1122_3344_5566_7788
TIMESTAMP = 0x0777_8888_9999_AAAA
FIRST, SECOND = ViewId(Timestamp(TIMESTAMP), SENDER, 3), ViewId(Timestamp(TIMESTAMP + 500), SENDER, 4)
MAKER = FrameMaker(group_tag("golden"), SENDER, FIRST.tag, frame_bytes=128)


def a_chunk(records: list[bytes], seq: int, timestamp: int) -> Chunk:
    *head, run = MAKER.message(pack_records(records), seq, Timestamp(timestamp)).runs
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
