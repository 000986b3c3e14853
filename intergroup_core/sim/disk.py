"""A disk that keeps what was synced and, when it crashes, any part of the rest: lost, torn, in any order.

Sectors are written whole. Of a file that was used before, one that was not synced since may have what it had then.
Names are journaled: of those not synced a crash keeps the first few. It fills up, and bits of it flip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from intergroup_core.errors import DiskFull, LogError
from intergroup_core.log.manifest import TEMPORARY_SUFFIX

SECTOR_BYTES = 64
"""Small, so that small logs are torn in many places."""


class Crashed(BaseException):
    """The power went; like KeyboardInterrupt it passes everything that handles errors."""


@dataclass(slots=True)
class _Content:
    """A file without a name: as it reads, as it was at the last sync, and where it changed since."""

    now: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    cut_to: int | None = None
    """The shortest it was since the last sync, where that is less than what was synced."""
    dirty: set[int] = field(default_factory=set)
    """Sectors written since."""
    earlier: list[tuple[bytes, set[int]]] = field(default_factory=list)
    """As it read when it was set aside, and its dirty sectors then: each time since the last sync."""

    def set_aside(self) -> None:
        self.earlier.append((bytes(self.now), set(self.dirty)))

    def after_crash(self, rng: Random) -> _Content:
        left = bytearray(self.synced)
        if self.cut_to is not None and rng.random() < 0.5:
            del left[self.cut_to :]
        for content, dirty in [*self.earlier, (self.now, self.dirty)]:
            for sector in _some(sorted(dirty), rng):
                start = sector * SECTOR_BYTES
                piece = content[start : start + SECTOR_BYTES]
                if len(left) < start + len(piece):
                    left.extend(bytes(start + len(piece) - len(left)))
                left[start : start + len(piece)] = piece
        return _Content(now=left, synced=bytes(left))

    def was_synced(self) -> None:
        self.synced, self.cut_to = bytes(self.now), None
        self.dirty.clear()
        self.earlier.clear()


def _some(sectors: list[int], rng: Random) -> list[int]:
    """The first few, or any."""
    if rng.random() < 0.5:
        return sectors[: rng.randint(0, len(sectors))]
    share = rng.random()
    return [sector for sector in sectors if rng.random() < share]


class SimDisk:
    """One directory of a disk; `capacity` bytes fit on it."""

    def __init__(self, *, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.operations = 0
        """Counted, so that a crash can be planned at any of them."""
        self.crash_at: int | None = None
        self._files: dict[str, _Content] = {}
        self._synced_files: dict[str, _Content] = {}
        self._name_changes: list[dict[str, _Content]] = []
        self.mapped = False
        """Whether somebody looks at all files, so that none is used again, or cut behind its end."""
        self.reused = 0
        """Files made of others."""
        self._spares: list[str] = []

    @property
    def where(self) -> str:
        return "sim"

    def names(self) -> list[str]:
        return list(self._files)

    def size(self, name: str) -> int:
        return len(self._file(name).now)

    def create(self, name: str, *, end: bytes = b"") -> SimFile:
        if end and self._spares:
            spare = self._spares.pop()
            file = SimFile(self, self._file(spare), name, end)
            file.appendv([])
            self.rename(spare, name)
            self.reused += 1
            return file
        self._operate()
        self._rename_to(self._files | {name: _Content()})
        return SimFile(self, self._files[name], name)

    def reopen(self, name: str) -> SimFile:
        return SimFile(self, self._file(name), name)

    def cut(self, name: str, size: int) -> None:
        file = self.reopen(name)
        file.truncate(size)
        file.sync()

    def map(self, name: str, start: int = 0, stop: int | None = None) -> memoryview:
        # A copy: a bytearray that somebody looks into cannot grow.
        return memoryview(bytes(self._file(name).now[start:stop]))

    def rename(self, old: str, new: str) -> None:
        self._operate()
        content = self._file(old)
        self._rename_to({name: kept for name, kept in self._files.items() if name != old} | {new: content})

    def remove(self, name: str) -> None:
        self._operate()
        self._rename_to({kept: content for kept, content in self._files.items() if kept != name})

    def retire(self, name: str) -> None:
        if self._spares or self.mapped:
            self.remove(name)
            return
        self._file(name).set_aside()
        self.rename(name, name + TEMPORARY_SUFFIX)
        self._spares.append(name + TEMPORARY_SUFFIX)

    @property
    def spares(self) -> int:
        return len(self._spares)

    def drop_spares(self) -> None:
        while self._spares:
            self.remove(self._spares.pop())

    def sync_names(self) -> None:
        self._operate()
        self._synced_files = dict(self._files)
        self._name_changes.clear()

    def used(self) -> int:
        return sum(len(content.now) for content in self._files.values())

    def after_crash(self, rng: Random) -> SimDisk:
        """What is found after the power came back."""
        disk = SimDisk(capacity=self.capacity)
        kept = rng.randint(0, len(self._name_changes))
        files = self._name_changes[kept - 1] if kept else self._synced_files
        disk._files = {name: content.after_crash(rng) for name, content in files.items()}
        disk._synced_files = dict(disk._files)
        return disk

    def after_kill(self) -> SimDisk:
        """What is found after the process was killed: the kernel still has everything."""
        disk = SimDisk(capacity=self.capacity)
        disk._files = {
            name: _Content(now=bytearray(content.now), synced=bytes(content.now))
            for name, content in self._files.items()
        }
        disk._synced_files = dict(disk._files)
        return disk

    def flip_bit(self, name: str, offset: int, bit: int) -> None:
        """What decays on a disk: it is read so from now on, after a crash too."""
        content = self._file(name)
        content.now[offset] ^= 1 << bit
        if offset < len(content.synced):
            synced = bytearray(content.synced)
            synced[offset] ^= 1 << bit
            content.synced = bytes(synced)

    def spoil_end(self, name: str, offset: int, rng: Random) -> None:
        """A file that reads otherwise, or not at all, from somewhere on to its end, although it was synced."""
        content = self._file(name)
        length = len(content.now) - offset
        del content.now[offset:]
        match rng.randrange(3):
            case 0:
                content.now += rng.randbytes(length)
            case 1:
                content.now += bytes(length)
            case _:
                content.now += rng.randbytes(rng.randrange(length))
        content.was_synced()

    def _file(self, name: str) -> _Content:
        if name not in self._files:
            raise LogError(f"there is no file {name}; create it first")
        return self._files[name]

    def _rename_to(self, files: dict[str, _Content]) -> None:
        self._files = files
        self._name_changes.append(dict(files))

    def _operate(self) -> None:
        self.operations += 1
        if self.crash_at is not None and self.operations >= self.crash_at:
            raise Crashed


class SimFile:
    """A file of the disk, open."""

    def __init__(self, disk: SimDisk, content: _Content, name: str, end: bytes = b"") -> None:
        self._disk = disk
        self._content = content
        self._name = name
        self._end = end
        self._size = 0 if end else len(content.now)

    @property
    def size(self) -> int:
        return self._size

    def appendv(self, parts: Sequence[bytes | memoryview]) -> None:
        now, start = self._content.now, self._size
        data = b"".join(parts)
        stop = start + len(data)
        if stop < len(now):
            data += self._end
        capacity = self._disk.capacity
        room = len(now) - start + (len(data) if capacity is None else max(0, capacity - self._disk.used()))
        now[start : start + len(data)] = data[:room]
        self._size = min(stop, start + room)
        written = min(len(data), room)
        self._content.dirty.update(range(start // SECTOR_BYTES, -(-(start + written) // SECTOR_BYTES)))
        self._disk._operate()
        if room < len(data):
            raise DiskFull(f"{self._name}: no room; make some")

    def truncate(self, size: int) -> None:
        self._disk._operate()
        self._size = size
        content = self._content
        del content.now[size:]
        content.dirty = {sector for sector in content.dirty if sector * SECTOR_BYTES < size}
        if size < len(content.synced):
            content.cut_to = size if content.cut_to is None else min(size, content.cut_to)

    def sync(self) -> None:
        self._disk._operate()
        self._content.was_synced()

    def close(self) -> None:
        if self._size < len(self._content.now) and not self._disk.mapped:
            self.truncate(self._size)
