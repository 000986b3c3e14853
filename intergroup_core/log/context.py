"""Where a log stands after an entry: what the next one continues."""

from __future__ import annotations

from typing import NamedTuple

from intergroup_core.effects import Install
from intergroup_core.log.digest import MASK64
from intergroup_core.log.entry import EntryHeader


class Context(NamedTuple):
    """The number of the next entry, and what came last before it."""

    entry: int
    place: int = 0
    chain: int = 0
    source: int = 0
    seq: int = 0
    timestamp: int = 0
    highest: int = 0
    """The highest timestamp so far, which after a gap need not be the last one."""
    install: Install | None = None
    """The last view."""

    def after(self, header: EntryHeader) -> Context:
        """Beyond an entry; a view is to be put in by who knows it."""
        return Context(
            header.entry + 1,
            header.next_place,
            (header.chain + header.digest) & MASK64,
            header.source,
            header.last_seq,
            header.last_timestamp,
            max(self.highest, header.last_timestamp),
            self.install,
        )
