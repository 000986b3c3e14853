"""Goodput of groups in processes of their own, each case next to a bare socket loop of the same shape."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intergroup_core.benchmarks.channel import Fields
from intergroup_core.benchmarks.figures import Case, middle_of
from intergroup_core.benchmarks.processes import BenchmarkFailed, Worker, Workers
from intergroup_core.benchmarks.testbed import SUBNET, hosts_on_a_bridge, inside
from intergroup_core.ids import timestamp_at
from intergroup_core.runtime.address import GroupAddress, hashed_address
from intergroup_core.wire import native

DRAIN_SECONDS = 120.0
"""Longest wait for everything sent to be delivered everywhere."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Who takes part in a case, and with what sizes."""

    name: str
    senders: int = 1
    receivers: int = 1
    service: str = "rto"
    offload: bool = True
    frame_bytes: int = 1_400
    record_bytes: int = 1_344
    """A record and its length fill one frame of the default size."""
    hosts: bool = False
    """Whether every member has a network namespace of its own."""
    live: bool = False
    """Whether members find each other, with membership and a control hierarchy, rather than have a view that stays."""
    batches: bool = True
    """Whether records are handed over end to end, as an Arrow column has them, or as a list of bytes objects."""
    compiled: bool = True
    """Whether frames are filled and checked by the compiled passes, where they were built, or by numpy."""
    keeps: str = ""
    """What every member writes to a temporary directory: a `log`, at `os`, or the same bytes to `files`, plainly."""
    by_record: bool = False
    """Whether the figure is records and not bytes a second."""
    beside: str = ""
    """Another case, measured in the same rounds, of which this one's figure is also given as a share."""

    @property
    def members(self) -> int:
        return self.senders + self.receivers

    @property
    def raw_key(self) -> tuple[object, ...]:
        """Shapes with the same key have the same ceiling."""
        return (self.senders, self.receivers, self.offload, self.frame_bytes, self.hosts)


ONE_SENDER = "one sender, rto, GSO/GRO"

