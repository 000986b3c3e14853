"""Losses and delays chosen by what a datagram is, where it comes from and where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from intergroup_core.wire.header import FrameType

Link = tuple[int, int]
TYPE_AT = 5
"""Where a frame says what it is."""

AGREEMENT = frozenset({FrameType.JOIN, FrameType.RECOVERY_INFO, FrameType.READY, FrameType.MEMBERSHIP})
"""What a repair says."""


@dataclass(slots=True, kw_only=True, eq=False)
class Rule:
    """Frames of some kinds on some one-way links are lost, or late."""

    kinds: frozenset[FrameType]
    links: frozenset[Link]
    chance: float = 1.0
    late_ns: int = 0
    """By how much they are late; 0 for lost."""
    left: int | None = None
    """So many more; None for all."""
    met: int = 0
    """How often it struck."""

    def strikes(self, link: Link, datagram: bytes, rng: Random) -> bool:
        if self.left == 0 or link not in self.links or datagram[TYPE_AT] not in self.kinds:
            return False
        if self.chance < 1 and rng.random() >= self.chance:
            return False
        self.met += 1
        if self.left is not None:
            self.left -= 1
        return True
