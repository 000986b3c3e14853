"""A directory of real files as the disk of a log.

The file of a segment that was removed is used again for one that begins later: its pages are in memory and its blocks
allocated. Those who read map the files, in any process, and must never see them change. They agree by locks (flock):

- who maps a segment locks it, shared, then looks whether its name still leads to this file, and maps it only then. The
  map holds the lock, as Python's has a file descriptor of its own, and so has who looks at a part of it;
- who retires it locks it alone, without waiting, and gives it another name meanwhile; where that is refused it is
  unlinked instead. Nothing else takes a segment's name away but an unlink and the copy that a recovery puts in the
  place of a file that is mapped; neither changes a byte of it.

So of a reader and the one who retires, one has the lock first. If it is the reader, the file stays what it is for as
long as the map is there. If it is the other one, the name leads elsewhere by the time the reader looks, to nothing or
to another file, and nothing was read: for this reader the file is gone. So nobody maps it any more once it was set
aside, and it needs no second lock when it is used again. Whoever finds it by its new name sees that it is empty, as
the mark for its end stands at its beginning before it has that name.

A file is cut with the same lock, and where nobody has it mapped: a process that looks at what is behind the end of a
file is killed. For that moment readers wait. Old bytes behind the end are cut off so when the file is closed.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from intergroup_core.errors import ConfigError, DiskFull, LogError
from intergroup_core.log.manifest import SEGMENT_SUFFIX, TEMPORARY_SUFFIX
from intergroup_core.runtime.reservation import Reservation

LOCK = "lock"
PRIVATE_DIRECTORY, _PRIVATE_FILE = 0o700, 0o600
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_MOST_PARTS = 1_024
"""Buffers that one call of the kernel takes (IOV_MAX)."""
MAX_SPARES = 1
"""Files that wait to be used again; what is retired beyond that is unlinked."""


class FileDisk:
    """One directory; `locked` for the one process that writes there."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = -1
        self._spares: deque[Path] = deque()
        """Put here by the thread that removes, taken by the one that appends."""

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
        """Of all files, some of which may come or go meanwhile; of those that grow it tells only how long they are."""
        return sum(entry.st_size for entry in self._entries())

    def last_written(self) -> int:
        """When something was written to any of the files, in nanoseconds, to a tick of the kernel's."""
        return max((entry.st_mtime_ns for entry in self._entries()), default=0)

    def _entries(self) -> Iterator[os.stat_result]:
        with explained("list", self._directory):
            for entry in os.scandir(self._directory):
                with suppress(FileNotFoundError):
                    yield entry.stat()

    def size(self, name: str) -> int:
        with explained("look at", self._directory / name):
            return (self._directory / name).stat().st_size

    def create(self, name: str, *, end: bytes = b"") -> GrowingFile:
        path = self._directory / name
        with suppress(IndexError):
            if end and (file := self._made_of(self._spares.popleft(), path, end)) is not None:
                return file
        return GrowingFile(path, os.O_CREAT | os.O_TRUNC, end)

    @staticmethod
    def _made_of(spare: Path, path: Path, end: bytes) -> GrowingFile | None:
        """None where that fails, for whatever reason: then a new file is made."""
        with suppress(LogError, OSError):
            file = GrowingFile(spare, 0, end)
            try:
                file.appendv([])  # the mark, before anybody can find the file
                spare.replace(path)
            except BaseException:
                file.close()
                raise
            return file
        with suppress(OSError):
            spare.unlink()
        return None

    def reopen(self, name: str) -> GrowingFile:
        return GrowingFile(self._directory / name, 0)

    def cut(self, name: str, size: int) -> None:
        path = self._directory / name
        file = self.reopen(name)
        try:
            with explained("cut back", path):
                if not file.cut(size):
                    self._replace_by_beginning(path, size)
            file.sync()
        finally:
            file.close()

    def _replace_by_beginning(self, path: Path, size: int) -> None:
        """Of a file that is mapped: those who have it keep what they see."""
        copy = path.with_name(path.name + TEMPORARY_SUFFIX)
        made = os.open(copy, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _PRIVATE_FILE)
        try:
            with path.open("rb") as whole:
                at = 0
                while at < size:
                    at += os.sendfile(made, whole.fileno(), at, size - at)
            os.fsync(made)
        finally:
            os.close(made)
        copy.replace(path)
        self.sync_names()

    def map(self, name: str, start: int = 0, stop: int | None = None) -> memoryview:
        path = self._directory / name
        aligned = start // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        with explained("read", path):
            opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if name.endswith(SEGMENT_SUFFIX):
                    _hold(opened, path)
                stop = os.fstat(opened).st_size if stop is None else stop
                if start >= stop:
                    return memoryview(b"")
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

    def retire(self, name: str) -> None:
        if len(self._spares) >= MAX_SPARES or not self._set_aside(self._directory / name):
            self.remove(name)

    def _set_aside(self, path: Path) -> bool:
        spare = path.with_name(path.name + TEMPORARY_SUFFIX)
        try:
            opened = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(opened).st_nlink != 1:
                    return False  # a copy by links, which is to stay as it is
                path.replace(spare)
            finally:
                os.close(opened)
        except OSError:  # somebody has it mapped, or this file system has no such locks
            return False
        self._spares.append(spare)
        return True

    @property
    def spares(self) -> int:
        return len(self._spares)

    def drop_spares(self) -> None:
        with suppress(IndexError):
            while True:
                spare = self._spares.popleft()
                with suppress(OSError):  # it is removed when the log is opened again
                    spare.unlink()

    def sync_names(self) -> None:
        with explained("sync", self._directory):
            opened = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)

    def close(self) -> None:
        self.drop_spares()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class GrowingFile:
    """A file that grows at its end; with a mark for that, it begins in front of what the file has now."""

    def __init__(self, path: Path, flags: int, end: bytes = b"") -> None:
        self._path = path
        self._end = end
        with explained("open", path):
            self._opened = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, _PRIVATE_FILE)
            self._length = os.fstat(self._opened).st_size
            """Of the file, with what is left of old bytes behind its end."""
        self._size = 0 if end else self._length
        self._reservation = Reservation(self._opened, self._length if end else 0)

    @property
    def size(self) -> int:
        return self._size

    def appendv(self, parts: Sequence[bytes | memoryview]) -> None:
        stop = self._size + sum(map(len, parts))
        if stop < self._length:
            parts = [*parts, self._end]  # behind all of it, so that it says that all of it is there
        try:
            for start in range(0, len(parts), _MOST_PARTS):
                self._write(parts[start : start + _MOST_PARTS])
        except OSError as error:
            raise _explanation("write", self._path, error) from error
        self._size = stop

    def _write(self, parts: Sequence[bytes | memoryview]) -> None:
        wanted = sum(map(len, parts))
        self._reservation.ahead_of(self._size, wanted)
        written = self._take(parts)
        while written < wanted:  # the kernel may take less at a time, as it does shortly before the disk is full
            written += self._take(_after(parts, written))

    def _take(self, parts: Sequence[bytes | memoryview]) -> int:
        taken = os.pwritev(self._opened, parts, self._size)
        self._size += taken
        self._length = max(self._length, self._size)
        return taken

    def truncate(self, size: int) -> None:
        with explained("cut back", self._path):
            if not self.cut(size):
                os.pwrite(self._opened, self._end[: self._length - size], size)
                self._size = size

    def cut(self, size: int) -> bool:
        """Shorten the file, unless somebody has it mapped: who looks at what is gone is killed."""
        if self._length > size:
            try:
                fcntl.flock(self._opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:
                pass  # no such locks here, so there is nobody to ask
            os.ftruncate(self._opened, size)
            with suppress(OSError):
                fcntl.flock(self._opened, fcntl.LOCK_UN)
        self._size = self._length = size
        return True

    def sync(self) -> None:
        with explained("sync", self._path):
            os.fdatasync(self._opened)

    def close(self) -> None:
        if self._opened >= 0:
            with suppress(OSError):  # what is left there is behind the mark
                if self.cut(self._size):
                    self._reservation.release(self._size)
            os.close(self._opened)
            self._opened = -1


def _hold(opened: int, path: Path) -> None:
    """Keep a segment from being used again as long as it is mapped; FileNotFoundError where it is gone."""
    with suppress(OSError):  # without such locks nobody uses it again
        fcntl.flock(opened, fcntl.LOCK_SH)
    there, this = path.stat(), os.fstat(opened)
    if (there.st_dev, there.st_ino) != (this.st_dev, this.st_ino):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


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
