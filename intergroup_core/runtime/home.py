"""A site's directory: who it is, and what its members must remember across restarts."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import stat
from os import PathLike
from pathlib import Path

from intergroup_core.errors import ConfigError, StateUnavailable

HOME_VARIABLE = "INTERGROUP_HOME"
MAX_RECORD_BYTES = 1_000_000
"""A larger file is not a record of membership."""

_IDENTITY = "site"
_IDENTITY_DIGITS = 32
_PRIVATE = 0o700


def chosen_home(home: str | PathLike[str] | None) -> Path | None:
    """The directory a caller names, else the environment; without one a site lasts as long as its process."""
    if home is None:
        home = os.environ.get(HOME_VARIABLE) or None
    return Path(home).expanduser() if home is not None else None


class Home:
    """The directory of one site; made on first use, for its owner only."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def identity(self) -> str:
        """The site's random name, the same for ever after the first call."""
        path = self._directory / _IDENTITY
        try:
            self._directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            if not path.exists():
                _create_once(path, secrets.token_hex(_IDENTITY_DIGITS // 2).encode() + b"\n")
            identity = path.read_bytes()[: _IDENTITY_DIGITS + 2].decode(errors="replace").strip()
        except OSError as error:
            raise ConfigError(
                f"cannot keep this site's identity in {path} ({error.strerror}); "
                f"set {HOME_VARIABLE} to a directory that can be written"
            ) from error
        if len(identity) != _IDENTITY_DIGITS or not set(identity) <= set("0123456789abcdef"):
            raise ConfigError(
                f"{path} does not hold a site's identity; restore it, or remove it and this site becomes a new one"
            )
        return identity

    def state_of(self, group: str) -> FileStateStore | None:
        """The memory of this site's member in a group; None while another process has it."""
        name = hashlib.blake2b(group.encode(), digest_size=16).hexdigest()
        directory = self._directory / "membership"
        try:
            directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            return FileStateStore.locked(directory / name)
        except OSError as error:
            raise ConfigError(
                f"cannot keep the membership of group {group} in {directory} ({error.strerror}); "
                f"set {HOME_VARIABLE} to a directory that can be written"
            ) from error


class FileStateStore:
    """One record in one file, replaced whole: a crash leaves the old one or the new one."""

    def __init__(self, path: Path, lock: int) -> None:
        self._path = path
        self._lock = lock

    @classmethod
    def locked(cls, path: Path) -> FileStateStore | None:
        """The store, unless another process has it; its lock goes with the process that holds it."""
        lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, stat.S_IRUSR | stat.S_IWUSR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        except BaseException:
            os.close(lock)
            raise
        return cls(path, lock)

    def load(self) -> bytes | None:
        """What was saved last."""
        try:
            with self._path.open("rb") as file:
                record = file.read(MAX_RECORD_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateUnavailable(f"cannot read {self._path}: {error.strerror}; make it readable") from error
        if len(record) > MAX_RECORD_BYTES:
            raise StateUnavailable(f"{self._path} is not a record of membership; remove it to start without one")
        return record

    def save(self, record: bytes) -> None:
        """Durable once this returns."""
        try:
            replace_durably(self._path, record)
        except OSError as error:
            raise StateUnavailable(
                f"cannot write {self._path} ({error.strerror}), and without it this site could later agree to less "
                "than it promised; make room or make it writable, and join again"
            ) from error

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def replace_durably(path: Path, content: bytes) -> None:
    """Put a whole file in the place of another: a crash leaves the old one or the new one."""
    temporary = _written_beside(path, content)
    temporary.replace(path)
    _sync_directory(path.parent)


def _create_once(path: Path, content: bytes) -> None:
    """Whole or not at all; the first of several processes wins."""
    temporary = _written_beside(path, content)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
    _sync_directory(path.parent)


def _written_beside(path: Path, content: bytes) -> Path:
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb", opener=_private) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _private(path: str, flags: int) -> int:
    """For its owner only, whatever the directory lets others do."""
    return os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR)


def _sync_directory(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
