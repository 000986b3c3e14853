"""When a sender says that it has nothing to say (T4.2.2, D13)."""

from __future__ import annotations

from intergroup_core.config import SendConfig


class KeepAliveTimer:
    """A prompt answer to data above the last promise, then at doubling intervals up to the idle period.

    The repetitions are for those who lost one. Once all have what was sent, and know that they do, nobody waits.
    """

    FIRST_INTERVAL_GAPS = 10
    """The first repetition comes after so many gaps."""

    def __init__(self, config: SendConfig) -> None:
        self._gap_ns = round(config.keepalive_gap_us * 1_000)
        self._idle_ns = round(config.keepalive_idle_ms * 1_000_000)
        self._first_ns = min(self._idle_ns, max(1_000_000, self._gap_ns * self.FIRST_INTERVAL_GAPS))
        self._interval_ns = self._first_ns
        self._sent_at: int | None = None
        self._due_at = 0
        self._is_wanted = False

    def wanted(self, now: int) -> None:
        """Somebody waits for a promise of this member: at once, unless one has just been sent."""
        soonest = now if self._sent_at is None else max(now, self._sent_at + self._gap_ns)
        self._due_at = min(self._due_at, soonest)
        self._interval_ns = self._first_ns
        self._is_wanted = True

    def data_sent(self, now: int) -> None:
        """Data is a promise too, and what follows it tells of its loss."""
        self._interval_ns = self._first_ns
        self._due_at = now + self._interval_ns

    def rest(self) -> bool:
        """Nobody waits for a promise: the next one is due when the idle period is over, unless one was asked for.

        Whether that is news.
        """
        if self._is_wanted or self._sent_at is None or self._interval_ns >= self._idle_ns:
            return False
        self._interval_ns = self._idle_ns
        self._due_at = max(self._due_at, self._sent_at + self._idle_ns)
        return True

    def sent(self, now: int) -> None:
        self._is_wanted = False
        self._sent_at = now
        self._due_at = now + self._interval_ns
        self._interval_ns = min(self._idle_ns, 2 * self._interval_ns)

    def next_deadline(self) -> int:
        return self._due_at
