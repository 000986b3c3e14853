"""`intergroup holders`: sites on whose logs of a group others may rely."""

from __future__ import annotations

import json as encoding
from datetime import UTC, datetime
from typing import Annotated

import typer

from intergroup_core.cli.ending import EXIT_TIMEOUT, leaving_on_signals, write_line
from intergroup_core.cli.network import Group, Interface, Peers, Settings, Transport, network_config
from intergroup_core.client.member import ClientMember
from intergroup_core.errors import ConfigError

Holder = tuple[int, str, bool, int]


def holders(
    group: Group,
    remove: Annotated[
        str | None, typer.Option(help="Let go of the site with this name or key: it is gone for good.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one object a line.")] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for the group.")] = 10.0,
    interface: Interface = None,
    transport: Transport = "multicast",
    peers: Peers = "",
    config: Settings = None,
) -> None:
    """Print the sites that hold a group's log and count for `majority`; one that died counts until it expires.

    Every site that sends to a group holds its log, and so does every one that keeps it (`intergroup agent --keep`). A
    site that leaves in good order says so. One that is gone for good can be removed, so that nobody waits for it.

    Example: intergroup holders prices --remove desk-1
    """
    settings = network_config(config, interface, transport, peers)
    with leaving_on_signals():
        member = ClientMember(group, delivery="rto", sender=False, name=None, config=settings, reads=False)
        try:
            member.joined(timeout)
            found = member.holders()
            if remove is not None:
                site, name, _, _ = _the_one(found, remove, group)
                member.release_holder(site)
                member.flush("sent")
                write_line(f"{name} does not count any more as one that holds the log of group {group}")
                return
        except TimeoutError:
            raise typer.Exit(EXIT_TIMEOUT) from None
        finally:
            member.close()
    for line in _lines(found, json=json):
        write_line(line)


def _lines(found: list[Holder], *, json: bool) -> list[str]:
    width = max((len(name) for _, name, _, _ in found), default=0)
    lines = []
    for site, name, own, said in found:
        at = datetime.fromtimestamp(said / 1_000_000, UTC).isoformat(timespec="seconds")
        if json:
            lines.append(encoding.dumps({"name": name, "key": f"{site:016x}", "this_site": own, "said": at}))
        else:
            lines.append(f"{name:<{width}}  {site:016x}  {at}{'  this site' * own}")
    return lines


def _the_one(found: list[Holder], wanted: str, group: str) -> Holder:
    matching = [holder for holder in found if wanted in (holder[1], f"{holder[0]:016x}")]
    if len(matching) == 1:
        return matching[0]
    if matching:
        keys = ", ".join(f"{site:016x}" for site, _, _, _ in matching)
        raise ConfigError(f"--remove {wanted} could be any of {keys}; name its key")
    known = ", ".join(name for _, name, _, _ in found) or "none"
    raise ConfigError(f"no site {wanted} holds the log of group {group}; those that do: {known}")
