"""Members whose agents are on hosts of a testbed; their clients are here, for an agent's socket is a file."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import intergroup_core as ig
from intergroup_core.api.blocking import BlockingMember
from intergroup_core.client.directories import site_directories
from intergroup_core.client.member import ClientMember
from intergroup_core.config import Config
from intergroup_core.log.cut import OrderCut
from tests.integration.agents import read_until, until
from tests.integration.groups import PATIENCE_SECONDS, loopback
from tests.integration.hosts import Hosts
from tests.integration.processes import INTERGROUP
from tests.integration.sites import stop_agent

# Tests on hosts go on for minutes in which some say nothing, and are to be senders all the same.
ON_HOSTS = loopback(
    network={"interface": "e0"}, membership={"bootstrap_wait_ms": 250, "linger_ms": 60, "silence_ms": 600_000}
)


@contextmanager
def agent_on(testbed: Hosts, host: int, home: Path) -> Iterator[None]:
    command = (*testbed.within(host), INTERGROUP, "agent", "--home", str(home))
    with subprocess.Popen(command, stderr=subprocess.DEVNULL):
        until(lambda: site_directories(home).socket.exists())
        try:
            yield
        finally:
            stop_agent(home)


def joined_on_host(
    group: str, home: Path, *, name: str | None = None, start: OrderCut | str | None = None, config: Config = ON_HOSTS
) -> BlockingMember:
    """As `ig.open` does, for an interface that only the agent has; one with a name sends."""
    seat = ClientMember(
        group, delivery="rto", sender=name is not None, name=name, config=config, home=home, start=start
    )
    seat.joined(PATIENCE_SECONDS)
    return BlockingMember(seat, reads=True, leave_timeout=PATIENCE_SECONDS)


def until_view(member: BlockingMember, *names: str) -> list[Any]:
    """Events up to a view of just these."""
    return read_until(
        member,
        lambda event: isinstance(event, ig.ViewChange) and {peer.name for peer in event.members} == set(names),
    )


def until_value(member: BlockingMember, value: bytes) -> list[Any]:
    """Events up to one record."""
    return read_until(member, lambda event: getattr(event, "value", None) == value)
