"""Puts what goes wrong in a live group on its schedule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from intergroup_core.sim.faults import (
    Change,
    ClockStep,
    Congestion,
    Crash,
    Fault,
    Flap,
    Join,
    Leave,
    Lossy,
    Moment,
    Oppose,
    Partition,
    Pause,
    Restart,
    SlowApplication,
    Split,
    StartSending,
)
from intergroup_core.sim.live_member import LiveMember

if TYPE_CHECKING:
    from intergroup_core.sim.live_cluster import LiveCluster


def arrange(cluster: LiveCluster, faults: Sequence[Fault | Change]) -> None:
    """Every fault happens when it says, to whoever is at its seat then."""
    at = cluster.scheduler.at
    for fault in faults:
        match fault:
            case Crash():
                at(fault.at, cluster.crash, fault.member)
            case Join():
                at(fault.at, cluster.join, fault.member)
            case Restart():
                at(fault.at, cluster.restart, fault.member)
            case Leave():
                at(fault.at, cluster.leave, fault.member)
            case StartSending():
                at(fault.at, cluster.start_sending, fault.member)
            case Pause():
                at(fault.at, cluster.at_seat, fault.member, LiveMember.pause)
                at(fault.until, cluster.at_seat, fault.member, LiveMember.resume)
            case Partition() | Split():
                at(fault.at, cluster.cut, fault.links())
                at(fault.until, cluster.heal, fault.links())
            case Flap():
                for down, up in _flaps(fault):
                    at(down, cluster.cut, fault.links())
                    at(up, cluster.heal, fault.links())
            case Lossy():
                at(fault.at, cluster.network.lossy, fault.links, fault.loss)
                at(fault.until, cluster.network.lossy, fault.links, None)
            case Oppose():
                rule = fault.rule()
                at(fault.at, cluster.oppose, rule)
                at(fault.until, cluster.relent, rule)
            case Moment():
                at(fault.at, _wait_for, cluster, fault)
            case SlowApplication():
                at(fault.at, cluster.at_seat, fault.member, LiveMember.stop_reading)
                at(fault.until, cluster.at_seat, fault.member, LiveMember.resume_reading)
            case Congestion():
                at(fault.at, cluster.at_seat, fault.member, LiveMember.refuse_sending)
                at(fault.until, cluster.at_seat, fault.member, LiveMember.accept_sending)
            case ClockStep():
                at(fault.at, _set_clock, cluster, fault)


BACK_NS = 2_000_000_000
"""After which the victim of a moment is back: longer than it takes to be suspected."""


def _wait_for(cluster: LiveCluster, moment: Moment) -> None:
    cluster.at_seat(moment.member, lambda member: member.when(moment.state, lambda: _strike(cluster, moment)))


def _strike(cluster: LiveCluster, moment: Moment) -> None:
    if cluster.scheduler.now > moment.until:
        return
    after, victim = cluster.scheduler.after, moment.victim
    match moment.act:
        case "crash":
            cluster.crash(victim)
            after(BACK_NS, cluster.restart, victim)
        case "leave":
            cluster.leave(victim)
            after(BACK_NS, cluster.restart, victim)
        case "pause":
            cluster.at_seat(victim, LiveMember.pause)
            after(BACK_NS, cluster.at_seat, victim, LiveMember.resume)
        case "apart":
            others = [index for index in range(len(cluster.seats)) if index != victim]
            links = {(victim, other) for other in others} | {(other, victim) for other in others}
            cluster.cut(links)
            after(BACK_NS, cluster.heal, links)


def _set_clock(cluster: LiveCluster, step: ClockStep) -> None:
    cluster.at_seat(step.member, lambda member: member.clock.step(step.delta_ns))


def _flaps(flap: Flap) -> Iterator[tuple[int, int]]:
    """When the links go down and up again."""
    down = flap.at
    while down < flap.until:
        yield down, min(down + flap.down_ns, flap.until)
        down += flap.down_ns + flap.up_ns
