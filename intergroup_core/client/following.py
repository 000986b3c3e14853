"""Reads a stream while an agent appends to it: what its older logs hold first, then as far as the agent says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from intergroup_core.client.channel import Kind
from intergroup_core.effects import Gap, Install
from intergroup_core.errors import ChannelBroken
from intergroup_core.ids import MemberId, ViewId
from intergroup_core.log.cut import Cut
from intergroup_core.log.cut_codec import cut_of_list, listed_cut
from intergroup_core.log.entries import Entry
from intergroup_core.log.entry import Kind as EntryKind
from intergroup_core.log.reader import LogReader, Piece, Place
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.wire.chunk import Chunk

Delivered = Chunk | Install | Gap

EARLIEST = "earliest"
SKIPPED = "slow reader"
"""The reason of a gap that a reader brought about itself."""


class Follower:
    """What is in a stream from some place on, in order; the view in force comes first.

    Whoever has it asks the agent its `question` and tells it the answer, until there is something to take.
    """

    def __init__(self, number: int, path: str, entry: int, start: Cut | str | None = None) -> None:
        self._number = number
        self._path = path
        self._live = LogReader(FileDisk(Path(path)))
        self.entry = entry
        """Everything of the log that grows below it was taken."""
        self._stop = entry
        self._cut: Cut | str | None = start
        """Behind which the older logs are still to be read; None where the log that grows is read."""
        self._pieces: Iterator[Piece] = iter(())
        self._first: list[Delivered] = []
        self._shown: ViewId | None = None
        if start is None:
            self._show_view(self._live.install_before(entry))

    @property
    def has_more(self) -> bool:
        """Whether something may be there to take."""
        return bool(self._first) or self._reached is not None or (self._cut is None and self.entry < self._stop)

    _reached: Cut | None = None
    """Where the pieces at hand end."""

    def question(self) -> tuple[Kind, list[Any]]:
        """What to ask the agent."""
        match self._cut:
            case None:
                return Kind.NEXT, [self._number, self.entry]
            case str():
                return Kind.HISTORY, [self._number, self._cut]
            case cut:
                return Kind.HISTORY, [self._number, listed_cut(cut)]

    def told(self, answer: Mapping[str, Any]) -> None:
        """The agent's answer."""
        match answer:
            case {"path": str(path), "start": start, "stop": stop, "reached": reached}:
                self._go_through(LogReader(FileDisk(Path(path))), _bound(start), _bound(stop), cut_of_list(reached))
            case {"live": int(entry)}:
                self._cut = None
                self.entry = self._stop = entry
                self._live.refresh()
                self._show_view(self._live.install_before(entry))
            case {"stop": int(stop), "skipped": bool(skipped), "entry": int(entry), "id": str(member)}:
                if skipped:
                    self._first.append(Gap(SKIPPED, MemberId(int(member, 16))))
                    self.entry = entry
                    self._refresh(entry)
                    self._shown = None
                    self._show_view(self._live.install_before(entry))
                self.upto(stop)
            case _:
                raise ChannelBroken(f"the agent's answer is not understood: {answer!r:.200}")

    def upto(self, stop: int) -> None:
        """So far the log that grows can be read."""
        self._stop = max(self._stop, stop)

    def take(self, most_bytes: int) -> list[Delivered]:
        """What is there, about so many bytes of it."""
        taken, self._first = self._first, []
        if self._reached is not None:
            self._take_pieces(taken, most_bytes)
        elif self._cut is None and self.entry < self._stop:
            self._take_entries(taken, most_bytes)
        return taken

    def _go_through(self, reader: LogReader, start: Cut | Place, stop: Cut | Place, reached: Cut) -> None:
        self._show_view(reader.install_at(start))
        self._pieces = reader.pieces(start, stop)
        self._reached = reached

    def _take_pieces(self, taken: list[Delivered], most_bytes: int) -> None:
        size = 0
        for piece in self._pieces:
            size += piece.entry.header.size
            event = piece.chunk() if piece.entry.kind is EntryKind.DATA else _event(piece.entry)
            self._show(event, taken)
            if size >= most_bytes:
                return
        self._cut, self._reached = self._reached, None

    def _take_entries(self, taken: list[Delivered], most_bytes: int) -> None:
        self._refresh(self._stop)
        size = 0
        for entry in self._live.entries(self.entry, self._stop):
            self.entry = entry.header.entry + 1
            size += entry.header.size
            self._show(_event(entry), taken)
            if size >= most_bytes:
                break

    def _refresh(self, stop: int) -> None:
        if self._live.stop < stop:
            self._live.refresh()

    def _show_view(self, install: Install | None) -> None:
        if install is not None:
            self._show(install, self._first)

    def _show(self, event: Delivered, shown: list[Delivered]) -> None:
        """A view that a log only carries, or that is in two of them, is shown once."""
        if isinstance(event, Install):
            if event.view.id == self._shown:
                return
            self._shown = event.view.id
        shown.append(event)


def _event(entry: Entry) -> Delivered:
    match entry.kind:
        case EntryKind.DATA:
            return entry.chunk()
        case EntryKind.VIEW:
            return entry.install()
        case EntryKind.GAP:
            return entry.gap()


def listed_bound(bound: Cut | Place) -> list[Any]:
    """An end of what is to be read of one log."""
    return ["place", bound.entry, bound.message] if isinstance(bound, Place) else listed_cut(bound)


def _bound(value: Any) -> Cut | Place:
    match value:
        case ["place", int(entry), int(message)]:
            return Place(entry, message)
    return cut_of_list(value)
