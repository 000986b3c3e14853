"""Members whose sites are in a control hierarchy: distances, cuts and stability come through it."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest

from intergroup_core.config import Config
from intergroup_core.hierarchy.group import GroupControl
from intergroup_core.ids import MemberId
from intergroup_core.sim import recovery
from intergroup_core.sim.adversary import Rule
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from intergroup_core.sim.network import Conditions
from intergroup_core.sim.workload import Workload
from intergroup_core.wire.header import FrameType
from tests.sim.live_stories import MakeLive, all_there, deliveries, gaps, sendings, views

CARRIES_DATA = frozenset({FrameType.DATA, FrameType.REPAIR})
SENDERS = (Seat(name="s0"), Seat(name="s1", busy=0.0))
RECEIVER = Seat(name="r2", sender=False)


def reporting(direct_members: int) -> Config:
    """Settings under which receivers of larger groups do not report themselves."""
    config = Config.test()
    return replace(config, report=replace(config.report, direct_members=direct_members))


def silent(cluster: LiveCluster) -> list[str]:
    """Members for which the hierarchy speaks."""
    paths = {member.name: member.endpoint._path for member in cluster.alive}
    return [name for name, path in paths.items() if path is not None and path.reports.silent]


def distance_errors(cluster: LiveCluster) -> list[float]:
    """How far off members are in what they think of their distances to the senders, relative to the truth."""
    found = []
    for one in cluster.alive:
        for other in cluster.alive:
            if one is not other and other.sender:
                true = cluster.network.delay(one.index, other.index)
                found.append(abs(one.endpoint._paths._distances.to(other.id) - true) / true)
    return found


def test_members_learn_their_distances(a_live_cluster: MakeLive) -> None:
    cluster = all_there(a_live_cluster(senders=3, receivers=3, hierarchy=True))
    cluster.run_for(5 * SECOND)
    assert max(distance_errors(cluster)) < 0.2


def test_in_a_small_group_everybody_reports(a_live_cluster: MakeLive) -> None:
    cluster = all_there(a_live_cluster(senders=3, receivers=3, hierarchy=True, config=reporting(16)))
    cluster.run_for(5 * SECOND)
    assert silent(cluster) == []


def test_in_a_large_group_receivers_fall_silent_and_buffers_drain_all_the_same(a_live_cluster: MakeLive) -> None:
    cluster = all_there(a_live_cluster(senders=2, receivers=8, hierarchy=True, config=reporting(4)))
    cluster.run_for(6 * SECOND)
    assert silent(cluster) == [f"r{number}" for number in range(2, 10)]
    before = sum(cluster[index].endpoint.counters.reports_sent for index in range(2, 10))
    cluster.run_for(6 * SECOND)
    assert sum(cluster[index].endpoint.counters.reports_sent for index in range(2, 10)) == before
    assert cluster[0].endpoint.counters.messages_sent > 100
    assert cluster[0].endpoint.buffered_bytes < cluster[0].endpoint.counters.bytes_sent / 4


def test_a_silent_receiver_that_stops_reading_holds_the_senders_back(a_live_cluster: MakeLive) -> None:
    workload = Workload(rate=150, size=1_000, duty=1.0)
    config = reporting(2)
    config = replace(config, network=replace(config.network, app_queue_bytes=100_000))
    cluster = a_live_cluster(senders=1, receivers=4, hierarchy=True, config=config, workload=workload)
    all_there(cluster)
    cluster.run_for(4 * SECOND)
    assert "r2" in silent(cluster)
    cluster[2].stop_reading()
    cluster.run_for(4 * SECOND)
    stopped = sendings(cluster, 0)
    cluster.run_for(4 * SECOND)
    assert sendings(cluster, 0) <= stopped + 1
    cluster[2].resume_reading()
    cluster.run_for(4 * SECOND)
    assert sendings(cluster, 0) > stopped + 50


def test_a_silent_receiver_that_dies_is_waited_for_only_a_while(a_live_cluster: MakeLive) -> None:
    cluster = all_there(a_live_cluster(senders=2, receivers=5, hierarchy=True, config=reporting(2)))
    cluster.run_for(5 * SECOND)
    assert "r3" in silent(cluster)
    cluster.crash(3)
    cluster.run_for(12 * SECOND)
    sender = cluster[0].endpoint
    assert sender.stable > cluster[3].endpoint.acknowledged
    assert sender.buffered_bytes < sender.counters.bytes_sent / 4


def test_what_only_a_receiver_has_is_fetched_from_it_before_the_view_ends(a_live_cluster: MakeLive) -> None:
    cluster = all_there(a_live_cluster(seats=[*SENDERS, RECEIVER], hierarchy=True))
    cluster.run_for(2 * SECOND)
    to_s1 = Rule(kinds=CARRIES_DATA, links=frozenset({(0, 1), (2, 1)}))
    cluster.oppose(to_s1)
    cluster.run_for(300 * MILLISECOND)
    cluster.crash(0)
    sent = sendings(cluster, 0)
    assert deliveries(cluster, 1, 0) < sent
    cluster[1].when("gather cut", lambda: cluster.relent(to_s1))
    assert cluster.run_until(lambda: views(cluster, 2)[-1].members == (cluster[1].id,), 10 * SECOND)
    cluster.run_for(SECOND)
    assert deliveries(cluster, 2, 0) == deliveries(cluster, 1, 0)
    assert gaps(cluster) == []


def test_who_is_asked_and_answers_is_measured_by_that(
    a_live_cluster: MakeLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What hosts and timers add is little, and only ever makes a way longer."""
    found: list[float] = []
    exchanged = GroupControl.exchanged

    def noted(control: GroupControl, member: MemberId, round_trip_us: int) -> None:
        (here,) = (one.index for one in cluster.alive if one.endpoint._control is control)
        (there,) = (one.index for one in cluster.alive if one.id == member)
        found.append(round_trip_us * 500 / cluster.network.delay(here, there))
        exchanged(control, member, round_trip_us)

    cluster = all_there(a_live_cluster(senders=2, receivers=4, hierarchy=True, conditions=Conditions(loss=0.05)))
    monkeypatch.setattr(GroupControl, "exchanged", noted)
    cluster.run_for(5 * SECOND)
    assert len(found) > 20
    assert min(found) > 0.9
    assert median(found) < 1.3


def test_losses_are_repaired_no_later_and_no_more_often_than_with_a_constant_distance() -> None:
    constant, measured = (
        recovery.measure("shared", distances, receivers=6, seeds=1, seconds=6) for distances in ("constant", "measured")
    )
    assert measured.median_ms <= constant.median_ms
    assert measured.late_ms <= constant.late_ms
    assert measured.requests <= 1.1 * constant.requests
    assert measured.repairs <= 1.1 * constant.repairs
