"""Filters of a query that narrow a batch read; what is not understood narrows nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from pyspark_intergroup.options import ReadOptions
from pyspark_intergroup.points import AtTime, Earliest
from pyspark_intergroup.pushing import narrowed

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NOON_US = 1_767_355_200_000_000


def asked(**options: str) -> ReadOptions:
    return ReadOptions.of({"group": "prices,trades", **options}, streaming=False)


def test_kinds_senders_and_groups_are_left_out() -> None:
    found = narrowed(asked(), [EqualTo(("kind",), "view"), In(("group_name",), ("prices", "other"))])
    assert (found.kinds, found.groups) == (("view",), ("prices",))
    found = narrowed(asked(), [EqualTo(("sender",), "anna")])
    assert (found.senders, found.kinds) == (("anna",), ("data",))


def test_of_two_filters_both_count() -> None:
    found = narrowed(asked(), [In(("kind",), ("data", "view")), EqualTo(("kind",), "gap")])
    assert found.kinds == ()


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5))])
@pytest.mark.parametrize(
    ("filters", "start", "end"),
    [
        ([GreaterThanOrEqual(("timestamp",), NOON)], NOON_US, None),
        ([GreaterThan(("timestamp",), NOON)], NOON_US, None),
        ([LessThan(("timestamp",), NOON)], None, NOON_US),
        ([LessThanOrEqual(("timestamp",), NOON)], None, NOON_US + 1),
        ([EqualTo(("timestamp",), NOON)], NOON_US, NOON_US + 1),
    ],
)
def test_times_are_where_a_read_begins_and_ends(
    filters: list[Filter], start: int | None, end: int | None, zone: timezone
) -> None:
    moved = [type(each)(each.attribute, each.value.astimezone(zone)) for each in filters]  # type: ignore[attr-defined]
    found = narrowed(asked(), moved)
    assert found.starting == (AtTime(start) if start is not None else asked().starting)
    assert found.ending == (AtTime(end) if end is not None else asked().ending)


def test_what_the_options_say_is_only_narrowed() -> None:
    options = asked(startingTimestamp="2026-01-02T18:00:00Z")
    found = narrowed(options, [GreaterThan(("timestamp",), NOON)])
    assert found.starting == options.starting


@pytest.mark.parametrize(
    "unknown",
    [
        Not(EqualTo(("kind",), "view")),
        IsNotNull(("sender",)),
        EqualTo(("value",), b"x"),
        EqualTo(("headers", "key"), "x"),
        GreaterThan(("timestamp",), datetime(2026, 1, 2)),  # noqa: DTZ001
        GreaterThan(("seq",), 3),
    ],
)
def test_what_is_not_understood_narrows_nothing(unknown: Filter) -> None:
    assert narrowed(asked(), [unknown]) == asked()
    assert isinstance(asked().starting, Earliest)
