"""Cuts: points in a delivered order, between two entries or two messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from intergroup_core.ids import MemberId, ViewId


@dataclass(frozen=True, slots=True)
class OrderCut:
    """In `rto`: behind whatever is ordered at or before (timestamp, sender).

    A view is ordered by its start and leader. The view that the cut lies in may be left out where no gap made the
    order begin again.
    """

    timestamp: int
    sender: MemberId
    view: ViewId | None = None


@dataclass(frozen=True, slots=True)
class SourceCut:
    """In `rso`: behind these seqs of each sender, and behind a view; nothing of a sender that is not named."""

    seqs: Mapping[MemberId, int] = field(default_factory=dict)
    view: ViewId | None = None


@dataclass(frozen=True, slots=True)
class EntryCut:
    """In `uu`, whose order exists in one log only: before an entry of it."""

    log: int
    entry: int


Cut = OrderCut | SourceCut | EntryCut
