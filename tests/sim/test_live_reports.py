"""Reports that are late or lost: who counts is waited for, and what it may lack is kept."""

from __future__ import annotations

import pytest

from intergroup_core.ids import COUNTER_BITS
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.live_cluster import Seat
from intergroup_core.sim.trace import Sent
from intergroup_core.sim.workload import Workload
from intergroup_core.wire.header import FrameType
from tests.sim.live_stories import (
    MakeLive,
    against,
    all_there,
    deliveries,
    from_others,
    gaps,
    members_by_name,
    to_others,
)


def test_reports_of_one_receiver_are_lost(a_live_cluster: MakeLive) -> None:
    """It is forgotten after a while, holds nobody back, and is told so by a gap or gets everything."""
    cluster = all_there(a_live_cluster(senders=2, receivers=2))
    against(cluster, {FrameType.REPORT}, to_others(cluster, 3))
    cluster.run_for(8 * SECOND)
    assert cluster[0].endpoint.buffered_bytes < 50_000
    cluster.heal_all()
    cluster.run_for(2 * SECOND)
    assert deliveries(cluster, 3, 0, since=cluster.scheduler.now - SECOND) > 0


def test_a_newcomer_whose_reports_come_late_is_waited_for(a_live_cluster: MakeLive) -> None:
    """D7: until it is counted, its sponsor acknowledges nothing that it may need."""
    seats = [Seat(name="s0"), Seat(name="s1"), Seat(name="late", sender=False, joins_at=None)]
    cluster = all_there(a_live_cluster(seats=seats, workload=Workload(rate=80)))
    against(cluster, {FrameType.REPORT}, [(2, 0), (2, 1)], late_ms=700)
    against(cluster, {FrameType.DATA}, [(0, 2)])
    cluster.join(2)
    assert cluster.run_until(lambda: members_by_name(cluster, 2) == {"s0", "s1"})
    cluster.run_for(SECOND)
    cluster.heal_all()
    cluster.run_for(2 * SECOND)
    assert not gaps(cluster)
    assert deliveries(cluster, 2, 0) > 0


@pytest.mark.parametrize("made_by", ["leave", "repair"])
def test_what_the_last_sender_said_can_be_had_from_a_receiver_once_it_is_gone(
    a_live_cluster: MakeLive, made_by: str
) -> None:
    """Who is in the empty view keeps what a receiver may lack that the last sender counted (property 16)."""
    seats = [
        Seat(name="s0", busy=0.0),
        Seat(name="r1", sender=False),
        Seat(name="r2", sender=False),
        Seat(name="s3", busy=0.0, joins_at=0 if made_by == "repair" else None),
    ]
    cluster = all_there(a_live_cluster(seats=seats))
    lost = against(cluster, {FrameType.DATA, FrameType.REPAIR}, [(0, 2)])
    unheard = against(cluster, {FrameType.REQUEST, FrameType.REPORT}, from_others(cluster, 2) + to_others(cluster, 2))
    if made_by == "repair":
        against(cluster, {FrameType.REPORT}, [(0, 1)])
        cluster.crash(3)
    cluster[0].send([b"last"])
    cluster.leave(0)
    assert cluster.run_until(lambda: members_by_name(cluster, 1) == set())
    cluster.run_for(20 * MILLISECOND)
    cluster.crash(0)
    cluster.run_for(100 * MILLISECOND)
    cluster.relent(unheard)
    assert lost.met
    assert cluster.run_until(lambda: deliveries(cluster, 2, 0) == deliveries(cluster, 1, 0) == 1)
    assert not gaps(cluster)


def test_who_only_receives_hears_that_all_is_stable_before_its_senders_rest(a_live_cluster: MakeLive) -> None:
    """It goes by what senders say, and their next report is due only when the idle period is over."""
    cluster = all_there(a_live_cluster(seats=[Seat(name="s0", busy=0.0), Seat(name="r0", sender=False)]))
    receiver = cluster[1].endpoint
    for _ in range(5):
        cluster.run_for(SECOND)
        cluster[0].send([b"the last for a while"])
        sent = next(event for event in reversed(cluster.trace.events) if type(event) is Sent)

        def is_stable(timestamp: int = sent.timestamp) -> bool:
            return receiver.stable >> COUNTER_BITS > timestamp >> COUNTER_BITS

        assert cluster.run_until(is_stable)
        assert cluster.scheduler.now - sent.at < 150 * MILLISECOND
