"""Cuts: points in a delivered order, between two entries or two messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from intergroup_core.ids import MemberId, ViewId

BEHIND_ALL = MemberId((1 << 64) - 1)
"""As the sender of a cut: behind everybody's messages of one timestamp."""
_SHOWN = 8
"""Senders of a cut that an error names."""


@dataclass(frozen=True, slots=True)
class OrderCut:
    """In `rto`: behind whatever is ordered at or before (timestamp, sender).

    A view is ordered by its start and leader. The view that the cut lies in may be left out where no gap made the
    order begin again.
    """

    timestamp: int
    sender: MemberId
    view: ViewId | None = None

    def __str__(self) -> str:
        where = f" in view {self.view}" if self.view is not None else ""
        return f"{self.timestamp:016x}-{self.sender:016x}{where}"


@dataclass(frozen=True, slots=True)
class SourceCut:
    """In `rso`: behind these seqs of each sender, and behind a view; nothing of a sender that is not named."""

    seqs: Mapping[MemberId, int] = field(default_factory=dict)
    view: ViewId | None = None

    def __str__(self) -> str:
        shown = [f"{source:016x}: {self.seqs[source]}" for source in sorted(self.seqs)[:_SHOWN]]
        if len(self.seqs) > _SHOWN:
            shown.append(f"and {len(self.seqs) - _SHOWN} more")
        where = f" in view {self.view}" if self.view is not None else ""
        return f"{{{', '.join(shown)}}}{where}"


@dataclass(frozen=True, slots=True)
class EntryCut:
    """In `uu`, whose order exists in one log only: before an entry of it."""

    log: int
    entry: int

    def __str__(self) -> str:
        return f"entry {self.entry} of log {self.log:016x}"


Cut = OrderCut | SourceCut | EntryCut
