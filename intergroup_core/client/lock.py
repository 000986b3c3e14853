"""One agent at a site: whoever holds the lock is it."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from intergroup_core.errors import ConfigError

MAX_PID_DIGITS = 20


class SiteLock:
    """A file locked by the process that has it open: the lock goes with that process, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    @property
    def held(self) -> bool:
        return self._file >= 0

    def take(self, *, wait: bool = False) -> bool:
        """Whether this process has it now; another one may be waited for."""
        if self.held:
            return True
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            opened = os.open(self._path, flags, stat.S_IRUSR | stat.S_IWUSR)
        except OSError as error:
            raise ConfigError(f"cannot lock {self._path}: {error.strerror}; make its directory writable") from error
        try:
            fcntl.flock(opened, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(opened)
            return False
        except BaseException:
            os.close(opened)
            raise
        self._file = opened
        return True

    def sign(self) -> None:
        """Leave this process's number there, for people and for `holder`."""
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def holder(self) -> int | None:
        """The number of the process that signed it last; it may have ended since."""
        try:
            with self._path.open("rb") as file:
                text = file.read(MAX_PID_DIGITS).strip()
        except OSError:
            return None
        return int(text) if text.isdigit() else None

    def release(self) -> None:
        if self.held:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        self.take(wait=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
