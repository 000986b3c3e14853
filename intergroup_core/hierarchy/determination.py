"""Self-determination: whether a control process should be a coordinator or a child (T2.5, tables 2.2 to 2.4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random

from intergroup_core.config import HierarchyConfig

MILLISECOND = 1_000_000


class Appropriateness(Enum):
    """How fit a change between coordinator and child is."""

    APPROPRIATE = "appropriate"
    NEUTRAL = "neutral"
    INAPPROPRIATE = "inappropriate"
    NO_CHANGE = "no change"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSituation:
    """What a coordinator knows when it asks itself whether to become a child."""

    coordinators: int
    """In the whole hierarchy, this one included."""
    children: int
    close: bool
    """Whether another coordinator is close."""
    fits: bool
    """Whether this local group fits with all its children into one that is close and goes before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSituation:
    """What a child knows when it asks itself whether to become a coordinator."""

    coordinators: int
    siblings: int
    """Children of its coordinator, this one included."""
    far: bool
    """Whether its coordinator is far away."""


class SelfDetermination:
    """The tables, with the thresholds of a configuration."""

    def __init__(self, config: HierarchyConfig, rng: Random) -> None:
        self._rng = rng
        self._low, self._high = config.coordinators_low, config.coordinators_high
        self._target = config.local_target
        self._s1 = round(config.change_low_ms * MILLISECOND)
        self._s2 = round(config.change_high_ms * MILLISECOND)

    def of_coordinator(self, situation: CoordinatorSituation) -> Appropriateness:
        """Table 2.2, left; small groups that fit into one merge, so that a small system is one local group.

        Where they are just enough nobody goes either: a child would have to take its place at once.
        """
        if situation.coordinators <= self._low:
            return Appropriateness.NO_CHANGE
        if situation.close and (situation.children == 0 or situation.fits):
            return Appropriateness.APPROPRIATE
        if situation.close and situation.children < self._target:
            return Appropriateness.NEUTRAL
        return Appropriateness.INAPPROPRIATE

    def of_child(self, situation: ChildSituation) -> Appropriateness:
        """Table 2.2, right."""
        if not situation.far:
            return Appropriateness.INAPPROPRIATE
        return Appropriateness.APPROPRIATE if situation.siblings > self._target else Appropriateness.NEUTRAL

    def coordinator_goes_on(self, appropriateness: Appropriateness, coordinators: int, before: int = 0) -> bool:
        """Table 2.3, left; where there are too many, `before` others go before this one.

        If all went that may, too few would be left, and as many would have to become coordinators again.
        """
        if before and self._rng.random() * coordinators < 1:
            before = 0  # now and then one more, for one that should go may find no place
        coordinators -= before
        match appropriateness:
            case Appropriateness.NO_CHANGE:
                return False
            case Appropriateness.APPROPRIATE:
                return True
            case Appropriateness.NEUTRAL:
                return 4 * coordinators > self._low + 3 * self._high
            case Appropriateness.INAPPROPRIATE:
                return coordinators > self._high

    def child_goes_on(self, appropriateness: Appropriateness, coordinators: int) -> bool:
        """Table 2.3, right."""
        match appropriateness:
            case Appropriateness.NO_CHANGE:
                return False
            case Appropriateness.APPROPRIATE:
                return True
            case Appropriateness.NEUTRAL:
                return 4 * coordinators < 3 * self._low + self._high
            case Appropriateness.INAPPROPRIATE:
                return coordinators < self._low

    def starts_as_coordinator(self, coordinators: int | None) -> bool:
        """T2.6.1: where nobody says how many there are, or they are not many."""
        return coordinators is None or 2 * coordinators <= self._low + self._high

    def delay(self, appropriateness: Appropriateness) -> int:
        """Table 2.4: nanoseconds from a decision to its second look."""
        match appropriateness:
            case Appropriateness.APPROPRIATE:
                low, high = self._s1, self._s2
            case Appropriateness.NEUTRAL:
                low, high = self._s1 + self._s2, self._s1 + 2 * self._s2
            case _:
                low, high = self._s1 + 2 * self._s2, self._s1 + 3 * self._s2
        return round(self._rng.uniform(low, high))
