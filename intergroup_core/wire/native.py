"""The compiled passes over frames, where they were built; elsewhere numpy does the same (docs/decisions/0020)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_MEANING = 2
"""Of what the functions take; a module that was built from an older source is not used."""


class Compiled(Protocol):
    """What the module has."""

    def seal(self, frames: NDArray[np.uint64], firsts: NDArray[np.uint64], /) -> None:
        """Write the checksum of every frame; `firsts` are their first words with it."""

    def fill(
        self,
        frames: NDArray[np.uint64],
        header: NDArray[np.uint64],
        payload: NDArray[np.uint8],
        firsts: NDArray[np.uint64],
        /,
    ) -> None:
        """Frames from the header of the first one and all their payloads, sealed."""

    def check(self, frames: NDArray[np.uint64], sound: NDArray[np.bool_], /) -> None:
        """Which frames carry their checksum."""

    def scan(
        self,
        frames: NDArray[np.uint64],
        sound: NDArray[np.bool_],
        firsts: NDArray[np.uint64],
        seams: NDArray[np.int64],
        /,
    ) -> int:
        """The same, their first words, and where a header is not that of the frame before counted up: so many."""

    def total(self, frame: bytes | bytearray | memoryview | NDArray[np.uint64], /) -> int:
        """The sum of one frame, as it stands, of which the checksum is made."""

    def digest(self, firsts: NDArray[np.uint64], base: int, /) -> int:
        """The sum over frames of a number made from its first word, the base and its place (log/digest.py)."""


def _built() -> Compiled | None:
    try:
        from intergroup_core.wire import _native
    except ImportError:
        return None
    return _native if _native.MEANING == _MEANING else None


compiled: Compiled | None = _built()
"""None where numpy does it."""
