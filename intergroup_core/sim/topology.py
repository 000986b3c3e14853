"""Delay matrices: one-way delays in nanoseconds between members."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

Delays = list[list[int]]


def scattered(members: int, rng: Random, *, nearest_ns: int, furthest_ns: int) -> Delays:
    """Members strewn over a square: delays follow distance, the same both ways."""
    places = [(rng.random(), rng.random()) for _ in range(members)]
    span = (furthest_ns - nearest_ns) / math.sqrt(2)
    return [[nearest_ns + round(span * math.dist(one, other)) for other in places] for one in places]


def clustered(members: int, rng: Random, *, clusters: int) -> Delays:
    """Members in turn in one of several places: 1 to 5 ms from each other there, 20 to 100 ms between places."""
    inside = [rng.randint(1_000_000, 5_000_000) for _ in range(clusters)]
    between = scattered(clusters, rng, nearest_ns=20_000_000, furthest_ns=100_000_000)

    def delay(one: int, other: int) -> int:
        here, there = one % clusters, other % clusters
        return inside[here] if here == there else between[here][there]

    return [[0 if one == other else delay(one, other) for other in range(members)] for one in range(members)]


def star(spokes_ns: Sequence[int]) -> Delays:
    """Members around a hub: two are as far apart as their spokes are long together."""
    return [[0 if i == j else one + other for j, other in enumerate(spokes_ns)] for i, one in enumerate(spokes_ns)]


def line(places_ns: Sequence[int], *, hop_ns: int) -> Delays:
    """Members along a line: apart by the difference of their places and one hop."""
    return [
        [0 if i == j else abs(one - other) + hop_ns for j, other in enumerate(places_ns)]
        for i, one in enumerate(places_ns)
    ]
