"""Simulated groups that are held to every property when their test is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from intergroup_core.sim.checkers import check
from intergroup_core.sim.cluster import SimCluster
from intergroup_core.sim.live_cluster import LiveCluster
from intergroup_core.sim.workload import Workload

UNHURRIED = Workload(rate=15)
"""Enough to have something under way at any time; where a story needs more it says so."""


@pytest.fixture
def a_cluster() -> Iterator[Callable[..., SimCluster]]:
    """Makes clusters; at the end of the test each is left to settle and its trace is checked."""
    made: list[SimCluster] = []

    def make(**settings: Any) -> SimCluster:
        cluster = SimCluster(**({"seed": 1, "senders": 3, "receivers": 2} | settings))
        made.append(cluster)
        return cluster

    yield make
    _judge(made)


@pytest.fixture
def a_live_cluster() -> Iterator[Callable[..., LiveCluster]]:
    """The same for groups whose members come and go."""
    made: list[LiveCluster] = []

    def make(**settings: Any) -> LiveCluster:
        cluster = LiveCluster(**({"seed": 1, "senders": 3, "receivers": 1, "workload": UNHURRIED} | settings))
        made.append(cluster)
        return cluster

    yield make
    _judge(made)


def _judge(made: list[SimCluster] | list[LiveCluster]) -> None:
    for cluster in made:
        if not cluster.ended:
            cluster.settle()
        violations = check(cluster.trace)
        assert not violations, "\n".join(map(str, violations))
