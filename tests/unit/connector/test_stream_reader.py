"""The order in which Spark asks a stream for its offsets, as it was seen to ask."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from intergroup_core.ids import MemberId
from intergroup_core.log.cut import OrderCut
from pyspark_intergroup.offsets import Offsets
from pyspark_intergroup.schema import default_schema
from pyspark_intergroup.stream_reader import GroupStreamReader
from tests.unit.connector.reads import a_stream


class MovingGroup:
    """A group whose head moves with every question."""

    def __init__(self) -> None:
        self._time = 0

    def initial(self) -> Offsets:
        self._time += 1
        return Offsets({"prices": OrderCut(self._time, MemberId(1))})

    latest = initial

    def end(self, begin: Offsets, limits: object, *, target: Offsets | None, wait: float) -> Offsets:
        return target or self.initial()

    def slices(self, begin: Offsets, end: Offsets) -> list[Any]:
        return []


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> GroupStreamReader:
    made = GroupStreamReader(a_stream(), default_schema())
    group = MovingGroup()
    monkeypatch.setattr(made, "_planning", lambda: group)
    return made


def test_the_first_batch_is_empty_and_pins_where_the_query_began(reader: GroupStreamReader) -> None:
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    assert reader.latestOffset(start, ReadAllAvailable()) != start


def test_a_beginning_that_is_asked_for_again_stays_where_it_was(reader: GroupStreamReader) -> None:
    start = reader.initialOffset()
    reader.latestOffset(start, ReadAllAvailable())
    assert reader.initialOffset() == start


def test_a_trigger_for_what_is_there_gets_it_although_the_beginning_is_asked_for_twice(
    reader: GroupStreamReader,
) -> None:
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    pinned = reader.latestOffset(start, ReadAllAvailable())
    reader.partitions(reader.initialOffset(), pinned)
    assert reader.latestOffset(pinned, ReadAllAvailable()) != pinned


def test_after_a_restart_in_the_first_batch_nothing_is_pinned_again(reader: GroupStreamReader) -> None:
    reader.prepareForTriggerAvailableNow()
    kept = Offsets({"prices": OrderCut(0, MemberId(1))}).to_json()
    reader.partitions(reader.initialOffset(), kept)
    assert reader.latestOffset(kept, ReadAllAvailable()) != kept
