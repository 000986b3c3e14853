"""Reads a log while an agent appends to it: as far as the agent says that it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intergroup_core.effects import Gap, Install
from intergroup_core.ids import MemberId
from intergroup_core.log.entries import Entry
from intergroup_core.log.entry import Kind
from intergroup_core.log.reader import LogReader
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.wire.chunk import Chunk

Delivered = Chunk | Install | Gap

SKIPPED = "slow reader"
"""The reason of a gap that a reader brought about itself."""


class Follower:
    """What is in a log from an entry on, in order; the view in force comes first."""

    def __init__(self, path: str, entry: int) -> None:
        self._reader = LogReader(FileDisk(Path(path)))
        self.entry = entry
        """Everything below was taken."""
        self._stop = entry
        self._first: list[Delivered] = []
        self._begin()

    @property
    def has_more(self) -> bool:
        return bool(self._first) or self.entry < self._stop

    def told(self, answer: Mapping[str, Any]) -> None:
        """The agent said how far the log is, and whether this reader is to skip to there."""
        if answer["skipped"]:
            self._first.append(Gap(SKIPPED, MemberId(int(answer["id"], 16))))
            self.entry = int(answer["entry"])
            self._begin()
        self.upto(int(answer["stop"]))

    def upto(self, stop: int) -> None:
        """So far the log can be read."""
        self._stop = max(self._stop, stop)

    def take(self, most_bytes: int) -> list[Delivered]:
        """What is there, about so many bytes of it, at least one event where there is any."""
        taken, self._first = self._first, []
        if self.entry >= self._stop:
            return taken
        if self._reader.stop < self._stop:
            self._reader.refresh()
        size = 0
        for entry in self._reader.entries(self.entry, self._stop):
            self.entry = entry.header.entry + 1
            size += entry.header.size
            event = _event(entry)
            if event is not None:
                taken.append(event)
            if size >= most_bytes:
                break
        return taken

    def _begin(self) -> None:
        if self._reader.stop < self.entry:
            self._reader.refresh()
        install = self._reader.install_before(self.entry)
        if install is not None:
            self._first.append(install)


def _event(entry: Entry) -> Delivered | None:
    match entry.kind:
        case Kind.DATA:
            return entry.chunk()
        case Kind.VIEW:
            return None if entry.header.carried else entry.install()
        case Kind.GAP:
            return entry.gap()
