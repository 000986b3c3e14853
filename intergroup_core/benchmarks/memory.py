"""Resident size at full speed, and of a sender whose receiver stops reading."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from intergroup_core.benchmarks.figures import Case
from intergroup_core.benchmarks.processes import BenchmarkFailed, Worker, Workers
from intergroup_core.benchmarks.throughput import (
    DRAIN_SECONDS,
    Place,
    Progress,
    Shape,
    check_sums,
    start_group,
    sum_up,
)

SAMPLE_SECONDS = 0.25
_MEGABYTE = 1e6


@dataclass(slots=True)
class Sizes:
    """Resident sizes of a process in time."""

    samples: list[tuple[float, int]] = field(default_factory=list)

    def largest(self, begin: float, end: float) -> float:
        return max((size for at, size in self.samples if begin <= at <= end), default=0) / _MEGABYTE


async def run_memory(*, seconds: float, warm_up: float, stall: float, interface: str, progress: Progress) -> list[Case]:
    place = Place(interface=interface)
    cases = await _steady(Shape(name="memory"), [place] * 2, seconds, warm_up, progress)
    return cases + await _stalled(Shape(name="stalled"), [place] * 2, stall, progress)


async def _steady(shape: Shape, places: list[Place], seconds: float, warm_up: float, progress: Progress) -> list[Case]:
    """Full speed: the largest size in the last quarter against that of the quarter after the warm-up."""
    async with Workers() as workers:
        members = await start_group(workers, shape, places, seconds=seconds, warm_up=warm_up)
        begin = time.monotonic_ns()
        for member in members:
            member.tell(kind="go", at=begin)
        sizes = await _watch(members, seconds, progress)
        sent = [await members[0].answer("sent", DRAIN_SECONDS)]
        for member in members:
            member.tell(kind="expect", records=sent[0]["records"])
        results = [await member.answer("result", DRAIN_SECONDS) for member in members]
    check_sums(results[1:], sum_up(sent))
    quarter = (seconds - warm_up) / 4
    return [
        Case(
            name=f"{role} at full speed, last quarter against the first after warm-up",
            value=size.largest(seconds - quarter, seconds),
            unit="MB",
            ceiling=size.largest(warm_up, warm_up + quarter),
            details={"gigabytes_sent": sent[0]["bytes"] / 1e9} if role == "sender" else {},
        )
        for role, size in zip(("sender", "receiver"), sizes, strict=True)
    ]


async def _watch(members: list[Worker], seconds: float, progress: Progress) -> list[Sizes]:
    sizes = [Sizes() for _ in members]
    begin = time.monotonic()
    while (at := time.monotonic() - begin) < seconds:
        for member, size in zip(members, sizes, strict=True):
            size.samples.append((at, member.resident_bytes()))
        shown = ", ".join(f"{size.samples[-1][1] / _MEGABYTE:.0f}" for size in sizes)
        progress(f"full speed: {at:.0f} of {seconds:.0f} s, resident MB {shown}")
        await asyncio.sleep(SAMPLE_SECONDS)
    return sizes


async def _stalled(shape: Shape, places: list[Place], seconds: float, progress: Progress) -> list[Case]:
    """A receiver stops reading for a while: its sender must wait and neither process may grow."""
    async with Workers() as workers:
        members = await start_group(
            workers,
            shape,
            places,
            role=lambda number: "flood" if number == 0 else "stall",
            seconds=3 * seconds,
            warm_up=0.0,
        )
        sender, receiver = members
        sender.tell(kind="go", at=time.monotonic_ns())
        await _watch(members, seconds, lambda text: progress(f"a receiver that reads: {text}"))
        receiver.tell(kind="stop")
        await receiver.answer("noted")
        sizes = await _watch(members, seconds, lambda text: progress(f"a receiver that stopped reading: {text}"))
        receiver.tell(kind="look")
        stopped = await receiver.answer("noted")
        receiver.tell(kind="read")
        await receiver.answer("noted")
        sent = await sender.answer("sent", 2 * seconds + DRAIN_SECONDS)
        for member in members:
            member.tell(kind="expect", records=sent["records"])
        await sender.answer("result", DRAIN_SECONDS)
        result = await receiver.answer("result", DRAIN_SECONDS)
    check_sums([result], sum_up([sent]))
    if sent["bytes"] <= stopped["bytes"] + stopped["waiting"]:
        raise BenchmarkFailed("nothing more was sent after the receiver read again")
    half = seconds / 2
    return [
        Case(
            name=f"{role} while the receiver does not read, second half against the first",
            value=size.largest(half, seconds),
            unit="MB",
            ceiling=size.largest(0.0, half),
            details={"megabytes_waiting": stopped["waiting"] / _MEGABYTE} if role == "receiver" else {},
        )
        for role, size in zip(("sender", "receiver"), sizes, strict=True)
    ]
