"""When the next control message is due: RTCP's interval under a target bandwidth (T2.3, figure 2.2)."""

from __future__ import annotations

from random import Random

from intergroup_core.config import HierarchyConfig

GAIN = 1 / 16
"""RTCP_SIZE_GAIN: weight of the newest packet in the average size."""
START_BYTES = 128.0
"""The average size before anything was sent or heard."""
MILLISECOND = 1_000_000
SECOND = 1_000_000_000


class Interval:
    """One instance for a local group and one for the coordinator group, each with sizes of its own."""

    def __init__(self, config: HierarchyConfig, rng: Random) -> None:
        self._config = config
        self._rng = rng
        self._average = START_BYTES
        self._bound_ns = 0
        self.mean_ns = round(config.interval_ms * MILLISECOND)
        """The interval last computed, before it was spread."""

    def heard(self, nbytes: int) -> None:
        self._average += (nbytes - self._average) * GAIN

    def first(self) -> int:
        """Half the least interval, so that a newcomer is noticed soon."""
        return self._spread(round(self._config.interval_ms * MILLISECOND / 2))

    def after(self, nbytes: int, members: int) -> int:
        """How long to wait after a message of so many bytes among so many members."""
        self.heard(nbytes)
        self._bound_ns = round(self._average * members / self._config.bandwidth * SECOND)
        self.mean_ns = max(self._bound_ns, round(self._config.interval_ms * MILLISECOND))
        return self._spread(self.mean_ns)

    def shortest(self) -> int:
        """The least interval while data flows, under the bandwidth and the members of last time (H5)."""
        return self._spread(max(self._bound_ns, round(self._config.busy_ms * MILLISECOND)))

    def _spread(self, interval: int) -> int:
        """Over [0.5, 1.5], so that sites do not fall into step."""
        return round(interval * (0.5 + self._rng.random()))
