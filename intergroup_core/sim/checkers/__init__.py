"""The properties of delivery, one function each; every one returns the first violation or None."""

from __future__ import annotations

from collections.abc import Callable

from intergroup_core.sim.checkers.causality import causal_order, reliable_causal
from intergroup_core.sim.checkers.delivery import integrity, no_duplication, self_delivery
from intergroup_core.sim.checkers.history import History
from intergroup_core.sim.checkers.liveness import buffers_drain, delivery_liveness
from intergroup_core.sim.checkers.order import (
    ascending,
    fifo,
    nothing_skipped,
    promises_kept,
    reliable_fifo,
    total_order,
)
from intergroup_core.sim.checkers.stability import stability_is_true
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.trace import Trace

Checker = Callable[[History], Violation | None]

CHECKERS: tuple[Checker, ...] = (
    integrity,
    no_duplication,
    self_delivery,
    fifo,
    reliable_fifo,
    total_order,
    ascending,
    promises_kept,
    nothing_skipped,
    causal_order,
    reliable_causal,
    stability_is_true,
    delivery_liveness,
    buffers_drain,
)


def check(trace: Trace) -> list[Violation]:
    """The first violation of every property that a trace breaks."""
    history = History(trace)
    return [violation for checker in CHECKERS if (violation := checker(history)) is not None]


__all__ = ["CHECKERS", "Checker", "History", "Violation", "check"]
