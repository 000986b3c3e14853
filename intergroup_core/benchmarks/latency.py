"""Delivery delay of one busy sender among idle ones, next to the round trip of a bare multicast ping."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from intergroup_core.benchmarks.channel import Fields
from intergroup_core.benchmarks.figures import Case
from intergroup_core.benchmarks.processes import Workers
from intergroup_core.benchmarks.throughput import Place, Progress, Shape, raw_address, start_group

RECORD_BYTES = 64
GAP_MS = 5.0
"""Time between two records; longer than any delivery takes, so that none waits for another."""


async def run_latency(*, count: int, members: int, loss: float, interface: str, progress: Progress) -> list[Case]:
    """The median and the 99th percentile in rto, each next to that of the raw round trip of the same run."""
    places = [Place(interface=interface)] * members
    progress("the raw round trip")
    raw = await measure_round_trips(places, count)
    progress("the group")
    found = await measure_delays(places, count, loss=0.0)
    cases = _cases("rto", found, raw)
    if loss:
        progress(f"the group with {loss:.1%} of datagrams lost")
        lossy = await measure_delays(places, count, loss=loss)
        cases += _cases(f"rto, {loss:.1%} loss", lossy, raw)
    return cases


def _cases(name: str, found: Fields, raw: Sequence[float]) -> list[Case]:
    delays = found["microseconds"]
    details = {
        "at_the_sender": percentile(found["own"], 50),
        "repairs": found["repairs"],
        "messages": len(found["own"]),
    }
    return [
        Case(
            name=f"{name}, median",
            value=percentile(delays, 50),
            unit="µs",
            ceiling=percentile(raw, 50),
            details=details,
        ),
        Case(name=f"{name}, 99th percentile", value=percentile(delays, 99), unit="µs", ceiling=percentile(raw, 99)),
    ]


def percentile(values: Sequence[float], rank: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[rank - 1] if len(values) > 1 else float("nan")


async def measure_round_trips(places: list[Place], count: int) -> list[float]:
    """Microseconds from a ping to the last of its answers."""
    address = raw_address()
    common: Fields = {"host": address.host, "port": address.port, "offload": False, "frame_bytes": RECORD_BYTES}
    async with Workers() as workers:
        for number, place in enumerate(places[1:], 2):
            await workers.start(
                f"answerer {number}",
                within=place.within,
                role="raw-answer",
                interface=place.interface,
                number=number,
                pinger=1,
                **common,
            )
        pinger = await workers.start(
            "pinger",
            within=places[0].within,
            role="raw-ping",
            interface=places[0].interface,
            number=1,
            answerers=len(places) - 1,
            count=count,
            gap_ms=GAP_MS,
            **common,
        )
        await workers.ready()
        pinger.tell(kind="go")
        trips: list[float] = (await pinger.answer("result", count * GAP_MS / 1_000 + 60))["microseconds"]
    return trips


async def measure_delays(places: list[Place], count: int, *, loss: float) -> Fields:
    """Microseconds from the hand-over of a record to its delivery, at every member."""
    shape = Shape(name="latency", senders=len(places), receivers=0, record_bytes=RECORD_BYTES)
    async with Workers() as workers:
        members = await start_group(workers, shape, places, role="stamp", count=count, gap_ms=GAP_MS, loss=loss)
        for member in members:
            member.tell(kind="go", at=time.monotonic_ns())
        await members[0].answer("sent", count * GAP_MS / 1_000 + 60)
        for member in members:
            member.tell(kind="expect", records=count)
        results = [await member.answer("result") for member in members]
    return {
        "microseconds": [delay for result in results for delay in result["microseconds"]],
        "own": results[0]["microseconds"],
        "repairs": sum(result["counters"]["repairs_sent"] for result in results),
    }
