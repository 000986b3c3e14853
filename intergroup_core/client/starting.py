"""Reaching the site's agent: the one that is there, else one that this starts."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from os import PathLike
from pathlib import Path

from intergroup_core.client.directories import SiteDirectories, site_directories
from intergroup_core.client.lock import SiteLock
from intergroup_core.errors import AgentUnavailable
from intergroup_core.runtime.home import HOME_VARIABLE

START_SECONDS = 30.0
"""How long an agent may take to start."""
CONNECT_SECONDS = 10.0
"""How long an agent that listens may take to accept."""
IDLE_S = 600.0
MAX_WORDS = 4_096


def reach_agent(
    home: str | PathLike[str] | None = None, *, start: bool = True, idle_s: float = IDLE_S, advertise: str = ""
) -> socket.socket:
    """A connection to the site's agent, which is started where none is there; AgentUnavailable where that fails."""
    directories = site_directories(home)
    found = _connected(directories)
    if found is not None:
        return found
    if not start:
        raise AgentUnavailable(f"no agent runs for the site in {directories.state}; the next client starts one")
    directories.make()
    # Of many clients that come at once one starts the agent, the others wait for it. The lock goes with its process.
    with SiteLock(directories.starting):
        found = _connected(directories)
        if found is None:
            _start(directories, home, idle_s, advertise)
            found = _connected(directories)
    if found is None:
        raise AgentUnavailable(f"the agent of the site in {directories.state} ended at once; see {directories.output}")
    return found


def _connected(directories: SiteDirectories) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    connection.settimeout(CONNECT_SECONDS)
    try:
        connection.connect(str(directories.socket))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except TimeoutError:
        connection.close()
        holder = SiteLock(directories.lock).holder()
        raise AgentUnavailable(
            f"the agent of the site in {directories.state} (process {holder}) does not answer; end that process, and "
            "the next client starts another"
        ) from None
    except OSError as error:
        connection.close()
        raise AgentUnavailable(
            f"cannot reach the agent at {directories.socket}: {error.strerror}; set {HOME_VARIABLE} to a directory of "
            "your own"
        ) from error
    connection.settimeout(None)
    return connection


def _start(directories: SiteDirectories, home: str | PathLike[str] | None, idle_s: float, advertise: str) -> None:
    here, there = os.pipe()
    try:
        command = [sys.executable, "-m", "intergroup_core.agent", _home_text(home), str(idle_s), str(there), advertise]
        # A process of its own: nothing of the client's goes with it but the pipe in which it says that it is ready.
        with directories.output.open("ab") as output:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
                pass_fds=(there,),
                env=_environment(),
                check=False,
                timeout=START_SECONDS,
            )
        os.close(there)
        there = -1
        words = _words(here, time.monotonic() + START_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AgentUnavailable(f"the agent of the site in {directories.state} does not start: {error}") from error
    finally:
        os.close(here)
        if there >= 0:
            os.close(there)
    if words != "ready":
        said = words or f"it says why in {directories.output}"
        if (found := _connected(directories)) is not None:
            found.close()  # somebody else's took the lock meanwhile, by hand or from a service: that is as good
            return
        raise AgentUnavailable(f"the agent of the site in {directories.state} does not start: {said}")


def _words(pipe: int, deadline: float) -> str:
    """What the agent says once it is ready, or why it is not; nothing where it ended in silence."""
    said = b""
    while len(said) < MAX_WORDS:
        if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError("it said nothing in time")
        piece = os.read(pipe, MAX_WORDS)
        if not piece:
            break
        said += piece
    return said.decode(errors="replace")


def _home_text(home: str | PathLike[str] | None) -> str:
    return str(Path(home).expanduser().absolute()) if home is not None else ""


def _environment() -> dict[str, str]:
    """The client's, with the paths it found its modules by: it may have been started in a special way."""
    environment = dict(os.environ)
    paths = [path for path in sys.path if path]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    home = environment.get(HOME_VARIABLE)
    if home:
        environment[HOME_VARIABLE] = str(Path(home).expanduser().absolute())
    return environment
