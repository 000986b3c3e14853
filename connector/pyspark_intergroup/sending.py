"""The senders of a worker process: its site's agent sends for it, and stays a member from batch to batch.

A Python worker keeps its conversation with the agent, and with it the lease, for as long as Spark keeps the worker. The
member itself lingers a while longer, for the next worker.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from intergroup_core.client.transacting import TransactionClient
from intergroup_core.config import Config
from intergroup_core.errors import AgentUnavailable, IntergroupError
from pyspark_intergroup.write_options import WriteOptions

OPEN_SECONDS = 30.0
"""For the agent to start and to join the group."""
LINGER_S = 120.0
"""How long a sender stays in its group after the last worker that used it."""
MAX_GROUPS = 64
"""That a task writes to, and that a worker stays in; a column that names more is not one of groups."""

Key = tuple[str, str | None, Config]


class Senders:
    """Of one worker process; a process that was forked from it has its own."""

    _clients: ClassVar[OrderedDict[Key, TransactionClient]] = OrderedDict()
    _pid: ClassVar[int] = 0

    @classmethod
    def client(cls, group: str, options: WriteOptions) -> TransactionClient:
        """One that is a member of the group from now on."""
        if cls._pid != os.getpid():
            cls._pid, cls._clients = os.getpid(), OrderedDict()
        key = _key(group, options)
        client = cls._clients.get(key)
        if client is not None and client.alive:
            cls._clients.move_to_end(key)
            return client
        cls.forget(group, options)
        while len(cls._clients) >= MAX_GROUPS:
            _, oldest = cls._clients.popitem(last=False)
            _close(oldest)
        agent = replace(options.config.agent, linger_s=max(LINGER_S, options.config.agent.linger_s))
        config = replace(options.config, agent=agent)
        try:
            client = cls._clients[key] = TransactionClient(group, config, options.agent, timeout=OPEN_SECONDS)
        except TimeoutError:
            raise AgentUnavailable(
                f"this site's agent was not in group {group} within {OPEN_SECONDS:g} s; look at `intergroup status`, "
                "and try again"
            ) from None
        return client

    @classmethod
    def forget(cls, group: str, options: WriteOptions) -> None:
        """What was staged and not asked for must not be taken for the next task's."""
        client = cls._clients.pop(_key(group, options), None)
        if client is not None:
            _close(client)


def _key(group: str, options: WriteOptions) -> Key:
    return group, options.agent, options.config


def _close(client: TransactionClient) -> None:
    with suppress(IntergroupError, OSError):
        client.close()
