"""Several hosts on one machine: network namespaces on a bridge, removed again whatever happens."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from intergroup_core.errors import NetworkUnavailable

PREFIX = "igb"
SUBNET = "10.77.0"
"""Only ever assigned inside the namespaces."""
_NAMESPACES = Path("/run/netns")
_IP = shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or "ip"


def why_no_namespaces() -> str | None:
    """What is missing to build a testbed here, if anything."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not Path(_IP).exists():
        return "network namespaces need the `ip` command of iproute2"
    try:
        with _namespace(f"{PREFIX}{os.getpid()}p"):
            return None
    except NetworkUnavailable as error:
        return str(error)


def inside(host: str) -> tuple[str, ...]:
    """The prefix of a command that runs on a host of the testbed."""
    return (_IP, "netns", "exec", host)


@contextmanager
def hosts_on_a_bridge(count: int) -> Iterator[list[str]]:
    """Hosts with an interface e0 each, on one bridge that itself lies in a namespace; yields their names."""
    _remove_what_the_dead_left()
    base = f"{PREFIX}{os.getpid()}"
    with _namespace(f"{base}s"):
        _run("-n", f"{base}s", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        _run("-n", f"{base}s", "link", "set", "br0", "up")
        names = [f"{base}h{number}" for number in range(1, count + 1)]
        with _hosts(names, f"{base}s"):
            yield names


@contextmanager
def _hosts(names: list[str], switch: str) -> Iterator[None]:
    if not names:
        yield
        return
    *earlier, name = names
    with _hosts(earlier, switch), _namespace(name):
        port = f"p{len(names)}"
        _run("-n", name, "link", "add", "e0", "type", "veth", "peer", "name", port, "netns", switch)
        _run("-n", switch, "link", "set", port, "master", "br0", "up")
        _run("-n", name, "addr", "add", f"{SUBNET}.{len(names)}/24", "dev", "e0")
        _run("-n", name, "link", "set", "e0", "up")
        _run("-n", name, "link", "set", "lo", "up")
        _run("-n", name, "route", "add", "224.0.0.0/4", "dev", "e0")
        yield


def _remove_what_the_dead_left() -> None:
    """A benchmark that was killed outright could not remove its namespaces; their names carry its process id."""
    for path in _NAMESPACES.glob(f"{PREFIX}*"):
        owner = re.fullmatch(rf"{PREFIX}(\d+)[a-z]\d*", path.name)
        if owner and not Path(f"/proc/{owner[1]}").exists():
            _run("netns", "del", path.name)


@contextmanager
def _namespace(name: str) -> Iterator[None]:
    _run("netns", "add", name)
    try:
        yield
    finally:
        _run("netns", "del", name)


def _run(*arguments: str) -> None:
    done = subprocess.run([_IP, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NetworkUnavailable(f"`ip {' '.join(arguments)}` failed: {done.stderr.strip()}")
