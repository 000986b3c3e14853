"""Members that a site's agent runs, as tests use them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import intergroup_core as ig
from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.ids import Service
from intergroup_core.log.manifest import read_manifest
from intergroup_core.log.reader import LogReader
from intergroup_core.log.verification import verify
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.stream_store import StreamStore
from tests.integration.groups import PATIENCE_SECONDS, loopback

QUICK = loopback(membership={"bootstrap_wait_ms": 250, "linger_ms": 60})


def opened(group: str, home: Path, **options: Any) -> ig.BlockingMember:
    return ig.open(group, **({"config": QUICK, "home": home, "timeout": PATIENCE_SECONDS} | options))


def read_until(member: ig.BlockingMember, holds: Callable[[Any], bool]) -> list[Any]:
    """Events up to the first for which something holds."""
    events: list[Any] = []
    while not events or not holds(events[-1]):
        events.append(member.read(timeout=PATIENCE_SECONDS))
        assert events[-1] is not None, events
    return events


def read_values(member: ig.BlockingMember, count: int) -> list[bytes]:
    values: list[bytes] = []
    while len(values) < count:
        event = member.read(timeout=PATIENCE_SECONDS)
        assert event is not None
        if isinstance(event, ig.Message):
            values.append(event.value)
    return values


def status_of(home: Path) -> dict[str, Any]:
    with Connection.to_agent(home, start=False) as connection:
        found: dict[str, Any] = connection.request(Kind.STATUS, timeout=PATIENCE_SECONDS)
    return found


def until(holds: Callable[[], bool], otherwise: Callable[[], object] = lambda: "") -> None:
    """What only the agent notices has no event here; the second says what is to be told where it never does."""
    waited = threading.Event()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if holds():
            return
        waited.wait(0.02)
    raise AssertionError(f"not in time: {otherwise()}")


def logs_of(home: Path, group: str | None = None) -> list[Path]:
    """The logs of a site, or what it has of one group, the oldest first."""
    if group is not None:
        return [Path(disk.where) for disk in StreamStore(home / "logs").parts(group, Service.RTO)]
    return sorted(manifest.parent for manifest in (home / "logs").rglob("manifest"))


def records_in(log: Path) -> int:
    """How many records a log holds, every one of them sound."""
    disk = FileDisk(log)
    assert not verify(disk, read_manifest(disk)).damages
    reader = LogReader(disk)
    return sum(entry.header.records for entry in reader.entries(reader.first))
