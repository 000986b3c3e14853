"""Appending to a stable log next to plain writes of the same bytes; reading it into Arrow next to a plain copy."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from intergroup_core.benchmarks.figures import Case, middle_of
from intergroup_core.config import HEADER_BYTES, Config
from intergroup_core.effects import Install
from intergroup_core.ids import MemberId, Service, Timestamp, View, ViewId, group_tag
from intergroup_core.log.arrow import COLUMNS, ArrowRows
from intergroup_core.log.reader import LogReader
from intergroup_core.log.writer import Durability, create_log, open_log
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.records import LENGTH_BYTES, pack_records

GROUP = "bench"
SENDER = MemberId(0xBE2C4)
VIEW = View(id=ViewId(Timestamp(1 << 50), SENDER, 1), members=(SENDER,), names=("bench",))
COMMIT_BYTES = 8_000_000
"""At `disk`, so much is made durable by one sync."""
TURNS = 4
_SMALL_SHARE = 20
"""Records that come one by one are so many times fewer: each is an entry."""


async def run_log(
    *, records: int, record_bytes: int, rounds: int, directory: Path | None, progress: Callable[[str], None]
) -> list[Case]:
    progress("making messages")
    bundled = _chunks(records, record_bytes, Config.lan().send.bundle_bytes)
    single = _chunks(records // _SMALL_SHARE, record_bytes, 1)
    found: dict[str, list[Case]] = {}
    with tempfile.TemporaryDirectory(dir=directory, prefix="bench-log-") as place:
        for at in range(rounds):
            progress(f"round {at + 1} of {rounds}")
            for case in _round(Path(place), bundled, single, records):
                found.setdefault(case.name, []).append(case)
    return [middle_of(cases) for cases in found.values()]


def _round(place: Path, bundled: Sequence[Chunk], single: Sequence[Chunk], records: int) -> Iterable[Case]:
    size = sum(chunk.nbytes for chunk in bundled)
    for level in (Durability.OS, Durability.DISK):
        taken, plain = _side_by_side(place, bundled, level)
        name = f"append at {level.name.lower()}, bundled"
        yield Case(name=name, value=size / taken / 1e6, unit="MB/s", ceiling=size / plain / 1e6)
    for name, columns in (("value alone", ("value",)), ("all columns", COLUMNS)):
        yield _decoded(place / "log", f"decode, {name}", columns, bundled, records)
    taken, plain = _side_by_side(place, single, Durability.OS)
    name = "append at os, an entry a record"
    yield Case(name=name, value=len(single) / taken, unit="/s", ceiling=len(single) / plain)
    yield _decoded(place / "log", "decode, value alone, an entry a record", ("value",), single, len(single))
    _clear(place / "log")


def _side_by_side(place: Path, chunks: Sequence[Chunk], level: Durability) -> tuple[float, float]:
    """Seconds of the log and of plain writes: the best of several turns, each side first in half of them.

    Whoever comes first after a burst of writing meets a slower disk; what the best turns of both met is alike.
    """
    logs, plains = [], []
    for turn in range(TURNS):
        if turn % 2:
            logs.append(_append_seconds(place / "log", chunks, level))
        plains.append(_plain_seconds(place / "plain", chunks, level))
        if not turn % 2:
            logs.append(_append_seconds(place / "log", chunks, level))
    return min(logs), min(plains)


def _chunks(records: int, record_bytes: int, bundle_bytes: int) -> list[Chunk]:
    """Messages of one sender as they are delivered; the same bytes in each, for it is not they that are measured."""
    maker = FrameMaker(group_tag(GROUP), SENDER, VIEW.id.tag, Config.lan().group.frame_bytes)
    each = min(records, max(1, bundle_bytes // (record_bytes + LENGTH_BYTES)))
    chunks, seq, timestamp = [], 1, VIEW.id.start + 1
    while records:
        count = min(each, records)
        emission = maker.message(pack_records([bytes(record_bytes)] * count), seq, Timestamp(timestamp))
        *head, run = emission.runs
        chunks.append(Chunk(tuple(head), run))
        frames = sum(part.count for part in emission.runs)
        seq, timestamp, records = seq + frames, timestamp + frames, records - count
    return chunks


def _plain_seconds(path: Path, chunks: Sequence[Chunk], level: Durability) -> float:
    """One write for each chunk, and nothing else; at `disk` with as many syncs as the log has."""
    parts = [[run.frames.reshape(-1).data.cast("B") for run in (*chunk.head, chunk.run)] for chunk in chunks]
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    begin, offset, synced = time.perf_counter(), 0, 0
    for part in parts:
        written = os.pwritev(opened, part, offset)
        assert written == sum(map(len, part)), "a plain write that was cut short measures nothing"
        offset += written
        if level is Durability.DISK and offset - synced >= COMMIT_BYTES:
            os.fdatasync(opened)
            synced = offset
    if level is Durability.DISK:
        os.fdatasync(opened)
    taken = time.perf_counter() - begin
    # As closing a log does: neither side leaves the other its bytes to be written out.
    os.fdatasync(opened)
    os.close(opened)
    path.unlink()
    return taken


def _append_seconds(directory: Path, chunks: Sequence[Chunk], level: Durability) -> float:
    _clear(directory)
    disk = FileDisk.locked(directory)
    create_log(disk, log=1, group=GROUP, service=Service.RTO)
    log = open_log(disk, durability=level)
    log.append(Install(VIEW, joined=(SENDER,)))
    begin, waiting = time.perf_counter(), 0
    for chunk in chunks:
        log.append(chunk)
        waiting += chunk.nbytes
        if level is Durability.DISK and waiting >= COMMIT_BYTES:
            log.flush(Durability.DISK)
            waiting = 0
    if level is Durability.DISK:
        log.flush(Durability.DISK)
    taken = time.perf_counter() - begin
    log.close()
    disk.close()
    return taken


def _decoded(directory: Path, name: str, columns: Sequence[str], chunks: Sequence[Chunk], records: int) -> Case:
    """Rows for each second of one core; the ceiling copies the payloads out of their frames and does nothing else."""
    rows = ArrowRows(LogReader(FileDisk(directory)), columns)
    ceiling = records / _copy_seconds(chunks)
    begin = time.process_time()
    found = sum(batch.num_rows for batch in rows.batches())
    taken = time.process_time() - begin
    assert found == records + 1, "a row for each record, and the view"
    return Case(name=name, value=records / taken, unit="rows/s", ceiling=ceiling)


def _copy_seconds(chunks: Sequence[Chunk]) -> float:
    begin = time.process_time()
    for chunk in chunks:
        for run in (*chunk.head, chunk.run):
            np.ascontiguousarray(run.frames.view(np.uint8)[:, HEADER_BYTES:])
    return time.process_time() - begin


def _clear(directory: Path) -> None:
    if directory.exists():
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()
