"""The life of an agent: it takes the site's lock, listens, serves until nobody needs it, and leaves its groups."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import socket
import time
from collections.abc import Sequence
from typing import Any

from intergroup_core.agent.server import Server
from intergroup_core.agent.streams import Streams
from intergroup_core.client.directories import SiteDirectories
from intergroup_core.client.lock import SiteLock
from intergroup_core.config import Config
from intergroup_core.errors import AgentUnavailable
from intergroup_core.ids import Service
from intergroup_core.version import VERSION

_log = logging.getLogger(__name__)

RETAIN_SECONDS = 2.0
"""How often logs are looked at for what may go."""
SAY_AGAIN = 5
"""Of these times subscriptions are said to other sites again."""
LEAVE_SECONDS = 8.0
"""How long the members may take to leave when the agent ends."""
ENDING_SECONDS = 2.0
"""How much longer the rest of an end may take."""
LOOK_SECONDS = 0.02
"""How often it is looked whether an agent that ends has ended."""


class Daemon:
    """One site's agent."""

    def __init__(
        self,
        directories: SiteDirectories,
        *,
        idle_s: float,
        advertise: str = "",
        keep: Sequence[str] = (),
        config: Config | None = None,
    ) -> None:
        self._directories = directories
        self._idle_s = idle_s
        self._lock = SiteLock(directories.lock)
        self._keep = keep
        self._config = config or Config()
        self._streams = Streams(f"{socket.gethostname()}-{os.getpid()}", directories, advertise)
        self._server = Server(self._streams, self.status, self.stop)
        self._server.changed = self._used
        self._started = time.time()
        self._stopped = asyncio.Event()
        self._idle: asyncio.TimerHandle | None = None
        self._why = ""

    async def run(self, ready: Any = None) -> None:
        """Serve until told to stop or idle; AgentUnavailable where this site has an agent already."""
        self._directories.make()
        await self._take_lock()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, f"signal {number.name}")
        try:
            for group in self._keep:
                await self._streams.prepare(self._config)
                self._streams.keep(group, Service.RTO, self._config)
            await self._server.listen(self._directories.socket)
            self._used()
            if ready is not None:
                ready()
            _log.info("agent of site %s, process %d, listens", self._directories.state, os.getpid())
            retaining = asyncio.create_task(self._retain())
            await self._stopped.wait()
            retaining.cancel()
        finally:
            _log.info("agent of site %s ends: %s", self._directories.state, self._why)
            await self._server.close()
            await self._streams.leave_all(LEAVE_SECONDS)
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
            self._lock.release()

    async def _take_lock(self) -> None:
        """An agent that is on its way out has no socket any more; until it has left its groups it is waited for."""
        deadline = time.monotonic() + LEAVE_SECONDS + ENDING_SECONDS
        told = False
        while not self._lock.take():
            if self._directories.socket.exists() or time.monotonic() > deadline:
                raise AgentUnavailable(
                    f"this site ({self._directories.state}) has an agent already, process {self._lock.holder()}; "
                    "use that one, or end it with `intergroup agent --stop`"
                )
            if not told:
                _log.info("waits until process %s has ended", self._lock.holder())
                told = True
            await asyncio.sleep(LOOK_SECONDS)
        self._lock.sign()

    def stop(self) -> None:
        self._end("asked to")

    def status(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "pid": os.getpid(),
            "site": str(self._directories.state),
            "socket": str(self._directories.socket),
            "uptime_s": round(time.time() - self._started, 3),
            "idle_s": self._idle_s,
            "clients": sorted(session.pid for session in self._server.sessions if session.handles),
            "serves": [f"{address}:{port}" for address, port in self._streams.keepers.ports.items()],
            "streams": [stream.status() for stream in self._streams],
            "kept": self._streams.kept(),
        }

    def _end(self, why: str) -> None:
        self._why = self._why or why
        self._stopped.set()

    def _used(self) -> None:
        """A client came or went: the time in which nobody is here begins anew."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if not self._server.sessions and not self._stopped.is_set() and not self._streams.keeps:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._idle_s, self._end, f"nobody was here for {self._idle_s:g} s")

    async def _retain(self) -> None:
        for number in itertools.count(1):
            await asyncio.sleep(RETAIN_SECONDS)
            self._streams.retain()
            if number % SAY_AGAIN == 0:
                self._streams.subscriptions.say_again()
