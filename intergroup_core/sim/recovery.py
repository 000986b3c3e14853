"""How lost messages are recovered with distances from the control hierarchy, and with one configured for all.

    python -m intergroup_core.sim.recovery [--receivers 10] [--seeds 2] [--seconds 20]

Prints the table of docs/protocol.md. The same group with the same losses three times: with a constant distance, with
what the hierarchy and exchanges of requests and repairs measure, and with the true delays. What came before the
hierarchy had settled does not count.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from statistics import median

from intergroup_core.config import Config
from intergroup_core.sim.cluster import SECOND
from intergroup_core.sim.live_cluster import LiveCluster
from intergroup_core.sim.network import Conditions
from intergroup_core.sim.topology import clustered

DISTANCES = ("constant", "measured", "true")
LOSSES = {"shared": Conditions(shared_loss=0.02), "independent": Conditions(loss=0.02)}
"""What a frame loses for all its receivers at once, or for each of them."""
SETTLED_NS = 8 * SECOND
CLUSTERS = 4


@dataclass(frozen=True, slots=True)
class Recovery:
    """Requests and repairs for each loss, and how long it took from the notice to the frame."""

    losses: str
    distances: str
    requests: float
    repairs: float
    median_ms: float
    late_ms: float
    """Nine in ten were sooner."""


def measure(losses: str, distances: str, *, receivers: int, seeds: int, seconds: int) -> Recovery:
    waits: list[int] = []
    requests = repairs = lost = 0
    for seed in range(1, seeds + 1):
        members = 2 + receivers
        cluster = LiveCluster(
            seed=seed,
            senders=2,
            receivers=receivers,
            config=_config(),
            delays=clustered(members, Random(f"{seed}/places"), clusters=CLUSTERS),
            conditions=LOSSES[losses],
            hierarchy=distances == "measured",
            true_distances=distances == "true",
        )
        cluster.run_for(SETTLED_NS)
        before = _counts(cluster)
        cluster.run_for(seconds * SECOND)
        asked, answered, noticed = (now - then for now, then in zip(_counts(cluster), before, strict=True))
        requests, repairs, lost = requests + asked, repairs + answered, lost + noticed
        waits += [waited for at, waited in cluster.recoveries if at > SETTLED_NS]
    waits.sort()
    # A loss that all share is noticed by every one of them.
    per_loss = max(1.0, lost / (receivers + 1) if losses == "shared" else float(lost))
    return Recovery(
        losses,
        distances,
        requests / per_loss,
        repairs / per_loss,
        median(waits) / 1e6,
        waits[len(waits) * 9 // 10] / 1e6,
    )


def _config() -> Config:
    """The distance that is configured for networks of this size."""
    config = Config.test()
    start_us = Config.wan().repair.distance_start_us
    return replace(config, repair=replace(config.repair, distance_start_us=start_us))


def _counts(cluster: LiveCluster) -> tuple[int, int, int]:
    counters = [member.endpoint.counters for member in cluster.processes]
    return (
        sum(counter.requests_sent for counter in counters),
        sum(counter.repairs_sent for counter in counters),
        sum(counter.losses_detected for counter in counters),
    )


def table(found: Iterator[Recovery]) -> Iterator[str]:
    """Markdown, a line as soon as its figures are there."""
    yield "| losses | distances | requests per loss | repairs per loss | median wait | 90 % within |"
    yield "|---|---|---|---|---|---|"
    for one in found:
        waits = f"{one.median_ms:.0f} ms | {one.late_ms:.0f} ms"
        yield f"| {one.losses} | {one.distances} | {one.requests:.2f} | {one.repairs:.2f} | {waits} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--receivers", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=20)
    said = parser.parse_args()
    for line in table(
        measure(losses, distances, receivers=said.receivers, seeds=said.seeds, seconds=said.seconds)
        for losses in LOSSES
        for distances in DISTANCES
    ):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
