"""One deadline on an event loop, to the microsecond: loop timers of asyncio round up to whole milliseconds."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Callable
from contextlib import suppress

_libc = ctypes.CDLL(None, use_errno=True)
_ABSOLUTE = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


BUSY_NS = 200_000
"""Deadlines said at shorter intervals come from a busy loop."""


class Alarm:
    """Calls back once its deadline has come; a timerfd, so that a wait of 100 microseconds is not one of 1,000.

    Deadlines move on with every stimulus, and setting a timer that is the machine's next costs as much as
    sending a burst: on a busy loop it is set only after a turn in which no new deadline was said.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        self._deadline: int | None = None
        self._armed: int | None = None
        self._said_at = 0
        self._moved = False
        self._turn: asyncio.Handle | None = None
        self._spec = _TimerSpec()
        self._fd = _libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "no timerfd")
        loop.add_reader(self._fd, self._fired)

    def wake_by(self, deadline: int | None) -> None:
        """Call back at a time of the monotonic clock, in nanoseconds, and no more at the one said before."""
        self._deadline = deadline
        self._moved = True
        if deadline is None or self._turn is not None:
            return
        now = time.monotonic_ns()
        busy = now - self._said_at < BUSY_NS
        self._said_at = now
        if busy or deadline <= now:
            self._turn = self._loop.call_soon(self._next_turn)
        elif self._armed is None or deadline < self._armed:
            self._arm(deadline)

    def _next_turn(self) -> None:
        self._turn = None
        deadline = self._deadline
        if deadline is None:
            return
        now = time.monotonic_ns()
        if deadline <= now:
            self._deadline = None
            self._callback()
        elif self._moved:
            self._moved = False
            self._said_at = now
            self._turn = self._loop.call_soon(self._next_turn)
        elif self._armed is None or deadline < self._armed:
            self._arm(deadline)

    def _arm(self, deadline: int) -> None:
        self._armed = deadline
        value = self._spec.value
        value.seconds, value.nanoseconds = divmod(deadline, 1_000_000_000)
        _libc.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(self._spec), None)

    def _fired(self) -> None:
        with suppress(BlockingIOError):  # set anew between the wake-up and here
            os.read(self._fd, 8)
            self._armed = None
        if self._turn is None:
            self._moved = False
            self._next_turn()

    def close(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
