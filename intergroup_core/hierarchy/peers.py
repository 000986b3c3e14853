"""What a control process knows of others: when it heard of them, and how far away they are (T2.2.1, T2.4)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from intergroup_core.ids import SiteId
from intergroup_core.wire.exchange import CLOCK_BITS, CLOCK_MASK, MAX_ROUND_TRIP_US, clock_at
from intergroup_core.wire.hierarchy import Echoes, Spread

MICROSECOND = 1_000
_HALF_CLOCK = 1 << CLOCK_BITS - 1
NEARER_GAIN, FARTHER_GAIN = 1 / 4, 1 / 16
"""Weight of the newest sample: what is late for any other reason than distance only ever makes it longer."""
MAX_STRETCH, STRETCH_US = 2, 1_000
"""A sample counts for no more than so many times the distance known so far, and a little: who stands still for a
while answers late, and is no farther away for it."""


def is_newer(clock: int, other: int) -> bool:
    """Whether a clock reading of a site comes after another one of the same site."""
    return 0 < (clock - other & CLOCK_MASK) < _HALF_CLOCK


def smoothed(distance_us: int | None, round_trip_us: int) -> int:
    """A distance after one more round trip."""
    sample = round_trip_us // 2
    if distance_us is None:
        return sample
    believable = min(sample, MAX_STRETCH * distance_us + STRETCH_US)
    gain = NEARER_GAIN if believable < distance_us else FARTHER_GAIN
    return distance_us + round((believable - distance_us) * gain)


class Known:
    """A control process information object: one site as another one knows it."""

    __slots__ = ("clock", "distance_us", "hops", "received_at", "updated_at")

    def __init__(self, now: int) -> None:
        self.clock: int | None = None
        """Of its last message that came here; None for one that is only heard of."""
        self.received_at = now
        self.distance_us: int | None = None
        self.hops: int | None = None
        self.updated_at = now

    def sample(self, round_trip_us: int) -> None:
        self.distance_us = smoothed(self.distance_us, round_trip_us)


class Peers:
    """Sites by id. Whatever is told of them in turns begins with those told longest ago."""

    def __init__(self, most: int) -> None:
        self._known: dict[SiteId, Known] = {}
        self._most = most

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, site: SiteId) -> bool:
        return site in self._known

    def __iter__(self) -> Iterator[SiteId]:
        return iter(self._known)

    def get(self, site: SiteId) -> Known | None:
        return self._known.get(site)

    def items(self) -> Iterator[tuple[SiteId, Known]]:
        return iter(self._known.items())

    def heard(self, site: SiteId, clock: int, hops: int | None, now: int) -> bool:
        """A message of a site came; False where it is no newer than what came before, or there is no room."""
        known = self._known.get(site)
        if known is None:
            if len(self._known) >= self._most:
                return False
            known = self._known[site] = Known(now)
        elif known.clock is not None and not is_newer(clock, known.clock):
            return False
        known.clock = clock
        known.received_at = known.updated_at = now
        if hops is not None:
            known.hops = hops
        return True

    def mentioned(self, site: SiteId, now: int) -> None:
        """Somebody who hears it tells of a site (T2.6.3)."""
        known = self._known.get(site)
        if known is not None:
            known.updated_at = now
        elif len(self._known) < self._most:
            self._known[site] = Known(now)

    def echoed(self, site: SiteId, echo: tuple[int, int], now: int) -> None:
        """A site says when it heard this one last: half of what that leaves of the round trip is the distance."""
        known = self._known.get(site)
        clock, held = echo
        round_trip = (clock_at(now) - clock & CLOCK_MASK) - held
        if known is not None and 0 <= round_trip <= MAX_ROUND_TRIP_US:
            known.sample(round_trip)

    def echoes(self, most: int, now: int) -> Echoes:
        """Timestamp pairs for the next message, those that waited longest first (H6)."""
        found: dict[SiteId, tuple[int, int]] = {}
        for site in list(islice(self._known, 2 * most)):
            if len(found) == most:
                break
            known = self._known[site] = self._known.pop(site)
            if known.clock is not None:
                found[site] = (known.clock, min(CLOCK_MASK, (now - known.received_at) // MICROSECOND))
        return found

    def distances(self, most: int, skip: int) -> Spread:
        """Distances of some sites; a higher `skip` gives others."""
        measured = [(site, known.distance_us) for site, known in self._known.items() if known.distance_us is not None]
        if len(measured) > most:
            start = skip * most % len(measured)
            measured = (measured + measured)[start : start + most]
        return dict(measured)

    def silent(self, limit_ns: int, now: int) -> list[SiteId]:
        return [site for site, known in self._known.items() if now - known.updated_at > limit_ns]

    def forget(self, site: SiteId) -> None:
        self._known.pop(site, None)

    def excuse(self, ns: int) -> None:
        """Nobody could be heard for so long."""
        for known in self._known.values():
            known.updated_at += ns

    def farthest(self) -> tuple[int, int]:
        """Routers and microseconds to the sites farthest away."""
        hops = max((known.hops for known in self._known.values() if known.hops is not None), default=0)
        far = max((known.distance_us for known in self._known.values() if known.distance_us is not None), default=0)
        return hops, far
