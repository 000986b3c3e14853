"""The views a member went through, laid out for the checkers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from intergroup_core.ids import MemberId, ViewId
from intergroup_core.sim.trace import Installed

Ints = NDArray[np.int64]
BEFORE_ANY = -1
"""The ordinal of a time before a member's first view; the same number says that it never installed a view."""


def view_key(view: str) -> ViewId:
    """A view's id, to be compared."""
    start, leader, seq = (int(part, 16) for part in view.split("-"))
    return ViewId(start, leader, seq)  # type: ignore[arg-type]


class Course:
    """One incarnation's views in their order; `ordinal` is a view's place in it."""

    def __init__(
        self, installs: Sequence[tuple[int, Installed]], views: dict[str, int], senders: dict[MemberId, int]
    ) -> None:
        self.events = [event for _, event in installs]
        self.positions = np.array([position for position, _ in installs], dtype=np.int64)
        """Where in the trace each was installed."""
        self.views = np.array([views[event.view] for event in self.events], dtype=np.int64)
        """The number of each among all views of the trace."""
        self.starts = np.array([event.start for event in self.events], dtype=np.int64)
        self._numbers = len(views)
        self._senders = senders

    def __len__(self) -> int:
        return len(self.events)

    def ordinal_at(self, positions: Ints) -> Ints:
        """Which view this member was in at places of the trace."""
        return np.searchsorted(self.positions, positions) - 1

    @property
    def opened(self) -> int:
        """The place in the trace of the first view; beyond every place where there was none."""
        return int(self.positions[0]) if len(self.positions) else 1 << 62

    @cached_property
    def ordinals(self) -> Ints:
        """By view number, its ordinal here."""
        found = np.full(self._numbers, BEFORE_ANY, dtype=np.int64)
        found[self.views] = np.arange(len(self.views))
        return found

    @cached_property
    def parted(self) -> Ints:
        """By ordinal and sender: the first later view into which the sender did not come along from the one before.

        "While its sender is in every view in between" reads: before this ordinal. A sender that was away and merged
        back is in both views and still did not come along.
        """
        found = np.empty((len(self.events), len(self._senders)), dtype=np.int64)
        following = np.full(len(self._senders), len(self.events), dtype=np.int64)
        for ordinal in range(len(self.events) - 1, -1, -1):
            found[ordinal] = following
            along = np.zeros(len(self._senders), dtype=bool)
            along[
                [self._senders[member] for member in self.events[ordinal].transitional if member in self._senders]
            ] = True
            following = np.where(along, following, ordinal)
        return found
