"""How much of its rate a group keeps while members come and go every second.

    python -m intergroup_core.sim.churn [--senders 4] [--seconds 30] [--seed 1] [--json]

Every second a sender joins and the one that has been there longest leaves or, every other time, crashes. Every
sender has more to send than the group takes. The figure is what a receiver, which stays, delivers per second, against
the same group without changes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys

from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.faults import Crash, Join, Leave
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from intergroup_core.sim.trace import Delivered
from intergroup_core.sim.workload import Workload

WARM_NS = 3 * SECOND
RATE = 1_500.0
"""Messages per second that every sender offers; more than the group takes."""


def rate(senders: int, seconds: int, seed: int, *, churn: bool) -> tuple[float, list[int]]:
    """Messages delivered per second at the receiver that stays, and the times between two of them."""
    seats = [Seat(name="reader", sender=False)]
    seats += [Seat(name=f"s{index}") for index in range(senders)]
    faults: list[Join | Leave | Crash] = []
    if churn:
        for second in range(seconds):
            seats.append(Seat(name=f"s{senders + second}", joins_at=None))
            at = WARM_NS + second * SECOND
            faults.append(Join(at=at, member=1 + senders + second))
            gone = Crash if second % 2 else Leave
            faults.append(gone(at=at + SECOND // 2, member=1 + second))
    cluster = LiveCluster(seed=seed, seats=seats, faults=faults, workload=Workload(rate=RATE, size=100, duty=1.0))
    end = WARM_NS + seconds * SECOND
    cluster.run_for(end)
    reader = cluster[0].id
    times = [
        event.at
        for event in cluster.trace.events
        if type(event) is Delivered and event.member == reader and WARM_NS <= event.at < end
    ]
    return len(times) / seconds, [after - before for before, after in itertools.pairwise(times)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    still, _ = rate(chosen.senders, chosen.seconds, chosen.seed, churn=False)
    moving, pauses = rate(chosen.senders, chosen.seconds, chosen.seed, churn=True)
    figures = {
        "messages_per_s": round(moving),
        "without_churn": round(still),
        "ratio": round(moving / still, 3),
        "longest_pause_ms": round(max(pauses) / MILLISECOND),
        "median_of_ten_longest_ms": round(statistics.median(sorted(pauses)[-10:]) / MILLISECOND),
    }
    if chosen.json:
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    for name, value in figures.items():
        sys.stdout.write(f"{name:28} {value}\n")


if __name__ == "__main__":
    main()
