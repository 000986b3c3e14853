"""Plain counts of what happened at one member, for metrics, traces and tests."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """Monotone counts; `dropped` is by cause, `transitions` and `restarts` of the membership protocol by reason."""

    dropped: dict[str, int] = field(default_factory=dict)
    frames_sent: int = 0
    bytes_sent: int = 0
    messages_sent: int = 0
    records_sent: int = 0
    fragments_sent: int = 0
    keepalives_sent: int = 0
    reports_sent: int = 0
    requests_sent: int = 0
    requests_suppressed: int = 0
    repairs_sent: int = 0
    frames_from_log: int = 0
    """Looked up there because the buffers had dropped them."""
    repairs_suppressed: int = 0
    repair_bytes_sent: int = 0
    losses_detected: int = 0
    frames_received: int = 0
    bytes_received: int = 0
    repairs_received: int = 0
    duplicates_received: int = 0
    messages_delivered: int = 0
    bytes_delivered: int = 0
    run_splits: int = 0
    keepalive_deliveries: int = 0
    repairs_ignored: int = 0
    unreliable_incomplete: int = 0
    clock_refused: int = 0
    suspicions: int = 0
    bandwidth_cuts: int = 0
    changes_sent: int = 0
    membership_sent: int = 0
    membership_bytes_sent: int = 0
    membership_ignored: int = 0
    frames_held: int = 0
    views_installed: int = 0
    repairs_of_membership: int = 0
    gaps: int = 0
    transitions: dict[str, int] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)

    def drop(self, cause: str, count: int = 1) -> None:
        """Count input that was dropped, under its cause."""
        self.dropped[cause] = self.dropped.get(cause, 0) + count
