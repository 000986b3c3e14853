"""A directory of real files as the disk of a log."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from intergroup_core.errors import ConfigError, DiskFull, LogError
from intergroup_core.runtime.reservation import Reservation

LOCK = "lock"
PRIVATE_DIRECTORY, _PRIVATE_FILE = 0o700, 0o600
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_MOST_PARTS = 1_024
"""Buffers that one call of the kernel takes (IOV_MAX)."""


class FileDisk:
    """One directory; `locked` for the one process that writes there."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = -1

    @classmethod
    def locked(cls, directory: Path) -> FileDisk:
        """For writing: made on first use, for its owner only; refused while another process has it."""
        disk = cls(directory)
        with explained("make", directory):
            directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
            lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE_FILE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise ConfigError(f"another process writes the log in {directory}; stop it first") from None
        disk._lock = lock
        return disk

    @property
    def where(self) -> str:
        return str(self._directory)

    def names(self) -> list[str]:
        with explained("list", self._directory):
            return [entry.name for entry in os.scandir(self._directory) if entry.is_file()]

    def bytes_used(self) -> int:
        """Of all files, some of which may come or go meanwhile."""
        used = 0
        with explained("list", self._directory):
            for entry in os.scandir(self._directory):
                with suppress(FileNotFoundError):
                    used += entry.stat().st_size
        return used

    def size(self, name: str) -> int:
        with explained("look at", self._directory / name):
            return (self._directory / name).stat().st_size

    def create(self, name: str) -> GrowingFile:
        return GrowingFile(self._directory / name, os.O_CREAT | os.O_TRUNC)

    def reopen(self, name: str) -> GrowingFile:
        return GrowingFile(self._directory / name, 0)

    def map(self, name: str, start: int, stop: int) -> memoryview:
        path = self._directory / name
        if start >= stop:
            return memoryview(b"")
        aligned = start // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        with explained("read", path):
            opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                mapped = mmap.mmap(opened, stop - aligned, access=mmap.ACCESS_READ, offset=aligned)
            except ValueError:
                raise LogError(f"{path} is shorter than {stop} bytes; look at it with intergroup log verify") from None
            finally:
                os.close(opened)
        return memoryview(mapped)[start - aligned :]

    def rename(self, old: str, new: str) -> None:
        with explained("rename", self._directory / old):
            (self._directory / old).replace(self._directory / new)

    def remove(self, name: str) -> None:
        with explained("remove", self._directory / name):
            (self._directory / name).unlink(missing_ok=True)

    def sync_names(self) -> None:
        with explained("sync", self._directory):
            opened = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class GrowingFile:
    """A file that grows at its end."""

    def __init__(self, path: Path, flags: int) -> None:
        self._path = path
        with explained("open", path):
            self._opened = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, _PRIVATE_FILE)
            self._size = os.fstat(self._opened).st_size
        self._reservation = Reservation(self._opened)

    @property
    def size(self) -> int:
        return self._size

    def appendv(self, parts: Sequence[bytes | memoryview]) -> None:
        try:
            for start in range(0, len(parts), _MOST_PARTS):
                self._write(parts[start : start + _MOST_PARTS])
        except OSError as error:
            raise _explanation("write", self._path, error) from error

    def _write(self, parts: Sequence[bytes | memoryview]) -> None:
        wanted = sum(map(len, parts))
        self._reservation.ahead_of(self._size, wanted)
        written = os.pwritev(self._opened, parts, self._size)
        self._size += written
        while written < wanted:  # the kernel may take less at a time, as it does shortly before the disk is full
            rest = _after(parts, written)
            taken = os.pwritev(self._opened, rest, self._size)
            self._size += taken
            written += taken

    def truncate(self, size: int) -> None:
        with explained("cut back", self._path):
            os.ftruncate(self._opened, size)
        self._size = size

    def sync(self) -> None:
        with explained("sync", self._path):
            os.fdatasync(self._opened)

    def close(self) -> None:
        if self._opened >= 0:
            self._reservation.release(self._size)
            os.close(self._opened)
            self._opened = -1


def _after(parts: Sequence[bytes | memoryview], skipped: int) -> list[memoryview]:
    rest = []
    for part in parts:
        view = memoryview(part)
        if skipped < len(view):
            rest.append(view[skipped:])
        skipped = max(0, skipped - len(view))
    return rest


@contextmanager
def explained(doing: str, path: Path) -> Iterator[None]:
    """Say of an error what could not be done, to which file, and what to do about it."""
    try:
        yield
    except OSError as error:
        raise _explanation(doing, path, error) from error


def _explanation(doing: str, path: Path, error: OSError) -> LogError:
    if error.errno in _FULL:
        return DiskFull(f"cannot {doing} {path}: {error.strerror}; make room")
    return LogError(f"cannot {doing} {path}: {error.strerror}; make it accessible and try again")
