"""A member's log as what it can still repeat after its buffers dropped it."""

from __future__ import annotations

import logging
from pathlib import Path

from intergroup_core.errors import LogError
from intergroup_core.ids import MemberId
from intergroup_core.log.entry import Kind
from intergroup_core.log.reader import LogReader
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.wire.run import Run

_log = logging.getLogger(__name__)

MAX_FRAMES = 1_024
"""Given at a time: who lacks more asks again."""
MAX_ENTRIES = 4_096
"""Looked at in one go, of other senders too: the protocol waits meanwhile."""


class LogArchive:
    """Reads the log that the member itself appends to; frames stay where they are, in the mapped file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._reader: LogReader | None = None

    def held(self, source: MemberId, first: int, last: int) -> list[Run]:
        """Frames of a source between two seqs, as many from the first on as a look finds."""
        try:
            return self._found(source, first, min(last, first + MAX_FRAMES - 1))
        except LogError as error:
            _log.warning("the log cannot repeat what was asked for: %s", error)
            return []

    def _found(self, source: MemberId, first: int, last: int) -> list[Run]:
        reader = self._fresh()
        begin = reader.place_of_message(source, first).entry
        found: list[Run] = []
        for entry in reader.entries(begin, min(reader.stop, begin + MAX_ENTRIES)):
            header = entry.header
            if header.kind != Kind.DATA or header.source != source:
                continue
            if header.first_seq > last:
                break
            chunk = entry.chunk()
            for run in (*chunk.head, chunk.run):
                start, stop = max(first, run.seq) - run.seq, min(last, run.last_seq) - run.seq + 1
                if start < stop:
                    found.append(run.slice(start, stop))
        return found

    def _fresh(self) -> LogReader:
        if self._reader is None:
            self._reader = LogReader(FileDisk(self._directory))
        else:
            self._reader.refresh()
        return self._reader
