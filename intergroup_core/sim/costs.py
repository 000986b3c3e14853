"""What membership costs: messages and bytes of a join, a leave and a repair, by senders and receivers.

    python -m intergroup_core.sim.costs [--most-receivers 1000]

Prints the table of docs/protocol.md. Nothing is lost and nobody sends data, so that only the change itself is counted:
everything but data, keep-alives, requests, repairs and reports, from the moment it begins until all have installed it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from intergroup_core.config import Config
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.live_cluster import LiveCluster, Seat

SENDERS = (2, 4, 8, 16)
RECEIVERS = (0, 10, 100, 1_000)
LIMIT_NS = 60 * SECOND
LATER_NS = 1_500 * MILLISECOND
"""Messages count for so long after everybody has installed the view: one that leaves says farewell after lingering."""
JOIN_EVERY_NS = 5 * MILLISECOND
"""Receivers come one after the other: their calls are not what is measured."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What was said for one change, how much of it by receivers, and their reports meanwhile.

    Reports of everybody to everybody are not part of agreement; they are what a control hierarchy is for.
    """

    change: str
    senders: int
    receivers: int
    messages: int
    bytes: int
    by_receivers: int
    reports: int
    milliseconds: float


def measure(senders: int, receivers: int) -> Iterator[Cost]:
    """A join, a leave and a crash in one group, each after the group has come to rest."""
    seats = [Seat(name=f"s{index}", busy=0.0) for index in range(senders)]
    seats += [
        Seat(name=f"r{index}", sender=False, joins_at=SECOND + index * JOIN_EVERY_NS) for index in range(receivers)
    ]
    seats.append(Seat(name="joiner", sender=False, joins_at=SECOND))
    cluster = LiveCluster(seed=1, seats=seats, config=_calm())
    joiner = len(seats) - 1
    cluster.run_for(2 * SECOND + receivers * JOIN_EVERY_NS)
    _until(cluster, lambda: _views_of(cluster, senders))

    def start() -> None:
        cluster[joiner].send([b"x"])

    yield _cost(cluster, "join", senders, receivers, start, senders + 1)
    yield _cost(cluster, "leave", senders, receivers, lambda: cluster.leave(joiner), senders)
    yield _cost(cluster, "crash", senders, receivers, lambda: cluster.crash(0), senders - 1)


def _calm() -> Config:
    """Reports and silences out of the way: they are not what is measured."""
    config = Config.test()
    return replace(
        config,
        report=replace(config.report, busy_ms=5_000.0, idle_ms=20_000.0),
        membership=replace(config.membership, silence_ms=86_400_000.0, forget_ms=600_000.0),
    )


def _cost(
    cluster: LiveCluster, change: str, senders: int, receivers: int, begin: Callable[[], None], expected: int
) -> Cost:
    cluster.run_for(SECOND)
    before = _said(cluster)
    began = cluster.scheduler.now
    begin()
    _until(cluster, lambda: _views_of(cluster, expected))
    took = (cluster.scheduler.now - began) / MILLISECOND
    cluster.run_for(LATER_NS)
    messages, size, quiet, reports = (now - then for now, then in zip(_said(cluster), before, strict=True))
    return Cost(change, senders, receivers, messages, size, quiet, reports, took)


def _said(cluster: LiveCluster) -> tuple[int, int, int, int]:
    """Membership messages and their bytes so far, and messages and reports of those that only receive."""
    counts = [member.endpoint.counters for member in cluster.processes]
    messages = sum(count.membership_sent + count.changes_sent for count in counts)
    size = sum(count.membership_bytes_sent for count in counts)
    of_receivers = [member.endpoint.counters for member in cluster.processes if member.name.startswith("r")]
    said = sum(count.membership_sent for count in of_receivers)
    return messages, size, said, sum(count.reports_sent for count in of_receivers)


def _views_of(cluster: LiveCluster, senders: int) -> bool:
    views = [member.endpoint.view for member in cluster.alive if member.state != "left"]
    return all(view is not None and len(view.members) == senders for view in views) and len(set(views)) == 1


def _until(cluster: LiveCluster, holds: Callable[[], bool]) -> None:
    if not cluster.run_until(holds, LIMIT_NS):
        raise SystemExit("the group did not come to rest; see `intergroup sim` for what it does")


def table(costs: Iterator[Cost]) -> Iterator[str]:
    """Markdown, a line as soon as its figures are there."""
    yield "| change | senders | receivers | messages | of receivers | bytes | receivers' reports | ms until installed |"
    yield "|---|---|---|---|---|---|---|---|"
    for cost in costs:
        figures = f"{cost.messages} | {cost.by_receivers} | {cost.bytes} | {cost.reports} | {cost.milliseconds:.0f}"
        yield f"| {cost.change} | {cost.senders} | {cost.receivers} | {figures} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most-receivers", type=int, default=RECEIVERS[-1])
    most = parser.parse_args().most_receivers
    sizes = [(senders, 0) for senders in SENDERS] + [(4, count) for count in RECEIVERS if 0 < count <= most]
    for line in table(cost for size in sizes for cost in measure(*size)):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
