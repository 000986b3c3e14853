"""The expanding ring search."""

from __future__ import annotations

from typing import Any

import pytest

from intergroup_core.hierarchy.search import RingSearch, rings
from intergroup_core.ids import SiteId
from intergroup_core.wire.hierarchy import RingAnswer, RingQuery
from tests.hierarchy_builders import CHIEF, ME, MS, OTHER, THIRD, T, clock

RING = 100 * MS


def a_search(**settings: Any) -> RingSearch:
    defaults = {"leaving": None, "starting": True, "closest_us": 30_000}
    return RingSearch(ME, 4, (1, 2, 4), RING, **(defaults | settings))


def an_answer(site: SiteId = CHIEF, *, asked: int = T, **fields: Any) -> RingAnswer:
    return RingAnswer(
        **{
            "site": site,
            "seeker": ME,
            "attempt": 4,
            "query_clock": clock(asked),
            "held": 0,
            "ttl": 64,
            "children": 1,
            "coordinators": 3,
            "takes": True,
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(1, 16, (1, 2, 4, 8, 16)), (1, 5, (1, 2, 4, 5)), (16, 16, (16, 16, 16)), (1, 1, (1, 1, 1))],
)
def test_rings_double_up_to_the_last(first: int, last: int, expected: tuple[int, ...]) -> None:
    assert rings(first, last) == expected


def test_it_asks_ring_by_ring_and_gives_up_after_the_last() -> None:
    search = a_search()
    asked = []
    now = T
    while not search.over:
        query = search.tick(now)
        if query is not None:
            asked.append(query.ttl)
        now += RING
    assert asked == [1, 2, 4]
    assert search.found is None


def test_the_nearest_of_those_that_answered_within_a_ring_is_taken() -> None:
    search = a_search()
    search.tick(T)
    search.answered(an_answer(OTHER), 3, T + 40 * MS)
    search.answered(an_answer(CHIEF), 3, T + 20 * MS)
    assert not search.over
    search.tick(T + RING)
    assert search.found is not None
    assert (search.found.coordinator, search.found.distance_us, search.found.hops) == (CHIEF, 10_000, 3)


@pytest.mark.parametrize(
    "fields",
    [
        {"attempt": 3},
        {"seeker": OTHER},
        {"takes": False},
        {"site": THIRD},
        {"held": 30_000},
        {"query_clock": clock(T) - 99_000},
    ],
)
def test_an_answer_that_does_not_fit_the_question_is_ignored(fields: dict[str, Any]) -> None:
    search = a_search(leaving=THIRD)
    search.tick(T)
    search.answered(an_answer(**fields), 3, T + 20 * MS)
    search.tick(T + RING)
    assert search.found is None


def test_of_several_that_start_the_lowest_goes_first() -> None:
    search = a_search()
    for site, starting in ((OTHER, True), (CHIEF, True), (THIRD, True), (SiteId(1), False)):
        search.overheard(RingQuery(site=site, attempt=1, ttl=1, clock=0, leaving=None, starting=starting))
    assert search.lower == CHIEF


def test_questions_of_others_make_the_next_one_wait() -> None:
    """All that search share a bandwidth."""
    search = a_search(crowd_ns=RING // 4)
    assert search.tick(0) is not None
    for _ in range(8):
        search.overheard(RingQuery(site=OTHER, attempt=1, ttl=1, clock=0, leaving=None, starting=True))
    assert search.tick(RING) is not None
    assert search.due_at == RING + 2 * RING
    assert search.tick(search.due_at) is not None
    assert search.due_at == RING + 3 * RING
