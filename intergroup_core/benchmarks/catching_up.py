"""A site with an empty disk fetches a group's log from another site while the group goes on sending."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import itertools
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import intergroup_core as ig
from intergroup_core.benchmarks.channel import Fields, hear, say
from intergroup_core.benchmarks.figures import Case
from intergroup_core.benchmarks.processes import BenchmarkFailed, Workers
from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.client.directories import site_directories
from intergroup_core.client.lock import SiteLock
from intergroup_core.config import Config
from intergroup_core.errors import AgentUnavailable

RECORD_BYTES = 10_000
AT_A_TIME = 500
"""Records that are handed over at once to fill the log."""
PULSE_SECONDS = 0.005
"""Between two records of the group while the transfer goes on."""
PULSE = b"pulse"
QUIET_SECONDS = 2.0
"""How long stalls are watched before the transfer, to compare."""
STOP_SECONDS = 30.0
PATIENCE_SECONDS = 120.0
SITES = ("sender", "reader", "late")


async def run_catching_up(
    *, megabytes: int, interface: str, directory: Path | None, progress: Callable[[str], None]
) -> list[Case]:
    with tempfile.TemporaryDirectory(dir=directory, prefix="ig-") as place, _agents_of(Path(place)):
        common: Fields = {
            "group": f"bench-{time.monotonic_ns()}",
            "interface": interface,
            "retention_bytes": 4_000_000 * megabytes + (1 << 30),
        }
        return await _run(Path(place), megabytes, common, progress)


async def _run(place: Path, megabytes: int, common: Fields, progress: Callable[[str], None]) -> list[Case]:
    async with Workers() as workers:
        sender = await workers.start("sender", role="pulse", home=str(place / "sender"), megabytes=megabytes, **common)
        await sender.answer("ready")
        reader = await workers.start("reader", role="watch", home=str(place / "reader"), **common)
        await reader.answer("ready")
        progress(f"filling a log with {megabytes} MB")
        sender.tell(kind="fill")
        filled = await sender.answer("filled", PATIENCE_SECONDS + megabytes)
        progress("the group by itself")
        reader.tell(kind="begin")
        await asyncio.sleep(QUIET_SECONDS)
        reader.tell(kind="end")
        quiet = await reader.answer("stalled")
        progress("a site with an empty disk catches up")
        reader.tell(kind="begin")
        late = await workers.start(
            "late", role="catch-up", home=str(place / "late"), expected_bytes=filled["bytes"], **common
        )
        caught = await late.answer("caught up", PATIENCE_SECONDS + megabytes)
        reader.tell(kind="end")
        busy = await reader.answer("stalled")
    if caught["digest"] != filled["digest"]:
        raise BenchmarkFailed("the site that came late has other bytes than were sent")
    rate = filled["bytes"] / caught["seconds"] / 1e6
    details = {"compared_bytes": filled["bytes"], "seconds": caught["seconds"]}
    return [
        Case(
            name="transfer to an empty site",
            value=rate,
            unit="MB/s",
            ceiling=filled["bytes_per_s"] / 1e6,
            details=details,
        ),
        Case(
            name="longest stall of deliveries",
            value=busy["longest_ms"],
            unit="ms",
            ceiling=quiet["longest_ms"],
            details={"deliveries": busy["deliveries"]},
        ),
    ]


@contextmanager
def _agents_of(place: Path) -> Iterator[None]:
    """Whatever happens, the agents of these sites end before their directories go."""
    try:
        yield
    finally:
        for site in SITES:
            home = place / site
            if not home.exists():
                continue
            with suppress(AgentUnavailable), Connection.to_agent(home, start=False) as connection:
                connection.request(Kind.STOP, timeout=STOP_SECONDS)
            with SiteLock(site_directories(home).lock):  # an agent holds it as long as it lives
                pass


def _config(task: Fields) -> Config:
    config = Config()
    return dataclasses.replace(
        config,
        network=dataclasses.replace(config.network, interface=task["interface"]),
        log=dataclasses.replace(config.log, retention_bytes=task["retention_bytes"]),
    )


def pulse(task: Fields) -> None:
    """Fills the group's log when told, then sends a small record again and again."""
    with ig.open(task["group"], sender=True, home=task["home"], config=_config(task), reads=False) as member:
        say(kind="ready")
        hear()
        digest, count = hashlib.blake2b(), task["megabytes"] * 1_000_000 // RECORD_BYTES
        begin = time.monotonic()
        for first in range(0, count, AT_A_TIME):
            records = [number.to_bytes(8, "little") * (RECORD_BYTES // 8) for number in range(first, first + AT_A_TIME)]
            records = records[: count - first]
            for record in records:
                digest.update(record)
            member.send_many(records, ack="delivered")
        size = count * RECORD_BYTES
        rate = size / (time.monotonic() - begin)
        say(kind="filled", bytes=size, digest=digest.hexdigest(), bytes_per_s=rate)
        while True:
            member.send(PULSE)
            # A sender of a steady rate is what is measured: the reader looks for pauses between its records.
            time.sleep(PULSE_SECONDS)


def watch(task: Fields) -> None:
    """Notes how long nothing was delivered at most, between two orders."""
    with ig.open(task["group"], home=task["home"], config=_config(task)) as member:
        seen: list[float] = []

        def read() -> None:
            seen.extend(time.monotonic() for event in member.batches() if event.kind == "data")

        threading.Thread(target=read, daemon=True).start()
        say(kind="ready")
        while True:
            hear()
            seen.clear()
            begin = time.monotonic()
            hear()
            times = [begin, *seen, time.monotonic()]
            longest = max(later - earlier for earlier, later in itertools.pairwise(times))
            say(kind="stalled", longest_ms=longest * 1_000, deliveries=len(times) - 2)


def catch_up(task: Fields) -> None:
    """Reads everything that was sent before it came."""
    digest, size = hashlib.blake2b(), 0
    begin = time.monotonic()
    with ig.open(task["group"], home=task["home"], config=_config(task), start="earliest") as member:
        for event in member.batches():
            if isinstance(event, ig.Batch) and event.offsets[-1] != len(PULSE) * len(event):
                digest.update(event.data[: int(event.offsets[-1])].data)
                size += int(event.offsets[-1])
            if size >= task["expected_bytes"]:
                break
        say(kind="caught up", digest=digest.hexdigest(), seconds=time.monotonic() - begin)
        hear()
