from __future__ import annotations

from pathlib import Path

import pytest

from intergroup_core.ids import MemberId, Service
from intergroup_core.log.writer import create_log, open_log
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.log_archive import MAX_FRAMES, LogArchive
from intergroup_core.wire.chunk import Chunk
from tests.builders import A, B, a_run


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    disk = FileDisk.locked(tmp_path / "log")
    create_log(disk, log=7, group="prices", service=Service.RTO)
    writer = open_log(disk)
    for number in range(50):
        writer.append(Chunk((), a_run(A, seq=1 + 4 * number, timestamp=1_000 + 10 * number, ends="..||")))
        writer.append(Chunk((), a_run(B, seq=1 + number, timestamp=1_005 + 10 * number, ends="|")))
    writer.close()
    disk.close()
    return tmp_path / "log"


def seqs(archive: LogArchive, source: MemberId, first: int, last: int) -> list[int]:
    return [seq for run in archive.held(source, first, last) for seq in range(run.seq, run.last_seq + 1)]


def test_frames_of_one_sender_are_found_between_any_two_seqs(directory: Path) -> None:
    archive = LogArchive(directory)
    assert seqs(archive, A, 3, 10) == list(range(3, 11))
    assert seqs(archive, B, 49, 60) == [49, 50]
    assert seqs(archive, A, 201, 300) == []
    assert seqs(archive, MemberId(99), 1, 10) == []


def test_the_frames_are_those_that_were_received(directory: Path) -> None:
    (run,) = LogArchive(directory).held(A, 5, 8)
    assert (run.frames == a_run(A, seq=5, timestamp=1_010, ends="..||").frames).all()


def test_what_is_appended_later_is_found_later(directory: Path) -> None:
    archive = LogArchive(directory)
    assert seqs(archive, B, 51, 51) == []
    disk = FileDisk.locked(directory)
    writer = open_log(disk)
    writer.append(Chunk((), a_run(B, seq=51, timestamp=5_000, ends="|")))
    writer.close()
    disk.close()
    assert seqs(archive, B, 51, 51) == [51]


def test_a_look_gives_no_more_than_is_reasonable(tmp_path: Path) -> None:
    disk = FileDisk.locked(tmp_path / "log")
    create_log(disk, log=7, group="prices", service=Service.RTO)
    writer = open_log(disk)
    writer.append(Chunk((), a_run(A, seq=1, timestamp=1_000, ends="|" * (MAX_FRAMES + 100))))
    writer.close()
    disk.close()
    assert seqs(LogArchive(tmp_path / "log"), A, 1, 1 << 40) == list(range(1, MAX_FRAMES + 1))


def test_a_log_that_is_gone_repeats_nothing(tmp_path: Path) -> None:
    assert LogArchive(tmp_path / "nowhere").held(A, 1, 10) == []
