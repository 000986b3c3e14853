"""An executor's own receivers: its site's agent is in the group, so that what a task reads is here before it is asked.

A Python worker keeps its conversation with the agent, and with it the lease, for as long as Spark keeps the worker. The
receiver itself lingers a while longer, for the next worker.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import ClassVar

from intergroup_core.client.fetching import Keeper
from intergroup_core.client.planning import PlanningClient
from intergroup_core.config import Config
from intergroup_core.errors import IntergroupError
from intergroup_core.ids import Service

OPEN_SECONDS = 10.0
ASK_SECONDS = 5.0
LINGER_S = 120.0
"""How long a receiver stays after the last worker that used it."""

Key = tuple[str, Service]


class Receivers:
    """Of one worker process; a process that was forked from it has its own."""

    _clients: ClassVar[dict[Key, PlanningClient]] = {}
    _pid: ClassVar[int] = 0

    @classmethod
    def logs(cls, group: str, service: Service, config: Config) -> str | None:
        """Where this site's logs are, its receiver being in the group from now on; None where it cannot be."""
        client = cls._client(group, service, config)
        return str(client.logs) if client is not None else None

    @classmethod
    def keepers(cls, group: str, service: Service, config: Config, executors: str) -> list[Keeper]:
        """Who has something of the group now, as far as this site's agent finds."""
        client = cls._client(group, service, config) if executors != "fetch" else None
        if client is None:
            return []
        try:
            return client.keepers(ASK_SECONDS)
        except (IntergroupError, TimeoutError):
            cls._forget(group, service)
            return []

    @classmethod
    def _client(cls, group: str, service: Service, config: Config) -> PlanningClient | None:
        if cls._pid != os.getpid():
            cls._pid, cls._clients = os.getpid(), {}
        client = cls._clients.get((group, service))
        if client is not None and client.alive:
            return client
        cls._forget(group, service)
        lingering = replace(config, agent=replace(config.agent, linger_s=max(LINGER_S, config.agent.linger_s)))
        try:
            client = PlanningClient(group, service, lingering, timeout=OPEN_SECONDS, holds=False)
        except (IntergroupError, TimeoutError, OSError):
            return None  # no route, no right, no agent: the task fetches instead
        cls._clients[group, service] = client
        return client

    @classmethod
    def _forget(cls, group: str, service: Service) -> None:
        client = cls._clients.pop((group, service), None)
        if client is not None:
            client.close()
