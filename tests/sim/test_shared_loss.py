"""Fifty receivers miss the same frame: one of them asks, one repair comes (T3, R3)."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest

from intergroup_core.config import Config
from intergroup_core.sim.checkers import check
from intergroup_core.sim.cluster import MILLISECOND, SimCluster
from intergroup_core.sim.topology import Delays, line, star
from intergroup_core.sim.trace import Delivered, Sent
from tests.sizes import sized

RECEIVERS = 50
WARM_UP = 40
MEASURED = sized(30, 120)
SPOKES = [0, *(distance * MILLISECOND for distance in range(1, RECEIVERS + 1))]


def a_config() -> Config:
    config = Config.test()
    return replace(config, report=replace(config.report, busy_ms=10_000, idle_ms=20_000))


def lose_one(cluster: SimCluster) -> None:
    """The sender's next message is lost on its own link; its keep-alives tell of it."""
    network = cluster.network
    network.conditions = replace(network.conditions, shared_loss=1.0)
    assert cluster.members[0].send([b"lost to everybody"])
    network.conditions = network.conditions.quiet()
    cluster.run_for(500 * MILLISECOND)


def lateness(cluster: SimCluster, since: int) -> list[float]:
    """How much later than the lost frame itself each repair came, in distances to the source."""
    source = cluster.members[0].id
    sent = {event.seq: event.at for event in cluster.trace.events if type(event) is Sent and event.at >= since}
    distances = {member.id: cluster.network.delay(0, member.index) for member in cluster.members}
    return [
        (event.at - sent[event.seq]) / distances[event.member] - 1
        for event in cluster.trace.events
        if type(event) is Delivered and event.member != source and event.seq in sent
    ]


@pytest.mark.parametrize(
    ("shape", "delays"), [("star", star(SPOKES)), ("line", line(SPOKES, hop_ns=MILLISECOND))], ids=["star", "line"]
)
def test_a_shared_loss_costs_about_one_request_and_one_repair(
    shape: str, delays: Delays, record_property: pytest.RecordProperty
) -> None:
    cluster = SimCluster(seed=1, senders=1, receivers=RECEIVERS, config=a_config(), delays=delays, wake_ns=1)
    cluster.start(applications=False)
    cluster.run_for(500 * MILLISECOND)
    for _ in range(WARM_UP):
        lose_one(cluster)
    since, recovered = cluster.scheduler.now, len(cluster.recoveries)
    requests, repairs = cluster.tap.requests.total(), cluster.tap.repairs.total()
    for _ in range(MEASURED):
        lose_one(cluster)
    requests_per_loss = (cluster.tap.requests.total() - requests) / MEASURED
    repairs_per_loss = (cluster.tap.repairs.total() - repairs) / MEASURED
    recoveries = cluster.recoveries[recovered:]
    waited = median(waited / distance for _, _, _, waited, distance in recoveries)
    late = median(lateness(cluster, since))
    record_property(
        shape,
        f"{requests_per_loss:.2f} requests and {repairs_per_loss:.2f} repairs per loss, "
        f"recovery {waited:.2f} distances after notice, {late:.2f} after the frame was due",
    )
    assert len(recoveries) == MEASURED * RECEIVERS
    assert requests_per_loss <= 1.5
    assert repairs_per_loss <= 1.5
    assert waited <= 8
    assert late <= 8
    cluster.settle()
    assert check(cluster.trace) == []
