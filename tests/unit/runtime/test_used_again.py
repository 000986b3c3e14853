"""Files of removed segments that are used again, next to readers who have them mapped or are about to."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest

from intergroup_core.errors import LogError
from intergroup_core.log.entry import end_mark
from intergroup_core.runtime import reservation
from intergroup_core.runtime.disk import MAX_SPARES, FileDisk, GrowingFile
from intergroup_core.runtime.reservation import FAST_BYTES

OLD, NEW = "0000000000000000.segment", "0000000000000009.segment"
CONTENT = Random(1).randbytes(1_000)
END = end_mark(9)


def a_disk(directory: Path) -> FileDisk:
    """With an old segment."""
    disk = FileDisk.locked(directory)
    file = disk.create(OLD, end=END)
    file.appendv([CONTENT])
    file.close()
    return disk


def used_again(disk: FileDisk) -> GrowingFile:
    disk.retire(OLD)
    return disk.create(NEW, end=END)


def inode(directory: Path, name: str) -> int:
    return (directory / name).stat().st_ino


def test_a_later_segment_is_made_of_an_old_one_and_is_empty(tmp_path: Path) -> None:
    disk = a_disk(tmp_path)
    before = inode(tmp_path, OLD)
    disk.retire(OLD)
    assert (OLD in disk.names(), disk.spares) == (False, 1)
    file = disk.create(NEW, end=END)
    assert (inode(tmp_path, NEW), disk.spares, file.size) == (before, 0, 0)
    assert (tmp_path / NEW).read_bytes() == END + CONTENT[len(END) :]
    assert {"lock", NEW} == set(disk.names())
    disk.close()


def test_it_is_empty_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = a_disk(tmp_path)
    disk.retire(OLD)
    replace, seen = Path.replace, []

    def noted(path: Path, target: Path) -> Path:
        seen.append(path.read_bytes()[: len(END)])
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", noted)
    disk.create(NEW, end=END)
    assert seen == [END]


def test_files_without_a_mark_for_their_end_are_new(tmp_path: Path) -> None:
    disk = a_disk(tmp_path)
    disk.retire(OLD)
    disk.create("manifest").close()
    assert disk.spares == 1
    assert disk.size("manifest") == 0


def test_a_mark_stands_behind_what_is_written_as_long_as_old_bytes_do(tmp_path: Path) -> None:
    file = used_again(a_disk(tmp_path))
    written = b""
    for size in (8, 300, 640, 40, 40, 8):
        piece = Random(size).randbytes(size)
        file.appendv([piece[:5], piece[5:]])
        written += piece
        content = (tmp_path / NEW).read_bytes()
        assert file.size == len(written)
        assert content[: len(written)] == written
        # At 988 bytes there is less of the old content than the mark takes.
        assert content[len(written) :][: len(END)] == (END if len(written) < len(CONTENT) else b"")
    assert len(content) == len(written) > len(CONTENT)


def test_a_mark_tells_that_all_parts_before_it_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = used_again(a_disk(tmp_path))
    write, seen = os.pwritev, []

    def in_pieces(opened: int, parts: list[bytes], at: int) -> int:
        seen.append((tmp_path / NEW).read_bytes())
        return write(opened, [b"".join(parts)[:100]], at)

    monkeypatch.setattr(os, "pwritev", in_pieces)
    file.appendv([b"%06d;" % number + b"\xff" for number in range(50)])
    assert [END in content for content in seen] == [True, False, False, False, False]
    assert (file.size, (tmp_path / NEW).read_bytes()[400:416]) == (400, END)


def test_a_copy_by_links_stays_what_it_is(tmp_path: Path) -> None:
    disk = a_disk(tmp_path)
    copy = tmp_path / "copy"
    os.link(tmp_path / OLD, copy)
    used_again(disk).appendv([bytes(500)])
    assert disk.spares == 0
    assert copy.read_bytes() == CONTENT


def test_who_has_a_file_mapped_that_is_cut_back_keeps_what_he_sees(tmp_path: Path) -> None:
    disk = a_disk(tmp_path)
    seen = FileDisk(tmp_path).map(OLD)
    before = inode(tmp_path, OLD)
    disk.cut(OLD, 100)
    assert (inode(tmp_path, OLD) != before, (tmp_path / OLD).read_bytes()) == (True, CONTENT[:100])
    assert bytes(seen) == CONTENT
    assert set(disk.names()) == {"lock", OLD}
    del seen
    now = inode(tmp_path, OLD)
    disk.cut(OLD, 50)
    assert (inode(tmp_path, OLD), (tmp_path / OLD).read_bytes()) == (now, CONTENT[:50])


def test_what_an_append_left_behind_is_marked_off_where_it_is_mapped(tmp_path: Path) -> None:
    disk = FileDisk.locked(tmp_path)
    file = disk.create(NEW, end=END)
    file.appendv([CONTENT])
    seen = FileDisk(tmp_path).map(NEW)
    file.truncate(400)
    assert file.size == 400
    assert bytes(seen) == CONTENT[:400] + END + CONTENT[400 + len(END) :]
    file.appendv([b"x" * 8])
    assert bytes(seen)[400:424] == b"x" * 8 + END
    del seen
    file.truncate(400)
    assert (tmp_path / NEW).read_bytes() == CONTENT[:400]


def test_a_file_that_is_mapped_is_not_used_again(tmp_path: Path) -> None:
    disk = a_disk(tmp_path)
    part = FileDisk(tmp_path).map(OLD)[100:200]
    used_again(disk).appendv([bytes(500)])
    assert disk.spares == 0
    assert part == CONTENT[100:200]
    assert (tmp_path / NEW).read_bytes() == bytes(500)


def test_a_file_that_is_not_mapped_any_more_is_used_again(tmp_path: Path) -> None:
    disk = a_disk(tmp_path)
    data = FileDisk(tmp_path).map(OLD, 8, 16)
    assert data == CONTENT[8:16]
    del data
    disk.retire(OLD)
    assert disk.spares == 1


def test_a_file_that_another_process_has_mapped_is_not_used_again(tmp_path: Path) -> None:
    disk = a_disk(tmp_path)
    script = (
        "import sys; from pathlib import Path; from intergroup_core.runtime.disk import FileDisk\n"
        f"data = FileDisk(Path(sys.argv[1])).map({OLD!r}); print('mapped', flush=True); sys.stdin.readline()\n"
        "print(bytes(data).hex())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "mapped\n"
        used_again(disk).appendv([bytes(500)])
        left, _ = reader.communicate("\n")
    assert left.strip() == CONTENT.hex()


@pytest.mark.parametrize("overtaken", ["retired", "used again", "unlinked", "another"])
def test_who_opens_a_file_just_before_it_is_retired_finds_it_gone(
    overtaken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = a_disk(tmp_path)
    lock = fcntl.flock

    def late(opened: int, operation: int) -> None:
        if operation == fcntl.LOCK_SH:
            match overtaken:
                case "retired":
                    disk.retire(OLD)
                case "used again":
                    used_again(disk).appendv([b"new"])
                case "another":
                    disk.retire(OLD)
                    disk.create(OLD).appendv([b"of the same name"])
                case _:
                    disk.remove(OLD)
        lock(opened, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(LogError, match=rf"cannot read .*{OLD}: No such file or directory"):
        disk.map(OLD)


def test_who_locks_a_file_just_before_it_is_retired_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = a_disk(tmp_path)
    stat = os.fstat

    def late(opened: int) -> os.stat_result:
        monkeypatch.setattr(os, "fstat", stat)
        found = stat(opened)
        used_again(disk).appendv([bytes(500)])
        return found

    monkeypatch.setattr(os, "fstat", late)
    # The name was looked up first.
    assert FileDisk(tmp_path).map(OLD) == CONTENT


def test_readers_never_see_a_file_change(tmp_path: Path) -> None:
    """A segment holds nothing but its number, again and again."""
    disk, done, wrong = FileDisk.locked(tmp_path), threading.Event(), []
    counts = {"mapped": 0, "used again": 0}

    def read() -> None:
        maps: dict[str, memoryview] = {}
        while not done.is_set():
            for name in sorted(disk.names())[-3:]:
                if name.endswith(".segment"):
                    try:
                        maps[name] = disk.map(name)
                    except LogError:
                        continue  # it is gone
                    counts["mapped"] += 1
            for name, data in maps.items():
                number = int(name[:16], 16).to_bytes(8, "little")
                content = bytes(data).partition(END)[0]
                if content != number * (len(content) // 8):
                    wrong.append(name)
            if len(maps) > 5:
                maps.clear()

    def name_of(number: int) -> str:
        return f"{number:016x}.segment"

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(1, 600):
        counts["used again"] += disk.spares
        file = disk.create(name_of(number), end=END)
        for _ in range(1 + number % 5):
            file.appendv([number.to_bytes(8, "little") * 200])
        file.close()
        if number > 2:
            disk.retire(name_of(number - 2))
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert min(counts.values()) > 20


def test_old_bytes_are_cut_off_when_a_file_is_closed(tmp_path: Path) -> None:
    file = used_again(a_disk(tmp_path))
    file.appendv([b"12345678"])
    file.close()
    assert (tmp_path / NEW).read_bytes() == b"12345678"


def test_what_somebody_has_mapped_is_not_cut_off(tmp_path: Path) -> None:
    disk = a_disk(tmp_path)
    file = used_again(disk)
    file.appendv([b"12345678"])
    data = disk.map(NEW)
    file.close()
    assert disk.size(NEW) == len(data) == len(CONTENT)
    assert data[:24] == b"12345678" + END
    assert data[24:] == CONTENT[24:]


def test_a_file_that_is_cut_back_has_no_old_bytes(tmp_path: Path) -> None:
    file = used_again(a_disk(tmp_path))
    file.appendv([bytes(80)])
    file.truncate(40)
    assert (tmp_path / NEW).read_bytes() == bytes(40)
    file.appendv([bytes(8)])
    assert (file.size, (tmp_path / NEW).read_bytes()) == (48, bytes(48))


def test_so_many_files_wait_to_be_used_again_and_not_for_ever(tmp_path: Path) -> None:
    disk = FileDisk.locked(tmp_path)
    names = [f"{number:016x}.segment" for number in range(MAX_SPARES + 2)]
    for name in names:
        disk.create(name).appendv([b"something"])
    for name in names:
        disk.retire(name)
    assert disk.spares == MAX_SPARES
    assert set(disk.names()) == {"lock", *(f"{name}.tmp" for name in names[:MAX_SPARES])}
    disk.drop_spares()
    assert (disk.spares, disk.names()) == (0, ["lock"])
    disk.create(OLD).close()
    disk.retire(OLD)
    disk.close()
    assert disk.names() == ["lock"]


def test_what_cannot_be_used_again_is_made_new(tmp_path: Path) -> None:
    disk = a_disk(tmp_path)
    disk.retire(OLD)
    (tmp_path / f"{OLD}.tmp").unlink()
    file = disk.create(NEW, end=END)
    assert (file.size, disk.size(NEW), disk.spares) == (0, 0, 0)


def test_where_there_are_no_locks_files_are_read_and_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = a_disk(tmp_path)

    def refuse(opened: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    data = disk.map(OLD)
    disk.retire(OLD)
    assert (disk.spares, disk.names()) == (0, ["lock"])
    assert data == CONTENT


def test_blocks_are_reserved_only_behind_what_a_file_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(reservation, "_reserve", lambda opened, offset, length: asked.append(offset) or True)
    disk = FileDisk.locked(tmp_path)
    old = disk.create(OLD)
    old.truncate(2 * FAST_BYTES)
    old.close()
    file = used_again(disk)
    piece = bytes(FAST_BYTES // 2)
    for _ in range(4):
        file.appendv([piece])
        assert disk.size(NEW) == 2 * FAST_BYTES
    assert asked == []
    file.appendv([piece])
    assert asked == [2 * FAST_BYTES]
    disk.close()
