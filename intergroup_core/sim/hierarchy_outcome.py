"""What came of a simulated hierarchy: did it settle, was stability true, and what did it cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from intergroup_core.ids import timestamp_at
from intergroup_core.sim.control_site import SECOND, WALL_START
from intergroup_core.sim.hierarchy_scenario import HierarchyScenario
from intergroup_core.sim.scheduler import collect_seldom
from intergroup_core.sim.sites import SimSites, Traffic
from intergroup_core.sim.upheavals import Upheavals

MILLISECOND = 1_000_000
SETTLE_FAULTS = 12
"""Fault times and graces in which a hierarchy that is left in peace comes to rest."""
MEASURED_S = 10.0
"""Virtual seconds at rest over which traffic is counted."""
CALM_LOSS = 0.05
"""What a network at peace loses at most."""
PAIRS = 1_000
MAX_MOVES = 4
"""Changes of place of one site within that time and the time to settle that are no restlessness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchyOutcome:
    """The figures of a run, and whatever was wrong."""

    scenario: HierarchyScenario
    violations: tuple[str, ...]
    alive: int
    coordinators: int
    largest_local_group: int
    messages_per_site_s: float
    bytes_per_site_s: float
    busiest_group_bytes_s: float
    largest_message: int
    stability_latency_s: dict[str, float]
    distance_error: dict[str, float]
    settling_s: float | None
    counted: float
    """Part of the live members that know themselves counted."""
    gaps: int
    moves: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        said = asdict(self)
        for name in ("scenario", "alive", "coordinators", "largest_local_group", "messages_per_site_s"):
            del said[name]
        del said["bytes_per_site_s"]
        control = {
            "sites": self.alive,
            "coordinators": self.coordinators,
            "largest_local_group": self.largest_local_group,
            "messages_per_site_s": round(self.messages_per_site_s, 3),
            "bytes_per_site_s": round(self.bytes_per_site_s, 1),
        }
        return {"seed": self.scenario.seed, "control": control, **said, "violations": list(self.violations)}


def play(scenario: HierarchyScenario, progress: Callable[[str], None] | None = None) -> HierarchyOutcome:
    """Start it, trouble it, leave it in peace, and judge."""
    collect_seldom()
    sites = scenario.build(progress)
    if not scenario.faults:
        return judge(scenario, sites, scenario.duration)
    end = sites.scheduler.now + round(scenario.duration * SECOND)
    Upheavals(sites, scenario.faults, end)
    sites.run((end - sites.scheduler.now) / SECOND)
    calm(sites)
    return judge(scenario, sites)


def calm(sites: SimSites) -> None:
    """No trouble any more but a little loss."""
    sites.heal()
    sites.loss, sites.dup, sites.reorder = min(sites.loss, CALM_LOSS), 0.0, 0.0
    sites.deaf.clear()
    for site in sites.alive():
        site.resume()
        site.held_at = None


def patience_s(sites: SimSites) -> float:
    """How long a hierarchy may take to settle."""
    return SETTLE_FAULTS * (sites.config.fault_ms + sites.config.grace_ms) / 1_000


def judge(scenario: HierarchyScenario, sites: SimSites, measured_s: float = MEASURED_S) -> HierarchyOutcome:
    """Run in peace until all is settled and stability has come past now, then for as long as traffic is measured."""
    wrong: list[str] = []
    began = sites.scheduler.now
    moved = {site.index: site.process.moves for site in sites.alive()}
    limit = patience_s(sites)
    settling = sites.settle(limit)
    if settling is None:
        wrong.append(f"not settled {limit:g} s after the last trouble")
    goal = int(timestamp_at(WALL_START + began))
    while not all(site.stable > goal for site in sites.alive() if site.member):
        if sites.scheduler.now - began > limit * SECOND:
            behind = sorted(site.index for site in sites.alive() if site.member and site.stable <= goal)
            wrong.append(f"stability stands still at sites {behind[:5]} and {max(0, len(behind) - 5)} others")
            break
        sites.run(1.0)
    sites.traffic = Traffic()
    sites.run(measured_s)
    for site in sites.alive():
        moves = site.process.moves - moved.get(site.index, 0)
        if moves > MAX_MOVES:
            wrong.append(f"site {site.index} changed its place {moves} times in peace")
    return _outcome(scenario, sites, wrong, settling, measured_s)


def _outcome(
    scenario: HierarchyScenario, sites: SimSites, wrong: list[str], settling: float | None, measured_s: float
) -> HierarchyOutcome:
    alive = sites.alive()
    latencies = sorted(sites.stability_latencies()) or [0.0]
    errors = sorted(sites.distance_errors(PAIRS)) if len(alive) > 1 else [0.0]
    coordinators = sites.coordinators()
    largest = max((site.process.children + 1 for site in coordinators), default=0)
    members = [site for site in alive if site.member]
    moves = sorted(site.process.moves for site in sites.sites)
    per_site = len(alive) * measured_s
    return HierarchyOutcome(
        scenario=scenario,
        violations=(*map(str, sites.violations), *wrong),
        alive=len(alive),
        coordinators=len(coordinators),
        largest_local_group=largest,
        messages_per_site_s=sites.traffic.messages / per_site,
        bytes_per_site_s=sites.traffic.bytes / per_site,
        busiest_group_bytes_s=max(sites.traffic.by_group.values(), default=0) / measured_s,
        largest_message=sites.traffic.largest,
        stability_latency_s={"median": round(median(latencies), 3), "max": round(latencies[-1], 3)},
        distance_error={"p50": round(errors[len(errors) // 2], 3), "p90": round(errors[len(errors) * 9 // 10], 3)},
        settling_s=settling,
        counted=round(sum(site.counted for site in members) / max(1, len(members)), 4),
        gaps=sum(site.gaps for site in sites.sites),
        moves={"median": median(moves), "max": moves[-1]},
    )
