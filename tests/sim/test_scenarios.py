"""Named troubles, each with what must be seen on the way; every property is checked at the end of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from intergroup_core.config import Config
from intergroup_core.ids import MemberId, Service, timestamp_span
from intergroup_core.sim.cluster import MILLISECOND, SECOND, SimCluster
from intergroup_core.sim.faults import ClockStep, Congestion, Crash, Partition, Pause, SlowApplication
from intergroup_core.sim.network import Conditions
from intergroup_core.sim.topology import star
from intergroup_core.sim.trace import Delivered, Sent, StableDropped, Suspected
from intergroup_core.sim.workload import Workload

MakeCluster = Callable[..., SimCluster]
MIXED = (Service.RTO, Service.RSO, Service.UU, Service.RTO, Service.RSO)


def deliveries(cluster: SimCluster, member: int, *, source: int | None = None, since: int = 0) -> int:
    me = cluster.members[member].id
    of = None if source is None else cluster.members[source].id
    return sum(
        type(event) is Delivered and event.member == me and event.at >= since and of in (None, event.source)
        for event in cluster.trace.events
    )


def sendings(cluster: SimCluster, member: int, *, since: int = 0, until: int = 1 << 62) -> int:
    me = cluster.members[member].id
    return sum(
        type(event) is Sent and event.member == me and since <= event.at < until for event in cluster.trace.events
    )


@pytest.mark.parametrize("delivery", [(Service.RTO,), (Service.RSO,), MIXED], ids=["rto", "rso", "mixed"])
def test_bursts_of_losses_are_made_good(a_cluster: MakeCluster, delivery: tuple[Service, ...]) -> None:
    cluster = a_cluster(services=delivery, conditions=Conditions(loss=0.2, mean_burst=10))
    cluster.start()
    cluster.run_for(5 * SECOND)
    assert cluster.tap.lost
    assert cluster.tap.repairs.total() > 0


def test_a_partition_stops_the_order_and_its_end_resumes_it(a_cluster: MakeCluster) -> None:
    """With a fixed view nobody is excluded: what needs the other side's promises waits for them."""
    cut = Partition(at=2 * SECOND, until=5 * SECOND, side=frozenset({0, 3}), other=frozenset({1, 2, 4}))
    cluster = a_cluster(faults=[cut])
    cluster.start()
    cluster.run_for(3 * SECOND)
    before = deliveries(cluster, 3)
    cluster.run_for(2 * SECOND - MILLISECOND)
    assert deliveries(cluster, 3) == before > 0
    cluster.run_for(2 * SECOND)
    assert deliveries(cluster, 3, source=1, since=5 * SECOND) > 0


def test_a_partition_does_not_stop_source_order_on_either_side(a_cluster: MakeCluster) -> None:
    cut = Partition(at=2 * SECOND, until=4 * SECOND, side=frozenset({0, 3}), other=frozenset({1, 2, 4}))
    cluster = a_cluster(services=(Service.RSO,), faults=[cut])
    cluster.start()
    cluster.run_for(4 * SECOND - MILLISECOND)
    assert deliveries(cluster, 3, source=0, since=3 * SECOND) > 0
    assert deliveries(cluster, 3, source=1, since=3 * SECOND) == 0


@pytest.mark.parametrize("paused", [0, 3], ids=["sender", "receiver"])
def test_a_paused_member_catches_up(a_cluster: MakeCluster, paused: int) -> None:
    cluster = a_cluster(services=MIXED[::-1], faults=[Pause(at=2 * SECOND, until=4 * SECOND, member=paused)])
    cluster.start()
    cluster.run_for(4 * SECOND - MILLISECOND)
    assert deliveries(cluster, paused, since=2 * SECOND) == 0
    cluster.run_for(SECOND)
    assert deliveries(cluster, paused, since=4 * SECOND) > 0


