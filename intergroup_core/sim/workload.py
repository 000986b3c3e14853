"""What simulated applications send: single records, bundles, runs of equal ones, large ones, answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from intergroup_core.sim.scheduler import Scheduler

SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """How much a sender's application sends, and of what kind."""

    rate: float = 40.0
    """Messages per second of one sender, on average."""
    size: int = 100
    """Bytes of an ordinary record."""
    large_size: int = 5_000
    """Bytes of a large record at most."""
    large: float = 0.02
    """Part of the sendings that are large records, of many fragments."""
    series: float = 0.7
    """Part of the sendings that are a series of equal-sized messages, which arrive as one run."""
    bundle: float = 0.1
    """Part of the sendings that are many small records in one call."""
    answer: float = 0.0
    """Chance that a delivery makes a sender's application send at once."""
    duty: float = 1.0
    """Part of every second in which applications send; in the rest of it the group is idle."""
    step_ns: int = 0
    """Where set, sendings happen at multiples of this time only, so that senders act in the same instant."""

    SERIES = (5, 11)
    """Messages in a series."""
    BUNDLE = (5, 40)
    """Records in a bundle."""


class Application:
    """One sender's application: sends at random moments until it is told to stop."""

    def __init__(
        self,
        workload: Workload,
        scheduler: Scheduler,
        rng: Random,
        send: Callable[[Sequence[bytes]], bool],
        *,
        busy: float = 1.0,
    ) -> None:
        self._workload = workload
        self._scheduler = scheduler
        self._rng = rng
        self._send = send
        self._stopped = False
        self._waiting: list[list[bytes]] = []
        series = (1 - workload.large - workload.bundle) * workload.series * (sum(workload.SERIES) / 2 - 1)
        self._gap_ns = round(workload.duty * SECOND * (1 + series) / (workload.rate * busy))
        self.blocked = 0
        """Sendings that had to wait for room."""

    def start(self) -> None:
        self._scheduler.after(self._next_gap(), self._act)

    def stop(self) -> None:
        self._stopped = True
        self._waiting.clear()

    def room(self) -> None:
        """The endpoint takes records again."""
        while self._waiting and self._send(self._waiting[0]):
            self._waiting.pop(0)

    def delivered(self) -> None:
        """Something arrived that this application may answer."""
        if not self._stopped and self._workload.answer and self._rng.random() < self._workload.answer:
            self._scheduler.after(0, self._submit, [self._rng.randbytes(self._workload.size)])

    def _next_gap(self) -> int:
        now = self._scheduler.now
        at = now + round((0.3 + 0.7 * self._rng.expovariate(1)) * self._gap_ns)
        if at % SECOND > self._workload.duty * SECOND:
            at += round((1 - self._workload.duty) * SECOND)
        if step := self._workload.step_ns:
            at = max(now + step - now % step, (at + step // 2) // step * step)
        return at - now

    def _act(self) -> None:
        if self._stopped:
            return
        for records in self._sending():
            self._submit(records)
        self._scheduler.after(self._next_gap(), self._act)

    def _sending(self) -> list[list[bytes]]:
        workload, rng = self._workload, self._rng
        kind = rng.random()
        if kind < workload.large:
            return [[rng.randbytes(rng.randint(workload.large_size // 4, workload.large_size))]]
        if kind < workload.large + workload.bundle:
            sizes = [rng.randrange(workload.size) for _ in range(rng.randint(*workload.BUNDLE))]
            return [[rng.randbytes(size) for size in sizes]]
        if rng.random() < workload.series:
            return [[rng.randbytes(workload.size)] for _ in range(rng.randint(*workload.SERIES))]
        return [[rng.randbytes(rng.randint(0, 2 * workload.size))]]

    def _submit(self, records: list[bytes]) -> None:
        if self._stopped:
            return
        if self._waiting or not self._send(records):
            self.blocked += 1
            # An application that must wait does one thing after the other.
            if len(self._waiting) < 100:
                self._waiting.append(records)
