"""Where simulated sites are: delays and routers between them, computed and not stored, for there may be thousands."""

from __future__ import annotations

import math
from random import Random
from typing import Protocol

MILLISECOND = 1_000_000


class Terrain(Protocol):
    """Ways between sites, by index."""

    def way(self, one: int, other: int) -> tuple[int, int]:
        """Nanoseconds and routers from one to the other."""
        ...


class Scattered:
    """Sites strewn over a square: delays and routers follow distance."""

    NEAREST_MS, FURTHEST_MS = 1.0, 100.0
    MS_PER_HOP = 5.0

    def __init__(self, sites: int, rng: Random) -> None:
        self._places = [(rng.random(), rng.random()) for _ in range(sites)]
        self._span = (self.FURTHEST_MS - self.NEAREST_MS) / math.sqrt(2)

    def way(self, one: int, other: int) -> tuple[int, int]:
        delay_ms = self.NEAREST_MS + self._span * math.dist(self._places[one], self._places[other])
        return int(delay_ms * MILLISECOND), 1 + int(delay_ms / self.MS_PER_HOP)


class Clustered:
    """Clusters of sites a few milliseconds apart, with longer ways between them."""

    INSIDE_MS = (1.0, 5.0)
    BETWEEN_MS = (20.0, 100.0)
    HOPS_INSIDE = 2

    def __init__(self, sites: int, rng: Random, clusters: int) -> None:
        low, high = self.INSIDE_MS
        self.cluster = [site % clusters for site in range(sites)]
        self._spoke_ns = [int(rng.uniform(low / 2, high / 2) * MILLISECOND) for _ in range(sites)]
        centres = [(rng.random(), rng.random()) for _ in range(clusters)]
        near, far = self.BETWEEN_MS
        span = (far - high - near) / math.sqrt(2)
        between = [[near + span * math.dist(one, other) for other in centres] for one in centres]
        self._between = [[(int(ms * MILLISECOND), 4 + int(ms / 5)) for ms in row] for row in between]

    def way(self, one: int, other: int) -> tuple[int, int]:
        spokes = self._spoke_ns[one] + self._spoke_ns[other]
        here, there = self.cluster[one], self.cluster[other]
        if here == there:
            return spokes, self.HOPS_INSIDE
        trunk, hops = self._between[here][there]
        return spokes + trunk, hops
