"""What a batch read can leave out because a filter of the query does: kinds, senders, groups and times.

Spark applies every filter again, so that what is left out here may be less than could be, never more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from pyspark_intergroup.options import ReadOptions
from pyspark_intergroup.points import AtTime, Earliest, Latest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def narrowed(options: ReadOptions, filters: Iterable[Filter]) -> ReadOptions:
    """The options of a read that need not give what the filters leave out."""
    for each in filters:
        match each:
            case EqualTo(attribute=(column,), value=value):
                options = _among(options, column, [value])
            case In(attribute=(column,), value=values):
                options = _among(options, column, list(values))
            case (
                GreaterThan(attribute=("timestamp",), value=value)
                | GreaterThanOrEqual(attribute=("timestamp",), value=value)
            ):
                options = _from(options, _microseconds(value))
            case LessThan(attribute=("timestamp",), value=value):
                options = _before(options, _microseconds(value))
            case LessThanOrEqual(attribute=("timestamp",), value=value):
                upto = _microseconds(value)
                options = _before(options, upto + 1 if upto is not None else None)
    return options


def _among(options: ReadOptions, column: str, values: list[Any]) -> ReadOptions:
    match column:
        case "kind":
            return replace(options, kinds=tuple(kind for kind in options.kinds if kind in values))
        case "sender" | "sender_id" if not options.senders and all(isinstance(value, str) for value in values):
            # A row of no sender passes no such filter.
            kinds = tuple(kind for kind in options.kinds if kind == "data")
            return replace(options, senders=tuple(values), kinds=kinds)
        case "group_name" if options.groups:
            return replace(options, groups=tuple(group for group in options.groups if group in values))
        case "timestamp" if len(values) == 1:
            at = _microseconds(values[0])
            return _before(_from(options, at), at + 1 if at is not None else None)
        case _:
            return options


def _from(options: ReadOptions, microseconds: int | None) -> ReadOptions:
    match options.starting:
        case Earliest() if microseconds is not None:
            return replace(options, starting=AtTime(microseconds))
        case AtTime(known) if microseconds is not None:
            return replace(options, starting=AtTime(max(known, microseconds)))
        case _:
            return options


def _before(options: ReadOptions, microseconds: int | None) -> ReadOptions:
    match options.ending:
        case Latest() if microseconds is not None:
            return replace(options, ending=AtTime(microseconds))
        case AtTime(known) if microseconds is not None:
            return replace(options, ending=AtTime(min(known, microseconds)))
        case _:
            return options


def _microseconds(value: Any) -> int | None:
    """Of a moment; None of something that does not say in which zone it is."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - _EPOCH) // timedelta(microseconds=1)