def test_a_source_that_only_others_hear_stalls_nobody(a_cluster: MakeCluster) -> None:
    """Its promises and frames come as repairs by those that hear it (D13)."""
    cluster = a_cluster(senders=3, receivers=1)
    cluster.network.cut({(0, 3)})
    cluster.start()
    cluster.run_for(5 * SECOND)
    assert deliveries(cluster, 3, source=0) > 50
    assert cluster.tap.promise_repairs > 0


def test_a_one_way_link_is_worked_around(a_cluster: MakeCluster) -> None:
    half = Partition(at=SECOND, until=9 * SECOND, side=frozenset({0}), other=frozenset({1, 4}), one_way=True)
    cluster = a_cluster(services=MIXED, faults=[half])
    cluster.start()
    cluster.run_for(8 * SECOND)
    # All of it, but for what is under way: others answer where the source's own repairs do not arrive.
    assert deliveries(cluster, 4, source=0, since=3 * SECOND) > 0.9 * sendings(cluster, 0, since=3 * SECOND)


def test_an_application_that_stops_reading_stops_its_senders(a_cluster: MakeCluster) -> None:
    config = Config.test()
    config = replace(
        config,
        report=replace(config.report, room_bytes=60_000),
        network=replace(config.network, app_queue_bytes=70_000),
        send=replace(config.send, queue_bytes=120_000),
    )
    idle = SlowApplication(at=2 * SECOND, until=8 * SECOND, member=4)
    cluster = a_cluster(config=config, workload=Workload(rate=300), faults=[idle])
    cluster.start()
    cluster.run_for(8 * SECOND - MILLISECOND)
    busy, stopped = (sendings(cluster, 0, since=at * SECOND, until=(at + 2) * SECOND) for at in (0, 6))
    assert busy > 100
    assert stopped == 0
    assert all(member.application is None or member.application.blocked for member in cluster.members)
    # What waits is bounded by what the slow one said it takes, not by how long it sleeps.
    assert max(member.buffered_most for member in cluster.members) < 4 * 70_000
    cluster.run_for(2 * SECOND)
    assert sendings(cluster, 0, since=8 * SECOND) > 0


def test_a_large_message_gets_through_heavy_loss(a_cluster: MakeCluster) -> None:
    cluster = a_cluster(services=MIXED, conditions=Conditions(loss=0.3))
    cluster.start(applications=False)
    assert cluster.members[0].send([bytes(99_000)])
    assert cluster.members[1].send([b"small"])
    cluster.run_for(20 * SECOND)
    assert deliveries(cluster, 3, source=0) == 1
    assert cluster.members[0].endpoint.counters.fragments_sent > 400


def test_a_wild_clock_is_refused_and_drags_nobody_along(a_cluster: MakeCluster) -> None:
    """D4: what its frames say is not believed, so nobody else's timestamps run ahead."""
    step = ClockStep(at=2 * SECOND, member=0, delta_ns=3_600 * SECOND)
    cluster = a_cluster(services=(Service.RSO,), faults=[step], quiet_limit_ns=2 * SECOND)
    cluster.start()
    cluster.run_for(6 * SECOND)
    wild, sane = cluster.members[0], cluster.members[1:]
    wild.connected = False  # nobody takes what it sends any more, and no view excludes it yet
    assert all(member.endpoint.counters.clock_refused for member in sane)
    last: dict[MemberId, int] = {e.member: e.timestamp for e in cluster.trace.events if type(e) is Sent}
    assert last[wild.id] - last[sane[0].id] > timestamp_span(3_000 * SECOND)
    assert abs(last[sane[0].id] - last[sane[1].id]) < timestamp_span(10 * SECOND)
    assert deliveries(cluster, 3, source=1, since=5 * SECOND) > 0


@pytest.mark.parametrize("delta_ns", [-2 * SECOND, 2 * SECOND], ids=["back", "forward"])
def test_a_wall_clock_that_is_set_breaks_nothing(a_cluster: MakeCluster, delta_ns: int) -> None:
    cluster = a_cluster(services=MIXED, faults=[ClockStep(at=SECOND, member=1, delta_ns=delta_ns)])
    cluster.start()
    cluster.run_for(3 * SECOND)
    assert deliveries(cluster, 0, source=1, since=2 * SECOND) > 0


