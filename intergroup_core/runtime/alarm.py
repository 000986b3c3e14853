"""One deadline on an event loop, to the microsecond: loop timers of asyncio round up to whole milliseconds."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Callable

_libc = ctypes.CDLL(None, use_errno=True)
_ABSOLUTE = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Alarm:
    """Calls back once its deadline has come; a timerfd, so that a wait of 100 microseconds is not one of 1,000."""

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        self._armed: int | None = None
        self._soon: asyncio.Handle | None = None
        self._spec = _TimerSpec()
        self._fd = _libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "no timerfd")
        loop.add_reader(self._fd, self._fired)

    def wake_by(self, deadline: int | None) -> None:
        """Call back at a time of the monotonic clock, in nanoseconds, or somewhat before.

        An earlier deadline stays armed: deadlines move on with every stimulus, and a call too early costs
        less than setting the timer anew each time.
        """
        if deadline is None or (self._armed is not None and self._armed <= deadline):
            return
        if deadline <= time.monotonic_ns():
            self._armed = 0
            self._soon = self._loop.call_soon(self._ring)
            return
        self._armed = deadline
        value = self._spec.value
        value.seconds, value.nanoseconds = divmod(max(deadline, 1), 1_000_000_000)
        _libc.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(self._spec), None)

    def _fired(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return  # moved to a later time between the wake-up and here
        if self._armed != 0:
            self._ring()

    def _ring(self) -> None:
        self._armed = None
        self._callback()

    def close(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
