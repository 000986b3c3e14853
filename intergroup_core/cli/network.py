"""What every command that uses the network takes: interface, transport, peers, settings."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from intergroup_core.config import Config
from intergroup_core.errors import ConfigError

Group = Annotated[str, typer.Argument(help="Name of the group.", show_default=False)]
Name = Annotated[str | None, typer.Option(help="What others see beside this member's id.", show_default="host and pid")]
Interface = Annotated[
    str | None,
    typer.Option(help="Name or address of the network interface.", show_default="the default route's, else loopback"),
]
Transport = Annotated[str, typer.Option(help="How members reach each other; multicast is all there is for now.")]
Peers = Annotated[str, typer.Option(help="Addresses of members, for a transport that needs them; none does for now.")]
Settings = Annotated[
    Path | None, typer.Option("--config", help="TOML file of settings, such as a copy of conf/lan.toml.")
]


def network_config(settings: Path | None, interface: str | None, transport: str, peers: str) -> Config:
    """The settings of a file and what the command line says instead."""
    if transport != "multicast":
        raise ConfigError(f"--transport is {transport!r}; only multicast is possible for now")
    if peers:
        raise ConfigError("--peers names members to reach by unicast, which is not possible yet; leave it out")
    config = Config.load(settings) if settings is not None else Config()
    if interface is not None:
        config = dataclasses.replace(config, network=dataclasses.replace(config.network, interface=interface))
    return config
