"""The hybrid Lamport clock of a site (T4.3) and the bound on what it believes of others (D4)."""

from __future__ import annotations

from collections.abc import Iterable

from intergroup_core.ids import MAX_TIMESTAMP, NO_TIMESTAMP, Instant, MemberId, Timestamp, timestamp_at, timestamp_span


class HybridClock:
    """Lamport time that catches up with the wall clock whenever it lags behind."""

    def __init__(self) -> None:
        self.last: Timestamp = NO_TIMESTAMP
        """The highest timestamp given or seen."""

    def stamp(self, count: int, now: Instant) -> Timestamp:
        """The first of `count` consecutive timestamps, above all given or seen before."""
        first = Timestamp(max(self.last + 1, timestamp_at(now.wall)))
        self.last = Timestamp(first + count - 1)
        return first

    def observe(self, timestamp: int) -> None:
        """A timestamp was received: later ones of ours exceed it."""
        if timestamp > self.last:
            self.last = Timestamp(timestamp)


class ClockGuard:
    """Refuses timestamps that run further ahead than elapsed time and the bound explain (D4).

    A frame may not exceed the greater of its sender's previous timestamp and the group's delivered time, plus
    the monotonic time since, plus the bound.
    """

    def __init__(self, sources: Iterable[MemberId], start: int, bound_ns: int, now: int) -> None:
        self._bound = timestamp_span(bound_ns)
        self._accepted = dict.fromkeys(sources, (start, now))
        self._delivered = (start, now)

    def begin(self, source: MemberId, timestamp: int, now: int) -> None:
        """What a source has promised to somebody who tells of it: in a group that is idle nothing was delivered of that
        age, and who comes to it must believe the next word all the same."""
        previous, _ = self._accepted[source]
        if previous < timestamp < MAX_TIMESTAMP:
            self._accepted[source] = (timestamp, now)

    def follow(self, source: MemberId, timestamp: int, now: int) -> None:
        """A source whose timestamps start from here, unless they are known already."""
        self._accepted.setdefault(source, (timestamp, now))

    def forget(self, source: MemberId) -> None:
        self._accepted.pop(source, None)

    def admits(self, source: MemberId, timestamp: int, now: int) -> bool:
        """Whether to believe a timestamp; one that is believed is the source's previous one from now on."""
        previous, at = self._accepted[source]
        delivered, delivered_at = self._delivered
        limit = max(previous + timestamp_span(now - at), delivered + timestamp_span(now - delivered_at))
        if timestamp > limit + self._bound:
            return False
        if timestamp > previous:
            self._accepted[source] = (timestamp, now)
        return True

    def delivered(self, timestamp: int, now: int) -> None:
        """The group's time as of the last message delivered here."""
        if timestamp > self._delivered[0]:
            self._delivered = (timestamp, now)
