"""The segment that grows: its file, what waits to be written there, and its index so far."""

from __future__ import annotations

from intergroup_core.errors import DiskFull, LogError
from intergroup_core.ids import ViewId
from intergroup_core.log.entry_maker import MadeEntry, Part
from intergroup_core.log.index import IndexBuilder
from intergroup_core.ports import LogFile

PENDING_BYTES = 1 << 20
"""At `memory`, entries wait in the process until there are so many bytes of them."""


class GrowingSegment:
    """Entries are put at its end; one that cannot be written whole leaves nothing behind."""

    def __init__(self, file: LogFile, builder: IndexBuilder, *, where: str, waits: bool) -> None:
        self.file = file
        self.builder = builder
        self.synced_words = 0
        """Words of it that are durable."""
        self.written = builder.stop
        """All entries below this number are with the kernel."""
        self.broken = ""
        """Why nothing can be put here any more, if so."""
        self._where = where
        self._waits = waits
        self._pending: list[Part] = []
        self._pending_bytes = 0

    def put(self, entry: MadeEntry, view: ViewId | None = None) -> None:
        header, parts = entry
        size = header.size
        if self._waits:
            if self._pending_bytes + size > PENDING_BYTES:
                self.write_out()
            self._pending += parts
            self._pending_bytes += size
        else:
            self._write(parts)
        self.builder.add(header, self.builder.size, view)
        if not self._pending:
            self.written = self.builder.stop

    def write_out(self) -> None:
        """What waits, in one go."""
        if self._pending:
            self._write(self._pending)
            self._pending = []
            self._pending_bytes = 0
            self.written = self.builder.stop

    def _write(self, parts: list[Part]) -> None:
        whole = self.file.size
        try:
            self.file.appendv(parts)
        except LogError as error:
            # What was written of it must not be taken for an entry, nor stand before the next one.
            try:
                self.file.truncate(whole)
            except LogError as worse:
                self.broken = f"{worse}; the log must be opened again"
            if isinstance(error, DiskFull):
                raise DiskFull(f"no room to append to {self._where}; make room, and appending goes on") from error
            raise
        except BaseException:
            # A signal in the midst of it: how much was written is for recovery to find out.
            self.broken = f"an append to {self._where} was interrupted; open the log again"
            raise
