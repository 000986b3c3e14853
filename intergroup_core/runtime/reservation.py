"""Blocks of a file that grows, reserved ahead of its end: the kernel then finds them at once, not page by page."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache

FAST_BYTES = 4 << 20
"""A file that has grown to this is taken for one that goes on growing; smaller ones take no more than they hold."""
AHEAD_BYTES = 16 << 20
"""How far ahead blocks are reserved: the most that a process which is killed leaves unused behind a file's end."""

_KEEP_SIZE = 1
"""fallocate(2): the file is no longer than before, so whoever reads it sees nothing of this."""


class Reservation:
    """What is reserved of one file. Where the system has no such call or no room, the file grows as any other.

    Blocks that it has already, because it was used before, need not be reserved.
    """

    __slots__ = ("_opened", "_upto")

    def __init__(self, opened: int, upto: int = 0) -> None:
        self._opened = opened
        self._upto: int | None = upto
        """None once the system refused."""

    def ahead_of(self, size: int, wanted: int) -> None:
        """So many bytes are about to be written behind so many."""
        if self._upto is None or size < FAST_BYTES or size + wanted <= self._upto:
            return
        length = wanted + AHEAD_BYTES
        self._upto = size + length if _reserve(self._opened, size, length) else None

    def release(self, size: int) -> None:
        """Give back what lies behind the end of the file, reserved by this process or by one that was killed."""
        if size >= FAST_BYTES:
            with suppress(OSError):  # it is only room, and goes with the file
                os.ftruncate(self._opened, size)


def _reserve(opened: int, offset: int, length: int) -> bool:
    fallocate = _fallocate()
    if fallocate is None:
        return False
    return bool(fallocate(opened, _KEEP_SIZE, ctypes.c_int64(offset), ctypes.c_int64(length)) == 0)


@cache
def _fallocate() -> Callable[..., int] | None:
    """The system's own: that of `os` would change the length of the file."""
    return getattr(ctypes.CDLL(None), "fallocate", None)
