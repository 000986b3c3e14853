"""Where simulated sites are: delays and routers between them, computed and not stored, for there may be thousands."""

from __future__ import annotations

import math
from random import Random
from typing import Protocol

MILLISECOND = 1_000_000


class Terrain(Protocol):
    """Delays and routers between sites, by index."""

    def delay_ns(self, one: int, other: int) -> int: ...

    def hops(self, one: int, other: int) -> int: ...


class Scattered:
    """Sites strewn over a square: delays and routers follow distance."""

    NEAREST_MS, FURTHEST_MS = 1.0, 100.0
    MS_PER_HOP = 5.0

    def __init__(self, sites: int, rng: Random) -> None:
        self._places = [(rng.random(), rng.random()) for _ in range(sites)]
        self._span = (self.FURTHEST_MS - self.NEAREST_MS) / math.sqrt(2)

    def _delay_ms(self, one: int, other: int) -> float:
        return self.NEAREST_MS + self._span * math.dist(self._places[one], self._places[other])

    def delay_ns(self, one: int, other: int) -> int:
        return round(self._delay_ms(one, other) * MILLISECOND)

    def hops(self, one: int, other: int) -> int:
        return 1 + int(self._delay_ms(one, other) / self.MS_PER_HOP)


class Clustered:
    """Clusters of sites a few milliseconds apart, with longer ways between them."""

    INSIDE_MS = (1.0, 5.0)
    BETWEEN_MS = (20.0, 100.0)
    HOPS_INSIDE = 2

    def __init__(self, sites: int, rng: Random, clusters: int) -> None:
        low, high = self.INSIDE_MS
        self.cluster = [site % clusters for site in range(sites)]
        self._spoke_ms = [rng.uniform(low / 2, high / 2) for _ in range(sites)]
        centres = [(rng.random(), rng.random()) for _ in range(clusters)]
        near, far = self.BETWEEN_MS
        span = (far - high - near) / math.sqrt(2)
        self._between_ms = [[near + span * math.dist(one, other) for other in centres] for one in centres]

    def _delay_ms(self, one: int, other: int) -> float:
        spokes = self._spoke_ms[one] + self._spoke_ms[other]
        here, there = self.cluster[one], self.cluster[other]
        return spokes if here == there else spokes + self._between_ms[here][there]

    def delay_ns(self, one: int, other: int) -> int:
        return round(self._delay_ms(one, other) * MILLISECOND)

    def hops(self, one: int, other: int) -> int:
        here, there = self.cluster[one], self.cluster[other]
        return self.HOPS_INSIDE if here == there else 4 + int(self._between_ms[here][there] / 5)
