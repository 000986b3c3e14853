"""What happens to a live group, made from names and a seed: who joins when, and what goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from intergroup_core.config import Config
from intergroup_core.ids import Service
from intergroup_core.sim.faults import (
    FAULT_NAMES,
    Change,
    ClockStep,
    Congestion,
    Crash,
    Fault,
    Flap,
    Leave,
    Lossy,
    Partition,
    Pause,
    Restart,
    SlowApplication,
    Split,
    StartSending,
)
from intergroup_core.sim.live_cluster import Seat
from intergroup_core.sim.opposition import opposition, parts

MILLISECOND = 1_000_000
SECOND = 1_000_000_000

CHANGE_NAMES = ("restart", "join", "leave", "flap", "lossy", "silent", "start", "adversary")
LIVE_FAULT_NAMES = (*FAULT_NAMES, *CHANGE_NAMES)
"""Faults of a live group: those of a fixed one, and those that only changing views survive."""
LONGEST_NS = 6 * SECOND
"""The longest that a partition or pause lasts: beyond any time-out of the test preset."""

Trouble = Fault | Change


def plan_seats(
    services: Sequence[Service], *, senders: int, faults: Sequence[str], duration_ns: int, rng: Random
) -> list[Seat]:
    """Senders first, then receivers, then those that join while the group runs."""
    seats: list[Seat] = []
    for index, service in enumerate(services):
        sender = index < senders
        together = rng.random() < 0.5
        seats.append(
            Seat(
                name=f"{'s' if sender else 'r'}{index}",
                service=service,
                sender=sender,
                joins_at=0 if together else rng.randrange(SECOND),
                busy=0.0 if sender and index and "silent" in faults and rng.random() < 0.5 else 1.0,
            )
        )
    for _ in range(rng.choice((1, 1, 2, 3)) if "join" in faults else 0):
        sender = rng.random() < 0.6
        seats.append(
            Seat(
                name=f"j{len(seats)}",
                service=rng.choice(services),
                sender=sender,
                joins_at=rng.randrange(SECOND, max(duration_ns * 4 // 5, SECOND + 1)),
            )
        )
    return seats


def plan_live_faults(
    names: Sequence[str], *, seats: int, duration_ns: int, rng: Random, all_return: bool = False
) -> tuple[Trouble, ...]:
    """A few faults of every kind named, spread over the run.

    With `all_return` nobody goes for good: where a quorum is asked for, the group would wait for it for ever.
    """
    plan: list[Trouble] = []
    for name in names:
        for _ in range(1 if name == "crash" else rng.randint(1, 2)):
            plan.extend(_trouble(name, seats, duration_ns, rng))
    if all_return:
        back = {fault.member: fault.at for fault in plan if isinstance(fault, Restart)}
        for fault in [fault for fault in plan if isinstance(fault, (Crash, Leave))]:
            if back.get(fault.member, 0) < fault.at:
                back[fault.member] = fault.at + SECOND
                plan.append(Restart(at=back[fault.member], member=fault.member))
    return tuple(sorted(plan, key=lambda fault: fault.at))


def _trouble(name: str, seats: int, duration_ns: int, rng: Random) -> list[Trouble]:
    at = rng.randrange(duration_ns // 20, max(duration_ns * 4 // 5, duration_ns // 20 + 1))
    until = at + rng.randrange(50 * MILLISECOND, max(min(LONGEST_NS, duration_ns // 3), 51 * MILLISECOND))
    member = rng.randrange(seats)
    # One sender never goes for good, so that there is something to deliver until the end.
    mortal = rng.randrange(min(1, seats - 1), seats)
    match name:
        case "crash":
            return [Crash(at=at, member=mortal)]
        case "restart":
            return [Crash(at=at, member=member), Restart(at=until, member=member)]
        case "leave":
            if rng.random() < 0.5:
                return [Leave(at=at, member=mortal)]
            return [Leave(at=at, member=member), Restart(at=until, member=member)]
        case "start":
            return [StartSending(at=at, member=member)]
        case "pause":
            return [Pause(at=at, until=until, member=member)]
        case "slow":
            return [SlowApplication(at=at, until=until, member=member)]
        case "congestion":
            return [Congestion(at=at, until=until, member=member)]
        case "clock":
            return [ClockStep(at=at, member=member, delta_ns=rng.randrange(-2 * SECOND, 2 * SECOND))]
        case "partition":
            return [Split(at=at, until=until, parts=parts(seats, rng.choice((2, 2, 3)), rng))]
        case "oneway":
            side, other = parts(seats, 2, rng)
            return [Partition(at=at, until=until, side=side, other=other, one_way=True)]
        case "flap":
            down, up = (rng.randrange(50 * MILLISECOND, 2 * SECOND) for _ in range(2))
            side, other = parts(seats, 2, rng)
            return [Flap(at=at, until=until, side=side, other=other, down_ns=down, up_ns=up)]
        case "lossy":
            links = frozenset((one, other) for one in range(seats) for other in range(seats) if rng.random() < 0.3)
            return [Lossy(at=at, until=until, links=links, loss=rng.uniform(0.3, 0.95))]
        case "adversary":
            return opposition(at, until, seats, rng)
        case _:
            return []  # join and silent are in the seats


def slower(config: Config, rng: Random) -> Config:
    """The same with timers that tick less often, so that idle seconds cost less to simulate."""
    return replace(
        config,
        send=replace(config.send, keepalive_idle_ms=400.0, keepalive_gap_us=rng.choice((5_000.0, 30_000.0, 30_000.0))),
        report=replace(config.report, busy_ms=rng.choice((100.0, 300.0, 300.0)), idle_ms=1_000.0),
        membership=replace(config.membership, suspect_ms=1_200.0, forget_ms=5_000.0),
        hierarchy=replace(config.hierarchy, busy_ms=config.hierarchy.interval_ms),
        repair=replace(config.repair, give_up_ms=rng.choice((1_500.0, 3_000.0))),
    )
