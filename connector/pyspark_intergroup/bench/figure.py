"""A figure of the benchmark of the source."""

from __future__ import annotations

from dataclasses import dataclass

PATIENCE_S = 300.0
"""For anything that is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A value next to what it is compared with."""

    name: str
    value: float
    unit: str
    beside: float
