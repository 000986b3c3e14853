"""Newcomers join while the network falls apart and somebody stands still: their Adds are in some cuts only."""

from __future__ import annotations

import pytest

from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.faults import Pause, Split
from intergroup_core.sim.live_cluster import Seat
from intergroup_core.sim.workload import Workload
from tests.sim.live_stories import MakeLive, members_by_name
from tests.sizes import sized

APART_NS = 1_200 * MILLISECOND
STILL_NS = 1_500 * MILLISECOND


def a_race(joins: int, comes_at: int, still: int, alone: int, delay_ns: int) -> list[Pause | Split]:
    """The newcomer's seat and one sender's are cut off from the rest a moment after it began to join."""
    at = comes_at + delay_ns
    rest = frozenset({0, 1, 2, 3, 4, 5}) - {alone, joins}
    return [
        Split(at=at - 5 * MILLISECOND, until=at + APART_NS, parts=(frozenset({alone, joins}), rest)),
        Pause(at=at, until=at + STILL_NS, member=still),
    ]


@pytest.mark.parametrize("seed", range(1, 13, sized(6, 1)))
def test_an_add_is_in_the_cut_of_one_part_only(a_live_cluster: MakeLive, seed: int) -> None:
    seats = [
        *(Seat(name=f"s{index}") for index in range(4)),
        Seat(name="late", joins_at=2 * SECOND),
        Seat(name="later", joins_at=6 * SECOND),
    ]
    delay = seed % 8 * 8 * MILLISECOND
    first = a_race(4, 2 * SECOND, seed % 4, (seed + 1) % 4, delay)
    second = a_race(5, 6 * SECOND, (seed + 1) % 4, (seed + 2) % 4, delay)
    cluster = a_live_cluster(
        seed=seed, seats=seats, workload=Workload(rate=60, series=0.2, large=0), faults=[*first, *second]
    )
    cluster.run_for(9 * SECOND)
    assert cluster.run_until(cluster.agreed)
    assert members_by_name(cluster, 0) == {"s0", "s1", "s2", "s3", "late", "later"}
