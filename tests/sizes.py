"""How much a test tries: enough to notice that something broke, or, in `make fuzz`, as much as finds what is rare."""

from __future__ import annotations

import os

LONG = "INTERGROUP_LONG_TESTS"
"""The variable that `make fuzz` sets."""


def sized(usual: int, at_length: int) -> int:
    """Seeds, examples or rounds of a test."""
    return at_length if os.environ.get(LONG) else usual
