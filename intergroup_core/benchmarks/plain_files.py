"""What a log costs at the least: the same bytes, in files of the same size, and nothing else."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

from intergroup_core.runtime.inbox import Event
from intergroup_core.wire.chunk import Chunk


class PlainFiles:
    """One write for each chunk; the oldest files go when there are too many bytes."""

    def __init__(self, directory: Path, name: str, file_bytes: int, retained_bytes: int) -> None:
        self._directory = directory
        self._name = name
        self._file_bytes = file_bytes
        self._most_files = max(1, retained_bytes // file_bytes)
        self._paths: deque[Path] = deque()
        self._opened = -1
        self._offset = 0
        self._made = 0

    def add(self, event: Event) -> None:
        if not isinstance(event, Chunk):
            return
        if self._opened < 0 or self._offset >= self._file_bytes:
            self._begin()
        parts = [run.frames.reshape(-1).data.cast("B") for run in (*event.head, event.run)]
        written = os.pwritev(self._opened, parts, self._offset)
        assert written == sum(map(len, parts)), "a plain write that was cut short measures nothing"
        self._offset += written

    def _begin(self) -> None:
        if self._opened >= 0:
            os.close(self._opened)
        path = self._directory / f"{self._name}-{self._made}"
        self._opened, self._offset = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), 0
        self._made += 1
        self._paths.append(path)
        if len(self._paths) > self._most_files:
            self._paths.popleft().unlink()
