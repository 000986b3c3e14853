"""The time of one stimulus, read once."""

from __future__ import annotations

import time

from intergroup_core.ids import Instant


def now() -> Instant:
    """Monotonic time for timers and wall time for the hybrid clock."""
    return Instant(time.monotonic_ns(), time.time_ns())
