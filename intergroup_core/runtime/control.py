"""A site's control process on an event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from intergroup_core.effects import Control, ControlEffect, Listen, Lost
from intergroup_core.errors import IntergroupError
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.runtime.alarm import Alarm
from intergroup_core.runtime.clock import now
from intergroup_core.runtime.control_sockets import ControlSockets

_log = logging.getLogger(__name__)


class ControlRunner:
    """Drives a control process. Its members call into it too: `wake` lets it see to what they changed."""

    def __init__(self, process: ControlProcess, sockets: ControlSockets) -> None:
        self.process = process
        self._sockets = sockets
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(self._loop, self._due)
        self._started = False
        self._closed = False

    def start(self) -> None:
        """Begin; the site's first member does."""
        if self._started:
            return
        self._started = True
        for fileno in self._sockets.filenos():
            self._loop.add_reader(fileno, self._readable)
        self._carry_out(self.process.start(now()))

    def wake(self) -> None:
        """Something may be due earlier than it was."""
        if not self._closed:
            self._alarm.wake_by(self.process.next_deadline())

    def close(self) -> None:
        """Say that this site goes, and go."""
        if self._closed:
            return
        self._carry_out(self.process.leave(now()))
        self._end()

    def _end(self) -> None:
        self._closed = True
        for fileno in self._sockets.filenos():
            self._loop.remove_reader(fileno)
        self._alarm.close()
        self._sockets.close()

    # The loop calls these. A hierarchy that fails must not take the members with it: they report themselves then.

    def _readable(self) -> None:
        try:
            for message, nbytes, hops in self._sockets.receive():
                self._carry_out(self.process.receive(message, nbytes, hops, now()))
        except Exception as error:
            self._fail(error)

    def _due(self) -> None:
        try:
            self._carry_out(self.process.tick(now()))
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._closed:
            return
        expected = isinstance(error, IntergroupError)
        _log.error("the control process of this site ends: %s", error, exc_info=None if expected else error)
        self._end()

    def _carry_out(self, effects: Iterable[ControlEffect]) -> None:
        for effect in effects:
            match effect:
                case Control():
                    self._sockets.send(effect)
                case Listen():
                    self._sockets.listen(effect)
                case Lost(sites):
                    _log.info("control processes not heard any more: %s", ", ".join(f"{site:016x}" for site in sites))
        self.wake()
