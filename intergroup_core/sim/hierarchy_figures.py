"""What the control hierarchy costs and how soon it knows what is stable, by the number of sites.

    python -m intergroup_core.sim.hierarchy_figures [--most 10000] [--json docs/hierarchy.json]

Prints the table of docs/protocol.md: the `wan` preset, nothing lost, members that lag by up to two seconds. A
thousand sites take about a minute of processor time, ten thousand more than twenty.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from intergroup_core.sim.hierarchy_outcome import judge, patience_s
from intergroup_core.sim.hierarchy_scenario import TERRAINS, HierarchyScenario

SIZES = (10, 100, 1_000, 10_000)
MOST = 1_000
FEW_S, FEW = 4.0, 5_000
"""Virtual seconds of rest over which traffic is counted where there are more than so many sites."""


def measure(sites: int, terrain: str, *, seed: int = 1) -> dict[str, Any]:
    """Start so many sites, let them settle, count what they say at rest; then a third of them dies."""
    scenario = HierarchyScenario(sites=sites, terrain=terrain, seed=seed)
    hierarchy = scenario.build()
    few = sites > FEW
    outcome = judge(scenario, hierarchy, FEW_S if few else 10.0)
    found = {"terrain": terrain, **outcome.to_json(), "settling_after_third_s": None}
    if not few:
        for site in hierarchy.rng.sample(hierarchy.alive(), sites // 3):
            site.crash()
        found["settling_after_third_s"] = hierarchy.settle(patience_s(hierarchy))
    return found


def table(figures: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Markdown, a line as soon as its figures are there."""
    yield (
        "| terrain | sites | coordinators | largest local group | messages/site/s | bytes/site/s | "
        "busiest group, bytes/s | largest message | stability latency, median and max | "
        "distance error p50, p90 | settled after start | after a third died |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for found in figures:
        control, latency, error = found["control"], found["stability_latency_s"], found["distance_error"]
        yield (
            f"| {found['terrain']} | {control['sites']:,} | {control['coordinators']} | "
            f"{control['largest_local_group']} | {control['messages_per_site_s']:.2f} | "
            f"{control['bytes_per_site_s']:.0f} | {found['busiest_group_bytes_s']:,.0f} | {found['largest_message']} | "
            f"{latency['median']:.1f} s, {latency['max']:.1f} s | {error['p50']:.0%}, {error['p90']:.0%} | "
            f"{_seconds(found['settling_s'])} | {_seconds(found['settling_after_third_s'])} |"
        )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} s"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=MOST, help="sites at most")
    parser.add_argument("--terrain", choices=TERRAINS, help="one terrain instead of both")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    chosen = parser.parse_args(arguments)
    terrains = (chosen.terrain,) if chosen.terrain else TERRAINS
    kept: list[dict[str, Any]] = []

    def figures() -> Iterator[dict[str, Any]]:
        for terrain in terrains:
            for sites in SIZES:
                if sites <= chosen.most:
                    kept.append(measure(sites, terrain))
                    yield kept[-1]

    for line in table(figures()):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
