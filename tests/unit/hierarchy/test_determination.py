"""Tables 2.2, 2.3 and 2.4, row by row."""

from __future__ import annotations

from random import Random

import pytest

from intergroup_core.hierarchy.determination import (
    Appropriateness,
    ChildSituation,
    CoordinatorSituation,
    SelfDetermination,
)
from tests.hierarchy_builders import MS, a_hierarchy_config

LOW, HIGH, TARGET = 4, 12, 8
APPROPRIATE, NEUTRAL = Appropriateness.APPROPRIATE, Appropriateness.NEUTRAL
INAPPROPRIATE, NO_CHANGE = Appropriateness.INAPPROPRIATE, Appropriateness.NO_CHANGE


def the_tables() -> SelfDetermination:
    config = a_hierarchy_config(
        coordinators_low=LOW, coordinators_high=HIGH, local_target=TARGET, change_low_ms=100.0, change_high_ms=300.0
    )
    return SelfDetermination(config, Random(1))


@pytest.mark.parametrize(
    ("coordinators", "children", "close", "fits", "expected"),
    [
        (LOW - 1, 0, True, False, NO_CHANGE),
        # The thesis lets one go here, for which a child comes at once.
        (LOW, 0, True, False, NO_CHANGE),
        (LOW + 1, 0, True, False, APPROPRIATE),
        (LOW + 1, 1, True, False, NEUTRAL),
        (LOW + 1, TARGET - 1, True, False, NEUTRAL),
        (LOW + 1, TARGET, True, False, INAPPROPRIATE),
        (LOW + 1, 0, False, False, INAPPROPRIATE),
        (LOW + 1, 1, False, False, INAPPROPRIATE),
        # Small groups that are close to each other merge.
        (LOW + 1, 3, True, True, APPROPRIATE),
        (LOW + 1, 3, False, True, INAPPROPRIATE),
    ],
)
def test_table_2_2_for_a_coordinator(
    coordinators: int, children: int, close: bool, fits: bool, expected: Appropriateness
) -> None:
    situation = CoordinatorSituation(coordinators=coordinators, children=children, close=close, fits=fits)
    assert the_tables().of_coordinator(situation) is expected


def test_the_only_coordinator_stays_one() -> None:
    tables = SelfDetermination(a_hierarchy_config(coordinators_low=1), Random(1))
    assert tables.of_coordinator(CoordinatorSituation(coordinators=1, children=0, close=True, fits=True)) is NO_CHANGE


@pytest.mark.parametrize(
    ("siblings", "far", "expected"),
    [
        (TARGET + 1, True, APPROPRIATE),
        (TARGET, True, NEUTRAL),
        (1, True, NEUTRAL),
        (TARGET + 1, False, INAPPROPRIATE),
        (1, False, INAPPROPRIATE),
    ],
)
def test_table_2_2_for_a_child(siblings: int, far: bool, expected: Appropriateness) -> None:
    assert the_tables().of_child(ChildSituation(coordinators=9, siblings=siblings, far=far)) is expected


@pytest.mark.parametrize("coordinators", range(1, HIGH + 4))
def test_table_2_3(coordinators: int) -> None:
    tables = the_tables()
    assert tables.coordinator_goes_on(APPROPRIATE, coordinators)
    assert tables.coordinator_goes_on(NEUTRAL, coordinators) == (coordinators > (LOW + 3 * HIGH) / 4)
    assert tables.coordinator_goes_on(INAPPROPRIATE, coordinators) == (coordinators > HIGH)
    assert not tables.coordinator_goes_on(NO_CHANGE, coordinators)
    assert tables.child_goes_on(APPROPRIATE, coordinators)
    assert tables.child_goes_on(NEUTRAL, coordinators) == (coordinators < (3 * LOW + HIGH) / 4)
    assert tables.child_goes_on(INAPPROPRIATE, coordinators) == (coordinators < LOW)
    assert not tables.child_goes_on(NO_CHANGE, coordinators)


@pytest.mark.parametrize(
    ("appropriateness", "low", "high"), [(APPROPRIATE, 100, 300), (NEUTRAL, 400, 700), (INAPPROPRIATE, 700, 1_000)]
)
def test_table_2_4(appropriateness: Appropriateness, low: int, high: int) -> None:
    tables = the_tables()
    delays = [tables.delay(appropriateness) for _ in range(300)]
    assert low * MS <= min(delays) < (low + 0.1 * (high - low)) * MS
    assert (high - 0.1 * (high - low)) * MS < max(delays) <= high * MS


@pytest.mark.parametrize(("heard", "expected"), [(None, True), (1, True), (8, True), (9, False), (20, False)])
def test_a_site_starts_as_a_coordinator_where_there_are_not_many(heard: int | None, expected: bool) -> None:
    assert the_tables().starts_as_coordinator(heard) is expected


def test_of_too_many_coordinators_only_the_surplus_goes() -> None:
    """The smallest first; now and then one more, for one that should go may find no place."""
    tables = the_tables()
    count = HIGH + 3
    went = [
        sum(tables.coordinator_goes_on(INAPPROPRIATE, count, before) for _ in range(200)) / 200
        for before in range(count)
    ]
    assert went[:3] == [1.0, 1.0, 1.0]
    assert all(0 < part < 3 / count for part in went[3:])
