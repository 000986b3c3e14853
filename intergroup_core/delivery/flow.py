"""Pacing: RTCP's interval for a burst's bytes, under a bandwidth that losses cut and quiet time raises (T4.5.3, D9)."""

from __future__ import annotations

from random import Random

from intergroup_core.config import SendConfig

MILLISECOND = 1_000_000
SECOND = 1_000_000_000


class Pacer:
    """Says when the next burst may go."""

    SLACK_NS = 2 * MILLISECOND
    """Time a sender may catch up after a late wake-up: timers of an event loop are no finer."""
    CUT_NS = 5 * MILLISECOND
    """Least time between two cuts where the round trip is shorter."""

    def __init__(self, config: SendConfig, rng: Random) -> None:
        self._config = config
        self._rng = rng
        self._bandwidth = config.bandwidth_start
        self._raised_at: int | None = None
        self._cut_at: int | None = None
        self.ready_at = 0

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return self._bandwidth

    def spend(self, nbytes: int, now: int) -> None:
        """A burst of so many bytes goes now."""
        self._raise(now)
        # RTCP spreads the interval over [0.5, 1.5] so that senders do not fall into step.
        interval = nbytes / self._bandwidth * SECOND * (0.5 + self._rng.random())
        self.ready_at = max(self.ready_at, now - self.SLACK_NS) + int(interval)

    def lost(self, round_trip_ns: int, now: int) -> bool:
        """Somebody asks for what this member sent; whether that cut the bandwidth."""
        if self._cut_at is not None and now - self._cut_at < max(round_trip_ns, self.CUT_NS):
            return False
        self._raise(now)
        self._cut_at = now
        self._bandwidth = max(self._config.bandwidth_min, self._bandwidth * self._config.bandwidth_cut)
        return True

    def _raise(self, now: int) -> None:
        if self._raised_at is not None and now > self._raised_at and self._bandwidth < self._config.bandwidth_max:
            doublings = min(8.0, (now - self._raised_at) / (self._config.bandwidth_doubling_ms * MILLISECOND))
            self._bandwidth = min(self._config.bandwidth_max, self._bandwidth * 2.0**doublings)
        self._raised_at = now