SHAPES = (
    Shape(name=ONE_SENDER),
    Shape(name="one sender, rso, GSO/GRO", service="rso", beside=ONE_SENDER),
    Shape(name="one sender, rto, GSO/GRO, logged at os", keeps="log", beside=ONE_SENDER),
    Shape(name="one sender, rto, GSO/GRO, plain files and no log", keeps="files", beside=ONE_SENDER),
    Shape(name="one sender, rto, GSO/GRO, lists of records", batches=False),
    Shape(name="one sender, rto, GSO/GRO, nothing compiled", compiled=False, beside=ONE_SENDER),
    Shape(name="one sender, rto, plain datagrams", offload=False),
    Shape(name="three senders, rto, GSO/GRO", senders=3, receivers=0, beside=ONE_SENDER),
    Shape(name="100-byte records, rto, GSO/GRO", record_bytes=100, by_record=True),
    Shape(name="100-byte records, rto, GSO/GRO, lists of records", record_bytes=100, by_record=True, batches=False),
    Shape(name="one sender, two receivers in namespaces, rto, GSO/GRO", receivers=2, hosts=True),
    Shape(name="one sender, two receivers in namespaces, live, rto, GSO/GRO", receivers=2, hosts=True, live=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where members run: a prefix of their command and the address of their interface."""

    within: tuple[str, ...] = ()
    interface: str = "127.0.0.1"


async def run_throughput(
    shapes: tuple[Shape, ...],
    *,
    seconds: float,
    warm_up: float,
    interface: str,
    progress: Progress,
    rounds: int = 1,
) -> list[Case]:
    """Every case once a round, so that what else the machine does meets all of them; of each the middle round."""
    found: dict[str, list[Case]] = {shape.name: [] for shape in shapes}
    for number in range(1, rounds + 1):
        ceilings: dict[tuple[object, ...], float] = {}
        for shape in shapes:

            def tell(text: str, number: int = number) -> None:
                progress(text if rounds == 1 else f"round {number} of {rounds}, {text}")

            case = await _run_somewhere(shape, ceilings, seconds, warm_up, interface, tell)
            found[shape.name].append(case)
    return [middle_of(found[shape.name], found.get(shape.beside)) for shape in shapes]


async def _run_somewhere(
    shape: Shape,
    ceilings: dict[tuple[object, ...], float],
    seconds: float,
    warm_up: float,
    interface: str,
    progress: Progress,
) -> Case:
    if not shape.hosts:
        places = [Place(interface=interface)] * shape.members
        return await _run_shape(shape, places, ceilings, seconds, warm_up, progress)
    with hosts_on_a_bridge(shape.members) as hosts:
        places = [Place(within=inside(host), interface=f"{SUBNET}.{n}") for n, host in enumerate(hosts, 1)]
        return await _run_shape(shape, places, ceilings, seconds, warm_up, progress)


async def _run_shape(
    shape: Shape,
    places: list[Place],
    ceilings: dict[tuple[object, ...], float],
    seconds: float,
    warm_up: float,
    progress: Progress,
) -> Case:
    if shape.raw_key not in ceilings:
        progress(f"{shape.name}: the raw ceiling")
        ceilings[shape.raw_key] = await measure_raw(shape, places, min(seconds, 2.0))
    progress(f"{shape.name}: the group")
    with ExitStack() as stack:
        more: Fields = {}
        if shape.keeps:
            more["keeps"] = shape.keeps
            more["directory"] = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-logs-"))
        found = await measure_group(shape, places, seconds, warm_up, **more)
        kept = {"written_to": file_system_of(Path(more["directory"]))} if shape.keeps else {}
    raw = ceilings[shape.raw_key]
    details = {
        "repaired_share": found["repaired_share"],
        "requests": found["requests"],
        "checked_records": found["records"],
        "stable_after_ms": found["stability_ms"],
        "most_unstable_mb": found["most_buffered"] / 1e6,
        **({"same_order_at": found["same_order_at"]} if shape.senders > 1 else {}),
        "frames_by": "numpy" if native.compiled is None or not shape.compiled else "compiled passes",
        **kept,
    }
    if shape.by_record:
        return Case(
            name=shape.name,
            value=found["records_per_s"],
            unit="records/s",
            ceiling=raw / shape.record_bytes,
            details=details,
        )
    return Case(name=shape.name, value=found["bytes_per_s"] / 1e6, unit="MB/s", ceiling=raw / 1e6, details=details)


def raw_address() -> GroupAddress:
    """A group of its own for each run, so that runs do not hear each other."""
    return hashed_address(f"bench-raw-{time.monotonic_ns()}")


async def measure_raw(shape: Shape, places: list[Place], seconds: float) -> float:
    """Bytes a second of bare sockets at the slowest receiver, in the same number of processes."""
    address = raw_address()
    common: Fields = {
        "host": address.host,
        "port": address.port,
        "offload": shape.offload,
        "frame_bytes": shape.frame_bytes,
        "seconds": seconds,
        "processes": shape.members,
    }
    async with Workers() as workers:
        if shape.senders > 1:
            members = [
                await workers.start(
                    f"raw process {n}",
                    within=place.within,
                    role="raw-exchange",
                    interface=place.interface,
                    number=n + 1,
                    **common,
                )
                for n, place in enumerate(places)
            ]
            await workers.ready()
            for member in members:
                member.tell(kind="go")
            results = [await member.answer("result") for member in members]
        else:
            receivers = [
                await workers.start(
                    f"raw receiver {n}", within=place.within, role="raw-receive", interface=place.interface, **common
                )
                for n, place in enumerate(places[1:])
            ]
            sender = await workers.start(
                "raw sender", within=places[0].within, role="raw-send", interface=places[0].interface, **common
            )
            await workers.ready()
            sender.tell(kind="go")
            await sender.answer("result")
            results = [await receiver.answer("result") for receiver in receivers]
    return min(result["bytes"] / result["seconds"] if result["seconds"] else 0.0 for result in results)


async def start_group(
    workers: Workers,
    shape: Shape,
    places: list[Place],
    *,
    role: str | Callable[[int], str] = "flood",
    **more: Any,
) -> list[Worker]:
    """The members of a group, ready to be told to go."""
    task: Fields = {
        "group": f"bench-{time.monotonic_ns()}",
        "view_start": timestamp_at(time.time_ns()),
        "senders": shape.senders,
        "receivers": shape.receivers,
        "service": shape.service,
        "offload": shape.offload,
        "frame_bytes": shape.frame_bytes,
        "record_bytes": shape.record_bytes,
        "digest": shape.senders > 1,
        "batches": shape.batches,
        "live": shape.live,
        "compiled": shape.compiled,
        **more,
    }
    members = []
    for number, place in enumerate(places):
        sends = number < shape.senders
        own: Fields = {
            "number": number,
            "interface": place.interface,
            "sends": sends,
            "reads": not sends or shape.senders > 1,
        }
        own["role"] = role(number) if callable(role) else role
        members.append(await workers.start(f"member {number}", within=place.within, **task, **own))
    await workers.ready()
    return members


def file_system_of(path: Path) -> str:
    """What kind of file system a path lies on."""
    mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return max((mount for mount in mounts if path.is_relative_to(mount[0])), key=lambda mount: len(mount[0]))[1]


async def measure_group(shape: Shape, places: list[Place], seconds: float, warm_up: float, **more: Any) -> Fields:
    """Goodput at the slowest member that reads, once every sum was checked against what was sent."""
    async with Workers() as workers:
        members = await start_group(workers, shape, places, seconds=seconds, warm_up=warm_up, **more)
        begin = time.monotonic_ns()
        for member in members:
            member.tell(kind="go", at=begin)
        sent = [await member.answer("sent", seconds + DRAIN_SECONDS) for member in members[: shape.senders]]
        total = sum_up(sent)
        for member in members:
            member.tell(kind="expect", records=total["records"])
        results = [await member.answer("result", DRAIN_SECONDS) for member in members]
    readers = results if shape.senders > 1 else results[shape.senders :]
    check_sums(readers, total)
    orders = {result["order"] for result in readers}
    if len(orders) > 1:
        raise BenchmarkFailed("members delivered the same messages in different orders")
    repaired = sum(result["counters"]["repair_bytes_sent"] for result in results)
    return {
        "bytes_per_s": min(result["bytes_per_s"] for result in readers),
        "records_per_s": min(result["records_per_s"] for result in readers),
        "records": total["records"],
        "repaired_share": repaired / max(1, sum(result["counters"]["bytes_sent"] for result in results)),
        "requests": sum(result["counters"]["requests_sent"] for result in results),
        "same_order_at": len(readers),
        "stability_ms": max(part["stability_ms"] for part in sent),
        "most_buffered": max(result["most_buffered"] for result in results),
        "counters": [result["counters"] for result in results],
        "cpu": [result["cpu_seconds"] for result in results],
    }


def sum_up(sent: list[Fields]) -> Fields:
    return {name: sum(part[name] for part in sent) for name in ("records", "bytes", "first_bytes")}


def check_sums(readers: list[Fields], total: Fields) -> None:
    for reader in readers:
        for name, wanted in total.items():
            if reader[name] != wanted:
                raise BenchmarkFailed(f"a receiver saw {name.replace('_', ' ')} {reader[name]}, sent were {wanted}")
