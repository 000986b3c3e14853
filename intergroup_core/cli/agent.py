"""`intergroup agent`: the site's agent in the foreground, and how to ask or end one that runs."""

from __future__ import annotations

import asyncio
import json as encoding
import logging
import sys
from typing import Annotated

import typer

from intergroup_core.agent.daemon import Daemon
from intergroup_core.cli.ending import write_line
from intergroup_core.cli.network import Interface, Settings, network_config
from intergroup_core.cli.status import report
from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.client.directories import site_directories
from intergroup_core.client.lock import SiteLock
from intergroup_core.config import Config
from intergroup_core.errors import AgentUnavailable
from intergroup_core.runtime.home import HOME_VARIABLE

STOP_SECONDS = 30.0
MAX_IDLE_S = 1e9
"""An agent that was started by hand is to stay."""
EXIT_NO_AGENT = 3

Directory = Annotated[
    str | None, typer.Option("--home", help="The site's directory.", show_default=f"{HOME_VARIABLE}, else the user's")
]


def agent(
    status: Annotated[bool, typer.Option("--status", help="Say what the agent that runs does, and end.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="End the agent that runs; it leaves its groups.")] = False,
    json: Annotated[bool, typer.Option("--json", help="With --status: print one object.")] = False,
    idle: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds without a client after which it ends.", show_default="never"),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Be in this group for its log alone, and never end; may be repeated.")
    ] = None,
    advertise: Annotated[
        str, typer.Option(help="Address at which other sites reach this one's logs.", show_default="the interface's")
    ] = "",
    home: Directory = None,
    interface: Interface = None,
    config: Settings = None,
) -> None:
    """Run this site's agent in the foreground: it is in groups for local processes, and keeps their logs.

    The first process that needs an agent starts one by itself; run it by hand, or under systemd, to have it stay. With
    --keep and an agent that runs, that one is told to keep the group. With --status and --stop it ends with 3 where no
    agent runs.

    Example: intergroup agent --keep prices
    """
    if status and stop:
        raise typer.BadParameter("--status and --stop do not go together")
    if status:
        _ask_status(home, json=json)
    elif stop:
        _stop(home)
    else:
        logging.basicConfig(
            level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
        )
        settings = network_config(config, interface, "multicast", "")
        if keep and (running := _running(home)) is not None:
            _tell_to_keep(running, keep, settings)
            return
        daemon = Daemon(
            site_directories(home),
            idle_s=MAX_IDLE_S if idle is None else idle,
            advertise=advertise or settings.agent.advertise,
            keep=keep or (),
            config=settings,
        )
        asyncio.run(daemon.run())


def _running(home: str | None) -> Connection | None:
    try:
        return Connection.to_agent(home, start=False)
    except AgentUnavailable:
        return None


def _tell_to_keep(running: Connection, groups: list[str], settings: Config) -> None:
    with running as connection:
        for group in groups:
            wanted = {"group": group, "delivery": "rto", "sender": False, "config": settings.to_mapping()}
            kept = connection.request(Kind.KEEP, wanted, STOP_SECONDS)
            write_line(f"{kept['name']} keeps {group} in {kept['path']}")


def _ask_status(home: str | None, *, json: bool) -> None:
    with _reached(home) as connection:
        found = connection.request(Kind.STATUS, timeout=STOP_SECONDS)
    write_line(encoding.dumps(found) if json else report(found))


def _stop(home: str | None) -> None:
    directories = site_directories(home)
    with _reached(home) as connection:
        connection.request(Kind.STOP, timeout=STOP_SECONDS)
    # The agent holds the lock until it has left its groups: whoever gets it knows that it has gone.
    with SiteLock(directories.lock):
        pass


def _reached(home: str | None) -> Connection:
    try:
        return Connection.to_agent(home, start=False)
    except AgentUnavailable as error:
        print(f"intergroup: {error}", file=sys.stderr)
        raise typer.Exit(EXIT_NO_AGENT) from None
