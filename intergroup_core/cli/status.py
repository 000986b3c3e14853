"""`intergroup status`: what this site's agent does."""

from __future__ import annotations

import json as encoding
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from intergroup_core.cli.ending import write_line
from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.client.directories import site_directories
from intergroup_core.errors import AgentUnavailable
from intergroup_core.runtime.home import HOME_VARIABLE

ASK_SECONDS = 10.0


def status(
    json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
    home: Annotated[
        str | None,
        typer.Option("--home", help="The site's directory.", show_default=f"{HOME_VARIABLE}, else the user's"),
    ] = None,
) -> None:
    """Say whether this site's agent runs, its groups, its logs, and who reads or holds them up.

    It ends with 0 whether one runs or not: an agent comes with the first process that needs it.

    Example: intergroup status --json
    """
    directories = site_directories(home)
    try:
        with Connection.to_agent(home, start=False) as connection:
            found = connection.request(Kind.STATUS, timeout=ASK_SECONDS)
    except AgentUnavailable as error:
        found = {"pid": None, "site": str(directories.state), "streams": [], "clients": [], "reason": str(error)}
    write_line(encoding.dumps(found) if json else report(found))


def report(found: Mapping[str, Any]) -> str:
    if found["pid"] is None:
        return f"site {found['site']}: no agent runs"
    clients = len(found["clients"])
    lines = [
        f"site {found['site']}: agent {found['version']}, process {found['pid']}, up {found['uptime_s']:.0f} s, "
        f"{clients} client{'s' * (clients != 1)}"
    ]
    if found["serves"]:
        lines.append(f"  serves its logs to other sites at {', '.join(found['serves'])}")
    for stream in found["streams"]:
        lines += _stream_lines(stream)
    for kept in found["kept"]:
        lines.append(
            f"  on disk: {kept['group']} ({kept['delivery']}), {kept['bytes']:,} bytes in {kept['parts']} "
            f"part{'s' * (kept['parts'] != 1)}"
        )
    return "\n".join(lines)


def _stream_lines(stream: Mapping[str, Any]) -> list[str]:
    log = stream["log"]
    lines = [
        f"  {stream['group']} ({stream['delivery']}): {stream['state']} {stream['name']} {stream['id']}, "
        f"{stream['clients']} client{'s' * (stream['clients'] != 1)}",
        f"    log  {log['bytes']:,} bytes in {log['path']}, entries {log['first']} to {log['stop']}",
    ]
    if log["refusal"]:
        lines.append(f"    senders are held up: {log['refusal']}")
    if stream["failure"]:
        lines.append(f"    out of the group: {stream['failure']}")
    for reader in stream["readers"]:
        line = f"    reader {reader['pid']} ({reader['slow_reader']}): {reader['behind_entries']} entries behind"
        if reader["blocks"]:
            line += ", holds up the senders"
        if reader["skips"]:
            line += f", skipped {reader['skipped_bytes']:,} bytes in {reader['skips']} gaps"
        lines.append(line)
    return lines
