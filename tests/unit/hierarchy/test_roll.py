"""Names of sites come together a few at a time."""

from __future__ import annotations

from intergroup_core.hierarchy.roll import Roll
from intergroup_core.ids import SiteId
from intergroup_core.wire.hierarchy import GroupKey

ONE, OTHER, THIRD = SiteId(1), SiteId(2), SiteId(3)
PRICES, NEWS = 7, 8


def test_who_speaks_and_who_is_spoken_of_is_listed_by_group() -> None:
    roll = Roll()
    roll.said(ONE, "one", [GroupKey(PRICES, 5), GroupKey(NEWS, 6)], now=0)
    roll.told({(OTHER, PRICES): "other"}, now=0)
    assert roll.of(PRICES, 0) == {ONE: "one", OTHER: "other"}
    assert roll.of(NEWS, 0) == {ONE: "one"}


def test_a_few_are_told_in_turn() -> None:
    roll = Roll()
    roll.told({(site, PRICES): str(site) for site in (ONE, OTHER, THIRD)}, now=0)
    told = [set(roll.some(2)) for _ in range(3)]
    assert set.union(*told[:2]) == {(ONE, PRICES), (OTHER, PRICES), (THIRD, PRICES)}
    assert all(len(some) == 2 for some in told)


def test_who_left_or_was_not_heard_of_for_long_is_not_listed() -> None:
    roll = Roll()
    roll.told({(ONE, PRICES): "one", (OTHER, PRICES): "other"}, now=0)
    roll.forget(ONE)
    assert roll.of(PRICES, 0) == {OTHER: "other"}
    assert roll.of(PRICES, Roll.KEPT_NS + 1) == {}