def test_a_crashed_receiver_holds_stability_back_but_not_delivery(a_cluster: MakeCluster) -> None:
    cluster = a_cluster(faults=[Crash(at=2 * SECOND, member=4)])
    cluster.start()
    cluster.run_for(5 * SECOND)
    assert deliveries(cluster, 3, since=4 * SECOND) > 0
    late = [event for event in cluster.trace.events if type(event) is StableDropped and event.at > 3 * SECOND]
    assert not late


def test_a_crashed_sender_is_suspected_and_stops_only_the_timestamp_order(a_cluster: MakeCluster) -> None:
    services = (Service.RTO, Service.RTO, Service.RTO, Service.RTO, Service.RSO)
    cluster = a_cluster(services=services, faults=[Crash(at=2 * SECOND, member=0)])
    cluster.start()
    cluster.run_for(14 * SECOND)
    assert deliveries(cluster, 3, since=4 * SECOND) == 0
    assert deliveries(cluster, 4, source=1, since=4 * SECOND) > 0
    suspects = {event.suspect for event in cluster.trace.events if type(event) is Suspected}
    assert suspects == {cluster.members[0].id}


def test_a_network_that_takes_nothing_for_a_while_loses_nothing(a_cluster: MakeCluster) -> None:
    cluster = a_cluster(services=MIXED, faults=[Congestion(at=SECOND, until=3 * SECOND, member=0)])
    cluster.start()
    cluster.run_for(3 * SECOND - MILLISECOND)
    assert sendings(cluster, 0, since=SECOND + 10 * MILLISECOND) == 0
    cluster.run_for(SECOND)
    assert sendings(cluster, 0, since=3 * SECOND) > 0


def test_idle_senders_answer_at_once(a_cluster: MakeCluster) -> None:
    """D13: with a speaker and two listeners an order takes round trips, not keep-alive periods."""
    spokes = [MILLISECOND] * 5
    cluster = a_cluster(delays=star(spokes), busy=(1.0, 1e-6, 1e-6), workload=Workload(rate=20, series=0, large=0))
    cluster.start()
    cluster.run_for(5 * SECOND)
    sent = {(event.member, event.seq): event.at for event in cluster.trace.events if type(event) is Sent}
    waits = sorted(
        event.at - sent[event.source, event.seq]
        for event in cluster.trace.events
        if type(event) is Delivered and event.member != event.source
    )
    assert len(waits) > 200
    # There and back is four milliseconds; an idle sender's period is a hundred.
    assert waits[len(waits) // 2] < 8 * MILLISECOND


def test_senders_in_step_with_coarse_clocks_are_told_apart_by_their_ids(a_cluster: MakeCluster) -> None:
    cluster = a_cluster(
        senders=4, workload=Workload(step_ns=20 * MILLISECOND), skew_ns=0, resolution_ns=16 * MILLISECOND
    )
    cluster.start()
    cluster.run_for(5 * SECOND)
    stamps = [event.timestamp for event in cluster.trace.events if type(event) is Sent]
    assert len(stamps) - len(set(stamps)) > 20


def test_hundreds_of_members_agree(a_cluster: MakeCluster) -> None:
    config = Config.test()
    config = replace(config, report=replace(config.report, busy_ms=500, idle_ms=1_000))
    cluster = a_cluster(
        receivers=150,
        services=MIXED,
        config=config,
        conditions=Conditions(loss=0.02),
        workload=Workload(rate=10),
        wake_ns=5 * MILLISECOND,
    )
    cluster.start()
    cluster.run_for(SECOND)
    assert cluster.sent > 10
    cluster.settle()
    counts = {member.delivered_count for member in cluster.members if member.service is not Service.UU}
    assert counts == {cluster.sent}
