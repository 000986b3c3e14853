"""Real files as the disk of a log."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random

import pytest

from intergroup_core.errors import ConfigError, DiskFull, LogError
from intergroup_core.log.reader import LogReader
from intergroup_core.log.writer import Durability, open_log
from intergroup_core.runtime.disk import FileDisk
from tests.log_builders import a_history, a_log, contents, live_rows, rows_of, what_was_delivered


def test_a_log_on_files_reads_as_it_was_written(tmp_path: Path) -> None:
    history = a_history(Random(2), 60)
    disk = FileDisk.locked(tmp_path / "log")
    log = a_log(disk, segment_bytes=3_000)
    for delivered in history[:30]:
        log.append(delivered)
    log.flush(Durability.DISK)
    log.close()
    log = open_log(disk, segment_bytes=3_000)
    for delivered in history[30:]:
        log.append(delivered)
    log.close()
    disk.close()
    assert contents(LogReader(FileDisk(tmp_path / "log"))) == [what_was_delivered(each) for each in history]
    assert rows_of(FileDisk(tmp_path / "log")) == live_rows(history)
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "log").iterdir()} == {0o600}


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    disk = FileDisk.locked(tmp_path)
    with pytest.raises(ConfigError, match="another process writes the log in"):
        FileDisk.locked(tmp_path)
    disk.close()
    FileDisk.locked(tmp_path).close()


def test_a_write_that_is_taken_in_pieces_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda file, parts, at: write(file, [b"".join(parts)[:7]], at))
    file = FileDisk(tmp_path).create("f")
    file.appendv([b"0123", b"", b"456789abcdef", memoryview(b"xyz")])
    file.close()
    assert (tmp_path / "f").read_bytes() == b"0123456789abcdefxyz"
    assert file.size == 19


def test_many_parts_are_written_in_turns(tmp_path: Path) -> None:
    file = FileDisk(tmp_path).create("f")
    file.appendv([b"%d," % number for number in range(3_000)])
    file.close()
    assert (tmp_path / "f").read_bytes() == b"".join(b"%d," % number for number in range(3_000))


@pytest.mark.parametrize(("code", "kind"), [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EIO, LogError)])
def test_what_the_kernel_refuses_is_explained(
    code: int, kind: type[LogError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    file = FileDisk(tmp_path).create("f")
    monkeypatch.setattr(os, "pwritev", refuse)
    with pytest.raises(kind, match=f"cannot write {tmp_path}/f: {os.strerror(code)}") as raised:
        file.appendv([b"x"])
    assert type(raised.value) is kind
    file.close()


def test_ranges_are_mapped_from_any_offset(tmp_path: Path) -> None:
    content = Random(1).randbytes(20_000)
    (tmp_path / "f").write_bytes(content)
    disk = FileDisk(tmp_path)
    for start, stop in ((0, 20_000), (8, 16), (5_000, 9_000), (7, 7)):
        assert bytes(disk.map("f", start, stop)) == content[start:stop]
    assert disk.map("f", 0, 10).readonly
    with pytest.raises(LogError, match="is shorter than 20001 bytes"):
        disk.map("f", 0, 20_001)
    with pytest.raises(LogError, match=r"cannot read .*nowhere: No such file"):
        disk.map("nowhere", 0, 1)
