"""What a run came to: counts, figures and violations."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from intergroup_core.sim.checkers import Violation, check
from intergroup_core.sim.cluster import SECOND, SimCluster
from intergroup_core.sim.live_cluster import LiveCluster
from intergroup_core.sim.live_member import LiveMember
from intergroup_core.sim.member import SimMember
from intergroup_core.sim.scenario import Scenario
from intergroup_core.sim.trace import Delivered, Installed, Sent, Trace
from intergroup_core.wire.header import FrameType

STEP_NS = SECOND // 10
PATIENCE = 4
"""Times its duration that a run goes on for the messages it is to send."""
TOTALS = {
    "repairs": "repairs_sent",
    "requests": "requests_sent",
    "suppressed requests": "requests_suppressed",
    "suppressed repairs": "repairs_suppressed",
    "fragments": "fragments_sent",
    "run splits": "run_splits",
    "keep-alive deliveries": "keepalive_deliveries",
    "duplicates": "duplicates_received",
}
"""What a set of runs must have met to have tried anything, and the counter that says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Plain values, so that it crosses processes."""

    scenario: Scenario
    sent: int
    delivered: int
    views: int
    dropped: int
    virtual_ns: int
    requests_per_loss: float
    repairs_per_loss: float
    latency_ms: dict[str, float]
    control: dict[str, Any]
    buffers_max_bytes: int
    totals: dict[str, int]
    transitions: dict[str, int]
    """How often members went from one membership state to another, and why."""
    restarts: dict[str, int]
    """Why repairs began again."""
    gaps: dict[str, int]
    settling_ns: int
    """From the end of all trouble until one view of all senders."""
    pauses_ns: list[int]
    """How long delivery stood still before each view that a repair brought."""
    digest: str
    violations: list[Violation]

    def to_json(self) -> dict[str, Any]:
        return {
            "seed": self.scenario.seed,
            "members": self.scenario.members,
            "receivers": self.scenario.receivers,
            "sent": self.sent,
            "delivered": self.delivered,
            "views": self.views,
            "dropped": self.dropped,
            "requests_per_loss": round(self.requests_per_loss, 3),
            "repairs_per_loss": round(self.repairs_per_loss, 3),
            "latency_ms": self.latency_ms,
            "control": self.control,
            "buffers_max_bytes": self.buffers_max_bytes,
            "totals": self.totals,
            "transitions": self.transitions,
            "restarts": self.restarts,
            "gaps": self.gaps,
            "settling_ms": round(self.settling_ns / 1e6, 3),
            "pause_ms": _spread(self.pauses_ns),
            "trace_digest": self.digest,
            "violations": [violation.to_json() for violation in self.violations],
        }


def play(scenario: Scenario, *, digest: bool = True) -> tuple[Outcome, Trace]:
    """Run a scenario from beginning to end and judge it."""
    cluster = scenario.cluster()
    cluster.start()
    cluster.run_for(scenario.duration_ns)
    while cluster.sent < scenario.messages and cluster.scheduler.now < PATIENCE * scenario.duration_ns:
        cluster.run_for(STEP_NS)
    cluster.settle()
    violations = check(cluster.trace)
    return summarise(scenario, cluster, violations, digest=digest), cluster.trace


def summarise(
    scenario: Scenario, cluster: SimCluster | LiveCluster, violations: list[Violation], *, digest: bool = True
) -> Outcome:
    events = cluster.trace.events
    live = [member for member in members_of(cluster) if isinstance(member, LiveMember)]
    counts = [dataclasses.asdict(member.endpoint.counters) for member in members_of(cluster)]
    return Outcome(
        scenario=scenario,
        sent=cluster.sent,
        delivered=sum(type(event) is Delivered for event in events),
        views=len({event.view for event in events if type(event) is Installed}),
        dropped=cluster.network.dropped + sum(member.inbox.overflowed for member in members_of(cluster)),
        virtual_ns=cluster.scheduler.now,
        requests_per_loss=cluster.tap.requests_per_loss,
        repairs_per_loss=cluster.tap.repairs_per_loss,
        latency_ms=_latency(cluster.trace),
        control=_control(cluster),
        buffers_max_bytes=max((member.buffered_most for member in members_of(cluster)), default=0),
        totals=_totals(counts),
        transitions=_sum(count["transitions"] for count in counts),
        restarts=_sum(count["restarts"] for count in counts),
        gaps=dict(sorted(Counter(gap for member in live for gap in member.gaps).items())),
        settling_ns=cluster.settling_ns if isinstance(cluster, LiveCluster) else 0,
        pauses_ns=[pause for member in live for pause in member.pauses],
        digest=cluster.trace.digest() if digest else "",
        violations=violations,
    )


def _latency(trace: Trace) -> dict[str, float]:
    """From sending to delivery at another member, in milliseconds."""
    sent = {(event.member, event.seq): event.at for event in trace.events if type(event) is Sent}
    waits = [
        event.at - sent[event.source, event.seq]
        for event in trace.events
        if type(event) is Delivered and event.member != event.source and (event.source, event.seq) in sent
    ]
    if not waits:
        return {"p50": 0.0, "p99": 0.0}
    p50, p99 = np.percentile(np.array(waits) / 1e6, (50, 99))
    return {"p50": round(float(p50), 3), "p99": round(float(p99), 3)}


def _control(cluster: SimCluster | LiveCluster) -> dict[str, Any]:
    """Every member reports to all: each is a site of one flat local group, and nobody coordinates."""
    sites = max(1, len(cluster.members))
    seconds = max(cluster.scheduler.now / SECOND, 1e-9)
    return {
        "sites": sites,
        "coordinators": 0,
        "largest_local_group": sites,
        "messages_per_site_s": round(cluster.tap.frames[FrameType.REPORT] / sites / seconds, 3),
        "bytes_per_site_s": round(cluster.tap.bytes[FrameType.REPORT] / sites / seconds, 1),
    }


def members_of(cluster: SimCluster | LiveCluster) -> Sequence[SimMember]:
    """Every process that ever ran."""
    return cluster.processes if isinstance(cluster, LiveCluster) else cluster.members


def _totals(counts: list[dict[str, Any]]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for counters in counts:
        totals.update({shown: counters[name] for shown, name in TOTALS.items()})
        totals["refused"] += sum(counters["dropped"].values())
    return dict(totals)


def _sum(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))


def _spread(values_ns: Sequence[int]) -> dict[str, float]:
    """Middle and worst, in milliseconds."""
    if not values_ns:
        return {"median": 0.0, "worst": 0.0}
    return {"median": round(median(values_ns) / 1e6, 3), "worst": round(max(values_ns) / 1e6, 3)}
