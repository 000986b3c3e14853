"""`intergroup subscription`: named subscriptions of this site, and how to end one."""

from __future__ import annotations

import json as encoding
from typing import Annotated

import typer

from intergroup_core.api.events import time_of
from intergroup_core.cli.ending import write_line
from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.client.directories import site_directories
from intergroup_core.errors import ConfigError
from intergroup_core.log.cut_codec import cut_fields
from intergroup_core.runtime.home import HOME_VARIABLE
from intergroup_core.runtime.subscription_store import SubscriptionStore

ASK_SECONDS = 30.0

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)

Directory = Annotated[
    str | None, typer.Option("--home", help="The site's directory.", show_default=f"{HOME_VARIABLE}, else the user's")
]


@app.command("ls")
def list_all(
    json: Annotated[bool, typer.Option("--json", help="One object a line.")] = False, home: Directory = None
) -> None:
    """Print every subscription that this site knows, and how far it has come.

    Example: intergroup subscription ls
    """
    for each in SubscriptionStore(site_directories(home).subscriptions).all():
        assert each.cut is not None
        if json:
            fields = {
                "group_name": each.group,
                "delivery": each.service.value,
                "name": each.name,
                "cut": cut_fields(each.cut),
                "committed": time_of(each.stamp).isoformat(),
            }
            write_line(encoding.dumps(fields))
        else:
            said = f"{time_of(each.stamp):%Y-%m-%d %H:%M:%S}"
            write_line(f"{each.group} ({each.service.value})  {each.name}  done up to {each.cut}, said {said}")


@app.command("rm")
def remove(
    group: Annotated[str, typer.Argument(help="Name of the group.", show_default=False)],
    name: Annotated[str, typer.Argument(help="Name of the subscription.", show_default=False)],
    delivery: Annotated[str, typer.Option(help="uu, rso or rto.")] = "rto",
    home: Directory = None,
) -> None:
    """End a subscription, here and at the other sites that hold the stream: nothing is held for it any more.

    Example: intergroup subscription rm prices nightly-audit
    """
    with Connection.to_agent(home) as connection:
        known = connection.request(Kind.COMMIT, [group, delivery, name, None], ASK_SECONDS)
    if not known:
        raise ConfigError(f"there is no subscription {name!r} to {group} ({delivery}); see intergroup subscription ls")
