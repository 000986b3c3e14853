"""A query whose head stays where it is says for whom it waits, once in a while."""

from __future__ import annotations

from intergroup_core.client.planning import Head
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.log.cut import OrderCut
from pyspark_intergroup.standstill import AGAIN_SECONDS, PATIENCE_SECONDS, Standstill

WHY = "paris lacks it"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def a_head(timestamp: int, waits_for: str = WHY) -> Head:
    return Head(OrderCut(Timestamp(timestamp), MemberId(1), None), timestamp, waits_for)


def told_at(standstill: Standstill, clock: Clock, heads: list[tuple[float, Head]]) -> list[float]:
    """When something was told, of heads that were seen at times."""
    found = []
    for clock.now, head in heads:
        if (told := standstill.tell(head)) is not None:
            assert told == WHY
            found.append(clock.now)
    return found


def test_a_head_that_stays_is_told_of_after_a_while_and_again_later() -> None:
    clock = Clock()
    seconds = [float(second) for second in range(1, 120)]
    found = told_at(Standstill(clock), clock, [(second, a_head(5)) for second in seconds])
    assert found == [2 + PATIENCE_SECONDS, 2 + PATIENCE_SECONDS + AGAIN_SECONDS]


def test_a_head_that_moves_or_waits_for_nobody_is_not() -> None:
    clock = Clock()
    seconds = [float(second) for second in range(1, 60)]
    assert not told_at(Standstill(clock), clock, [(second, a_head(int(second) // 5)) for second in seconds])
    assert not told_at(Standstill(clock), clock, [(second, a_head(5, "")) for second in seconds])


def test_what_was_waited_for_in_between_does_not_count() -> None:
    clock = Clock()
    heads = [(1.0, a_head(5)), (2.0, a_head(5)), (8.0, a_head(5, "")), (9.0, a_head(5)), (14.0, a_head(5))]
    assert not told_at(Standstill(clock), clock, heads)
