"""Whole messages out of a source's consecutive frames."""

from __future__ import annotations

from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.run import Run


class Assembly:
    """Holds the frames that begin a message until its last one is there."""

    __slots__ = ("partial",)

    def __init__(self) -> None:
        self.partial: list[Run] = []

    @property
    def start_timestamp(self) -> int | None:
        """Of the first frame of the message in progress."""
        return self.partial[0].timestamp if self.partial else None

    def add(self, run: Run) -> Chunk | None:
        """The next frames of the source; what they complete."""
        if not run.ends:
            self.partial.append(run)
            return None
        stop = run.ends[-1] + 1
        chunk = Chunk(tuple(self.partial), run.slice(0, stop))
        self.partial = [run.slice(stop, run.count)] if stop < run.count else []
        return chunk

    def clear(self) -> None:
        self.partial = []
