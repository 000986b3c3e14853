"""The properties of views and delivery, one function each; every one returns the first violation or None."""

from __future__ import annotations

from collections.abc import Callable

from intergroup_core.sim.checkers.causality import causal_order, reliable_causal
from intergroup_core.sim.checkers.delivery import integrity, no_duplication, self_delivery
from intergroup_core.sim.checkers.history import History
from intergroup_core.sim.checkers.liveness import buffers_drain, delivery_liveness, membership_precision
from intergroup_core.sim.checkers.order import (
    ascending,
    fifo,
    nothing_skipped,
    promises_kept,
    reliable_fifo,
    total_order,
)
from intergroup_core.sim.checkers.primaries import one_primary
from intergroup_core.sim.checkers.stability import stability_is_true
from intergroup_core.sim.checkers.synchrony import same_view_delivery, virtual_synchrony
from intergroup_core.sim.checkers.views import (
    initial_view,
    local_monotonicity,
    self_inclusion,
    transitional_set,
    view_agreement,
)
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.trace import Trace

Checker = Callable[[History], Violation | None]

CHECKERS: tuple[Checker, ...] = (
    self_inclusion,
    local_monotonicity,
    initial_view,
    view_agreement,
    transitional_set,
    integrity,
    no_duplication,
    self_delivery,
    same_view_delivery,
    virtual_synchrony,
    fifo,
    reliable_fifo,
    total_order,
    ascending,
    promises_kept,
    nothing_skipped,
    causal_order,
    reliable_causal,
    stability_is_true,
    membership_precision,
    delivery_liveness,
    buffers_drain,
    one_primary,
)


def check(trace: Trace) -> list[Violation]:
    """The first violation of every property that a trace breaks."""
    history = History(trace)
    return [violation for checker in CHECKERS if (violation := checker(history)) is not None]


__all__ = ["CHECKERS", "Checker", "History", "Violation", "check"]
