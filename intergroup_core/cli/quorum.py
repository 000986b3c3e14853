"""`intergroup quorum`: what a site remembers of a group's last agreed view, and the operator's way out of it (M11)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from intergroup_core.cli.ending import write_line
from intergroup_core.cli.network import Group
from intergroup_core.errors import ConfigError
from intergroup_core.ids import ViewId
from intergroup_core.membership.quorum import QuorumRecord, key_of
from intergroup_core.runtime.home import HOME_VARIABLE, FileStateStore, Home, chosen_home

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)

Directory = Annotated[str | None, typer.Option("--home", help=f"The site's directory; else {HOME_VARIABLE}.")]


@app.command()
def show(group: Group, home: Directory = None) -> None:
    """Print the last view this site agreed to, its sites, and attempts whose outcome it does not know.

    Example: intergroup quorum show prices --home /var/lib/intergroup
    """
    with _store(group, home) as (site, store):
        record = _record(store)
        write_line(f"last agreed view  {record.last or 'none'}, number {record.number}")
        for key in sorted(record.sites):
            write_line(f"  site            {_shown(key, site)}")
        for pending in record.pending:
            shown = ", ".join(_shown(key, site) for key in sorted(pending.sites))
            write_line(f"unknown outcome   attempt {pending.attempt:x}, number {pending.number}, of {shown}")


@app.command()
def override(
    group: Group,
    home: Directory = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it: the other sites of the last view are gone for good.")
    ] = False,
) -> None:
    """Let this site go on alone: it forgets the others, and a view with it in it has the quorum.

    Only for when the other sites will never come back: if some of them go on elsewhere, the group has two primaries.
    Stop this site's member first; start it again afterwards.

    Example: intergroup quorum override prices --home /var/lib/intergroup --yes
    """
    with _store(group, home) as (site, store):
        record = _record(store)
        if record.last is None:
            raise ConfigError(f"this site has agreed to no view of group {group} yet; there is nothing to override")
        if not yes:
            others = len(record.sites - {key_of(site)})
            raise ConfigError(f"this gives up on {others} other sites; if they will never come back, say so with --yes")
        last = record.last
        view = ViewId(last.start, last.leader, last.leader_seq + 1)
        mine = QuorumRecord(view, record.highest + 1, frozenset({key_of(site)}))
        store.save(mine.to_bytes())
        write_line(f"site {site} has the quorum of group {group} from its next start on")


def _shown(key: int, site: str) -> str:
    return f"{key:016x}, this one" if key == key_of(site) else f"{key:016x}"


@contextmanager
def _store(group: str, home: str | None) -> Iterator[tuple[str, FileStateStore]]:
    directory = chosen_home(home)
    if directory is None:
        raise ConfigError(f"a site without a directory remembers nothing; name it with --home or {HOME_VARIABLE}")
    site = Home(directory)
    store = site.state_of(group)
    if store is None:
        raise ConfigError(f"a member of group {group} is running from {directory}; stop it first")
    try:
        yield site.identity(), store
    finally:
        store.close()


def _record(store: FileStateStore) -> QuorumRecord:
    saved = store.load()
    if saved is None:
        return QuorumRecord()
    record = QuorumRecord.from_bytes(saved)
    if record is None:
        raise ConfigError("what this site remembers of the group cannot be read; remove it and it starts without")
    return record
