"""Messages of the control hierarchy as bytes."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.ids import MAX_TIMESTAMP, MemberId, SiteId, Timestamp
from intergroup_core.wire.header import FrameType
from intergroup_core.wire.hierarchy import (
    Acknowledgment,
    CoordinatorControl,
    CoordinatorLeave,
    CutKey,
    GlobalControl,
    GroupKey,
    HierarchyMessage,
    LocalControl,
    Reach,
    RingAnswer,
    RingQuery,
    SiteLeave,
)
from intergroup_core.wire.hierarchy_codec import HIERARCHY_TYPES, MAX_PARTS, decode_hierarchy, encode_hierarchy

sites = st.integers(1, (1 << 64) - 1).map(SiteId)
members = st.integers(1, (1 << 64) - 1).map(MemberId)
clocks = st.integers(0, (1 << 32) - 1)
tags = st.integers(0, (1 << 64) - 1)
times = st.integers(0, MAX_TIMESTAMP).map(Timestamp)
counts = st.integers(0, 1_000_000)
ttls = st.integers(0, 255)
names = st.text(max_size=16)
seqs = st.integers(0, (1 << 48) - 1)
echoes = st.dictionaries(sites, st.tuples(clocks, clocks), max_size=4)
spreads = st.dictionaries(sites, clocks, max_size=4)
keys = st.builds(GroupKey, tags, clocks)
tables = st.dictionaries(keys, st.builds(Acknowledgment, times, counts, sites, names, counts), max_size=3)
rolls = st.dictionaries(st.tuples(sites, tags), names, max_size=3)
cuts = st.dictionaries(st.builds(CutKey, tags, clocks, members), st.builds(Reach, seqs, times), max_size=3)

MESSAGES: dict[type[HierarchyMessage], dict[str, st.SearchStrategy[Any]]] = {
    LocalControl: {
        "coordinator": sites, "ttl": ttls, "clock": clocks, "name": names, "known": counts, "echoes": echoes,
        "acknowledgments": tables, "cuts": cuts,
    },
    CoordinatorControl: {
        "ttl": ttls, "clock": clocks, "far_us": clocks, "children": counts, "coordinators": counts, "counted": clocks,
        "heir": st.none() | sites, "echoes": echoes, "local_distances": spreads, "coordinator_distances": spreads,
        "acknowledgments": tables, "cuts": cuts, "roll": rolls,
    },
    GlobalControl: {
        "clock": clocks, "children": counts, "coordinators": counts, "echoes": echoes, "acknowledgments": tables,
        "cuts": cuts, "roll": rolls,
    },
    RingQuery: {
        "attempt": counts, "ttl": ttls, "clock": clocks, "leaving": st.none() | sites, "starting": st.booleans(),
    },
    RingAnswer: {
        "seeker": sites, "attempt": counts, "query_clock": clocks, "held": clocks, "ttl": ttls, "children": counts,
        "coordinators": counts, "takes": st.booleans(),
    },
    CoordinatorLeave: {"clock": clocks},
    SiteLeave: {"coordinator": sites, "clock": clocks, "orphans": st.booleans()},
}  # fmt: skip
anything = st.one_of(*(st.builds(kind, site=sites, **fields) for kind, fields in MESSAGES.items()))
EXAMPLES: list[HierarchyMessage] = [
    LocalControl(site=SiteId(1), coordinator=SiteId(2), ttl=1, clock=5),
    CoordinatorControl(site=SiteId(1), ttl=1, clock=5, heir=SiteId(3)),
    GlobalControl(site=SiteId(1), clock=5),
    RingQuery(site=SiteId(1), attempt=1, ttl=1, clock=5, leaving=SiteId(2), starting=True),
    RingAnswer(
        site=SiteId(1),
        seeker=SiteId(2),
        attempt=1,
        query_clock=4,
        held=1,
        ttl=64,
        children=1,
        coordinators=1,
        takes=True,
    ),
    CoordinatorLeave(site=SiteId(1), clock=5),
    SiteLeave(site=SiteId(1), coordinator=SiteId(2), clock=5),
]
NO_FIELD = (-1, 0.5, b"x" * 70_000, [1], {}, [[None]], "x" * 2_000)
"""Values that no field takes."""


def fields_of(message: HierarchyMessage) -> tuple[FrameType, list[Any]]:
    kind, body = encode_hierarchy(message)
    return kind, msgpack.unpackb(body)


@given(anything)
def test_what_is_said_is_what_is_heard(message: HierarchyMessage) -> None:
    kind, body = encode_hierarchy(message)
    assert decode_hierarchy(kind, message.site, body) == message


def test_every_type_has_an_example() -> None:
    assert {fields_of(message)[0] for message in EXAMPLES} == HIERARCHY_TYPES


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_every_field_is_refused_when_it_is_wrong(message: HierarchyMessage) -> None:
    kind, fields = fields_of(message)
    for place in range(len(fields)):
        for wrong in NO_FIELD:
            body = msgpack.packb([*fields[:place], wrong, *fields[place + 1 :]])
            assert decode_hierarchy(kind, 1, body) is None, (place, wrong)


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_a_field_too_many_or_too_few_is_refused(message: HierarchyMessage) -> None:
    kind, fields = fields_of(message)
    for wrong in (fields[:-1], [*fields, 0], {}, None, 7):
        assert decode_hierarchy(kind, 1, msgpack.packb(wrong)) is None
    assert decode_hierarchy(kind, 1, b"") is None
    assert decode_hierarchy(kind, 1, msgpack.packb(fields)[:-1]) is None


@pytest.mark.parametrize(("part", "count"), [(0, 0), (1, 1), (5, 3), (MAX_PARTS, MAX_PARTS), (0, MAX_PARTS + 1)])
def test_a_part_beyond_the_last_is_refused(part: int, count: int) -> None:
    wrong = dataclasses.replace(EXAMPLES[0], part=part, parts=count)
    kind, body = encode_hierarchy(wrong)
    assert decode_hierarchy(kind, 1, body) is None


@pytest.mark.parametrize(
    "rows",
    [[[0, 1, 1]], [[5, 1]], [[5, 1 << 32, 1]], [5], [[5, 1, 1, 1]]],
)
def test_rows_that_are_none_are_refused(rows: list[Any]) -> None:
    kind, fields = fields_of(EXAMPLES[2])
    fields[5] = rows
    assert decode_hierarchy(kind, 1, msgpack.packb(fields)) is None
    fields[5], fields[6] = [], rows
    assert decode_hierarchy(kind, 1, msgpack.packb(fields)) is None
    fields[6], fields[7] = [], rows
    assert decode_hierarchy(kind, 1, msgpack.packb(fields)) is None
