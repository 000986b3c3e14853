"""How the timer parameters follow what happened to earlier losses (figures 3.1 and 3.2).

Delays are counted in distances and duplicates per loss (R3). The nesting of figure 3.1 is lost, and figure 3.2 does not
look at duplicates at all, so both are rebuilt around the adaptive algorithm they come from (SRM: Floyd, Jacobson,
McCanne, Liu and Zhang, SIGCOMM 1995), with the figures' steps and ranges. Duplicates decide first:

- a member that asked, and then heard a duplicate from farther away, is the closest one: its interval moves down;
- too many duplicates: the interval widens, and starts later (a request's only if delays are short enough to afford it);
- few duplicates: the interval narrows (a repair's only if delays are long), and starts sooner if delays are long;
- between the two a repair's starts later if delays are short.
"""

from __future__ import annotations

from intergroup_core.config import RepairConfig

FINE, MIDDLE, COARSE = 0.05, 0.1, 0.5
"""The steps of both figures."""

REQUEST_LOW = (0.5, 2.0)
REQUEST_HIGH = (1.0, 100.0)
REPAIR_LOW = (0.5, 10.0)
REPAIR_HIGH = (1.0, 100.0)

PATIENCE = 1.5
"""Usual answer times that a request waits before it is repeated."""


class _Averages:
    """What the last losses were like: exponentially weighted, the newest with weight alpha."""

    __slots__ = ("_alpha", "_counting", "_delay_target", "_duplicate_target", "_epsilon", "delay", "duplicates")

    def __init__(self, config: RepairConfig) -> None:
        self._alpha = config.alpha
        self._epsilon = config.epsilon
        self._delay_target = config.delay_target
        self._duplicate_target = config.duplicate_target
        self._counting = 0.0
        self.duplicates = 0.0
        self.delay: float | None = None

    def count_duplicates(self, losses: float) -> None:
        self._counting += losses

    def close_period(self) -> None:
        """A period lasts from one loss to the next, so the average is of duplicates per loss (T3.2.2)."""
        self.duplicates += self._alpha * (self._counting - self.duplicates)
        self._counting = 0.0

    def took(self, distances: float) -> None:
        self.delay = distances if self.delay is None else self.delay + self._alpha * (distances - self.delay)

    @property
    def crowded(self) -> bool:
        return self.duplicates >= self._duplicate_target

    @property
    def lonely(self) -> bool:
        return self.duplicates < self._duplicate_target - self._epsilon

    @property
    def slow(self) -> bool:
        return self.delay is not None and self.delay >= self._delay_target

    @property
    def prompt(self) -> bool:
        return self.delay is not None and self.delay < self._delay_target - self._epsilon


def _clamp(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])


class RequestAdaptation:
    """lowReqParam and highReqParam of one source's losses (figure 3.1).

    The thesis has one pair per process. Whether this member is the closest to ask depends on the source, hence a pair
    for each.
    """

    __slots__ = ("_averages", "_closest", "high", "low")

    def __init__(self, config: RepairConfig) -> None:
        self._averages = _Averages(config)
        self._closest = False
        self.low = config.request_low
        self.high = config.request_high

    @property
    def average_duplicates(self) -> float:
        return self._averages.duplicates

    @property
    def average_delay(self) -> float | None:
        """In distances; None before the first loss."""
        return self._averages.delay

    def noticed(self) -> None:
        """Before the first timer of a new loss is set."""
        averages = self._averages
        averages.close_period()
        closest, self._closest = self._closest, False
        if averages.delay is None:
            return
        if closest:
            self._move(-FINE, -MIDDLE)
        elif averages.crowded:
            self._move(FINE if averages.prompt else 0.0, COARSE)
        elif averages.lonely:
            self._move(-FINE if averages.slow else 0.0, -MIDDLE)

    def sent(self, waited: float) -> None:
        """This member was the first it knows of to ask, after so many distances: it may well be the closest one."""
        self._averages.took(waited)
        self._move(-FINE, 0.0)

    def spared(self, waited: float) -> None:
        """After so many distances another's request was heard, or the frames came."""
        self._averages.took(waited)

    def duplicate(self, part: float, *, of_mine_from_farther: bool) -> None:
        """A request was heard for what had been asked for already: this part of one loss."""
        self._averages.count_duplicates(part)
        self._closest = self._closest or of_mine_from_farther

    def _move(self, low: float, high: float) -> None:
        self.low = _clamp(self.low + low, REQUEST_LOW)
        self.high = _clamp(self.high + high, REQUEST_HIGH)


class RepairAdaptation:
    """lowRtxParam and highRtxParam (figure 3.2), with duplicate repairs counted as in SRM.

    The figure moves the interval up whenever repairs are cancelled early or delays are short. Without a count of
    duplicates that has no end: a member whose repairs are never needed would, once they are, answer a hundred times too
    late. So those moves are made only while duplicates are not few.
    """

    __slots__ = ("_averages", "high", "low")

    def __init__(self, config: RepairConfig) -> None:
        self._averages = _Averages(config)
        self.low = config.repair_low
        self.high = config.repair_high

    @property
    def average_duplicates(self) -> float:
        return self._averages.duplicates

    @property
    def average_delay(self) -> float | None:
        """In distances; None before the first repair."""
        return self._averages.delay

    def scheduled(self) -> None:
        """Before the timer of a new repair is set."""
        averages = self._averages
        averages.close_period()
        if averages.delay is None:
            return
        if averages.crowded:
            self._move(MIDDLE, COARSE)
        elif averages.lonely:
            if averages.slow:
                self._move(-FINE, -MIDDLE)
        elif averages.prompt:
            self._move(FINE, 0.0)

    def sent(self, waited: float) -> None:
        self._averages.took(waited)
        self._move(-FINE, 0.0)

    def cancelled(self, waited: float) -> None:
        averages = self._averages
        averages.took(waited)
        if averages.slow:
            self._move(0.0, -FINE)
        elif not averages.lonely:
            self._move(0.0, MIDDLE)

    def duplicate(self, part: float) -> None:
        """A repair was heard of what had been repaired already: this part of what one request asked for."""
        self._averages.count_duplicates(part)

    def _move(self, low: float, high: float) -> None:
        self.low = _clamp(self.low + low, REPAIR_LOW)
        self.high = _clamp(self.high + high, REPAIR_HIGH)


class AnswerTime:
    """How long, in distances, a source's frames take to come once they were asked for.

    3^i times a lowered lowReqParam can be less than a round trip: the closest member would then repeat every request
    before its answer can have come. So a repetition also waits for the usual answer.
    """

    __slots__ = ("_alpha", "distances")

    def __init__(self, config: RepairConfig) -> None:
        self._alpha = config.alpha
        self.distances = 2.0 + config.repair_low + config.repair_high / 2

    def took(self, distances: float, *, ambiguous: bool) -> None:
        """After more than one request nobody knows which was answered: believe the first, but only so far."""
        if ambiguous:
            distances = min(distances, PATIENCE * self.distances)
        self.distances += self._alpha * (distances - self.distances)

    @property
    def patience(self) -> float:
        return PATIENCE * self.distances
