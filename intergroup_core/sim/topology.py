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


def star(spokes_ns: Sequence[int]) -> Delays:
    """Members around a hub: two are as far apart as their spokes are long together."""
    return [[0 if i == j else one + other for j, other in enumerate(spokes_ns)] for i, one in enumerate(spokes_ns)]


def line(places_ns: Sequence[int], *, hop_ns: int) -> Delays:
    """Members along a line: apart by the difference of their places and one hop."""
    return [
        [0 if i == j else abs(one - other) + hop_ns for j, other in enumerate(places_ns)]
        for i, one in enumerate(places_ns)
    ]
