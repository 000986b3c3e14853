"""States of a control process (T2.2.3, T2.6)."""

from __future__ import annotations

from enum import Enum


class ControlState(Enum):
    """Normally a coordinator or a child; between the two it is both, so that control information flows on."""

    STARTING = "starting"
    COORDINATOR = "coordinator"
    TO_CHILD = "to_child"
    CHILD = "child"
    TO_COORDINATOR = "to_coordinator"
    LEFT = "left"
