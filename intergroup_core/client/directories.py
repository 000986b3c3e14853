"""Where a site's agent lives: its socket and lock, and what outlives it.

Without INTERGROUP_HOME the directories are the user's own, keyed by machine and container: a home directory that
several machines share, or an image that several containers start from, does no harm.
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from intergroup_core.errors import ConfigError
from intergroup_core.runtime.home import HOME_VARIABLE, chosen_home

MAX_SOCKET_PATH = 100
"""Bytes that a socket's address takes, with some to spare."""
_PRIVATE = 0o700
_MACHINE_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


@dataclass(frozen=True, slots=True)
class SiteDirectories:
    """The two directories of one site."""

    runtime: Path
    """Gone after a restart of the machine at the latest."""
    state: Path
    """The site's identity, its membership records and its logs."""

    @property
    def socket(self) -> Path:
        return self.runtime / "agent.sock"

    @property
    def lock(self) -> Path:
        return self.runtime / "agent.lock"

    @property
    def starting(self) -> Path:
        """Locked by a client that starts the agent."""
        return self.runtime / "starting.lock"

    @property
    def output(self) -> Path:
        """What an agent that nobody watches says."""
        return self.state / "agent.log"

    @property
    def subscriptions(self) -> Path:
        return self.state / "subscriptions"

    @property
    def ledgers(self) -> Path:
        return self.state / "ledgers"

    @property
    def entrance(self) -> Path:
        """How others come to the logs."""
        return self.state / "entrance"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    def make(self) -> None:
        """For their owner only; a directory that somebody else could write to is refused."""
        for directory in (self.state, self.runtime):  # one may lie in the other
            try:
                directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
                found = directory.stat()
            except OSError as error:
                raise ConfigError(
                    f"cannot make {directory} ({error.strerror}); "
                    f"set {HOME_VARIABLE} to a directory that can be written"
                ) from error
            if found.st_uid != os.getuid():
                raise ConfigError(
                    f"{directory} belongs to user {found.st_uid}, not to this one ({os.getuid()}); "
                    f"set {HOME_VARIABLE} to a directory of your own"
                )
            if stat.S_IMODE(found.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
                raise ConfigError(f"{directory} can be written by others; `chmod 700 {directory}` first")


def site_directories(home: str | PathLike[str] | None = None) -> SiteDirectories:
    """The directories of the site that a caller or INTERGROUP_HOME names, else of this machine or container."""
    chosen = chosen_home(home)
    if chosen is not None:
        chosen = chosen.absolute()
        return SiteDirectories(_short(chosen / "run"), chosen)
    key = machine_key()
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    own = Path(runtime) / "intergroup" / key if runtime else _temporary() / key
    return SiteDirectories(_short(own), state / "intergroup" / key)


def machine_key() -> str:
    """Tells machines and containers apart that share a file system: their names and, where there is one, their id."""
    identity = ""
    for path in _MACHINE_FILES:
        try:
            identity = path.read_text().strip()
            break
        except OSError:
            continue
    return hashlib.blake2b(f"{identity}\0{socket.gethostname()}".encode(), digest_size=8).hexdigest()


def _short(runtime: Path) -> Path:
    """The directory itself, or one in its stead where its path is too long for a socket."""
    if len(os.fsencode(runtime / "agent.sock")) <= MAX_SOCKET_PATH:
        return runtime
    return _temporary() / hashlib.blake2b(os.fsencode(runtime), digest_size=8).hexdigest()


def _temporary() -> Path:
    return Path("/tmp") / f"intergroup-{os.getuid()}"
