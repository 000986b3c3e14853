"""What live scenarios ask of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from intergroup_core.ids import MemberId, Service
from intergroup_core.sim.adversary import Link, Rule
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.fuzz import live_scenario
from intergroup_core.sim.live_cluster import LiveCluster
from intergroup_core.sim.live_member import LiveMember
from intergroup_core.sim.scenario import Scenario
from intergroup_core.sim.trace import Delivered, GapAnnounced, Installed, Sent
from intergroup_core.wire.header import FrameType

MakeLive = Callable[..., LiveCluster]
MIXED = (Service.RTO, Service.RSO, Service.UU, Service.RTO, Service.RSO)
RATES = {98: 28.7, 124: 8.7, 141: 26.8}
"""At which some seeds come to what they were chosen for."""


def a_chosen_scenario(seed: int, delivery: str) -> Scenario:
    """A live seed with a service for all of its members."""
    scenario = live_scenario(seed)
    return replace(scenario, delivery=delivery, rate=RATES.get(seed, scenario.rate))


def all_there(cluster: LiveCluster) -> LiveCluster:
    """Let everybody come together."""
    cluster.run_for(2 * SECOND)
    assert cluster.run_until(cluster.agreed, 10 * SECOND), states(cluster)
    return cluster


def states(cluster: LiveCluster) -> dict[str, str]:
    return {member.name: member.state for member in cluster.members}


def leader(cluster: LiveCluster, *gone: int) -> int:
    """The seat that leads a repair once these are gone: that of the least id."""
    return min((member for member in cluster.alive if member.sender and member.index not in gone), key=_id).index


def follower(cluster: LiveCluster, *gone: int) -> int:
    """The seat of a sender that takes part in a repair and does not lead it."""
    return max((member for member in cluster.alive if member.sender and member.index not in gone), key=_id).index


def _id(member: LiveMember) -> MemberId:
    return member.id


def views(cluster: LiveCluster, index: int) -> list[Installed]:
    me = cluster[index].id
    return [event for event in cluster.trace.events if type(event) is Installed and event.member == me]


def members_by_name(cluster: LiveCluster, index: int) -> set[str]:
    view = cluster[index].endpoint.view
    return set() if view is None else set(view.names)


def gaps(cluster: LiveCluster) -> list[GapAnnounced]:
    return [event for event in cluster.trace.events if type(event) is GapAnnounced]


def deliveries(cluster: LiveCluster, index: int, source: int, *, since: int = 0) -> int:
    me, of = cluster[index].id, cluster[source].id
    return sum(
        type(event) is Delivered and event.member == me and event.source == of and event.at >= since
        for event in cluster.trace.events
    )


def sendings(cluster: LiveCluster, index: int, *, since: int = 0) -> int:
    me = cluster[index].id
    return sum(type(event) is Sent and event.member == me and event.at >= since for event in cluster.trace.events)


def against(
    cluster: LiveCluster,
    kinds: Iterable[FrameType],
    links: Iterable[Link],
    *,
    late_ms: int = 0,
    most: int | None = None,
) -> Rule:
    rule = Rule(kinds=frozenset(kinds), links=frozenset(links), late_ns=late_ms * MILLISECOND, left=most)
    cluster.oppose(rule)
    return rule


def to_others(cluster: LiveCluster, one: int) -> list[Link]:
    return [(one, other) for other in range(len(cluster.seats)) if other != one]


def from_others(cluster: LiveCluster, one: int) -> list[Link]:
    return [(other, one) for other in range(len(cluster.seats)) if other != one]
