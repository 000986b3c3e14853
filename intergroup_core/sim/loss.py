"""Which datagrams a link loses: each on its own, or in bursts."""

from __future__ import annotations

from random import Random


class UniformLoss:
    """Every datagram is lost with the same chance."""

    def __init__(self, rng: Random, loss: float) -> None:
        self._random = rng.random
        self._loss = loss

    def loses(self) -> bool:
        return self._random() < self._loss


class BurstyLoss:
    """Gilbert and Elliott's two states: a good one that loses nothing and a bad one that loses everything.

    Chosen so that the long-run loss is `loss` and a bad stretch lasts `mean_burst` datagrams on average.
    """

    def __init__(self, rng: Random, loss: float, mean_burst: float) -> None:
        self._random = rng.random
        self._leave_bad = 1 / max(mean_burst, 1.0)
        self._leave_good = min(1.0, self._leave_bad * loss / max(1 - loss, 1e-9))
        self._bad = self._random() < loss

    def loses(self) -> bool:
        lost = self._bad
        if self._random() < (self._leave_bad if self._bad else self._leave_good):
            self._bad = not self._bad
        return lost
