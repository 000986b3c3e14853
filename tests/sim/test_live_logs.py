"""Members with logs: what a log does not hold yet counts for nobody."""

from __future__ import annotations

import pytest

from intergroup_core.ids import Service
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.live_cluster import Seat
from tests.sim.live_stories import MakeLive, all_there, deliveries, gaps

SILENT = (Seat(name="s0", busy=0.0), Seat(name="s1", busy=0.0))


def test_nothing_is_stable_before_every_log_holds_it(a_live_cluster: MakeLive) -> None:
    cluster = all_there(a_live_cluster(seats=[*SILENT, Seat(name="r2", sender=False)], log_ns=20 * MILLISECOND))
    cluster.run_for(SECOND)
    slow = cluster[2]
    assert slow._log is not None
    slow._log._longest_ns = 1
    slow._log._busy_until = cluster.scheduler.now + 2 * SECOND
    assert cluster[0].send([b"kept until the last log has it"])
    cluster.run_for(SECOND)
    assert deliveries(cluster, 2, 0) == 1
    assert cluster[0].endpoint.buffered_bytes > 0
    assert cluster[2].endpoint.acknowledged < cluster[0].endpoint.acknowledged
    cluster.run_for(2 * SECOND)
    assert [member.endpoint.buffered_bytes for member in cluster.alive] == [0, 0, 0]


def test_slow_logs_change_neither_order_nor_views(a_live_cluster: MakeLive) -> None:
    services = (Service.RTO, Service.RSO, Service.RTO, Service.UU)
    cluster = all_there(a_live_cluster(senders=3, receivers=3, services=services, log_ns=200 * MILLISECOND))
    cluster.scheduler.after(2 * SECOND, cluster.crash, 1)
    cluster.scheduler.after(4 * SECOND, cluster.restart, 1)
    assert cluster.run(8 * SECOND) == []
    assert gaps(cluster) == []


def test_a_new_incarnation_is_not_held_by_what_the_old_one_appended(a_live_cluster: MakeLive) -> None:
    cluster = all_there(a_live_cluster(senders=2, receivers=1, log_ns=300 * MILLISECOND))
    cluster.run_for(SECOND)
    cluster.crash(0)
    cluster.crash(1)
    cluster.run_for(2 * SECOND)
    cluster.restart(0)
    cluster.restart(1)
    assert cluster.run_until(lambda: bool(gaps(cluster)))
    assert cluster.run(4 * SECOND) == []
    assert all(member.endpoint.buffered_bytes == 0 for member in cluster.alive)


@pytest.mark.parametrize("log_ms", [0, 20])
def test_what_the_buffers_dropped_is_repeated_from_the_logs(a_live_cluster: MakeLive, log_ms: int) -> None:
    seats = [*SILENT, Seat(name="r2", sender=False)]
    cluster = all_there(a_live_cluster(seats=seats, log_ns=log_ms * MILLISECOND))
    cluster.run_for(SECOND)
    # Nobody hears of the receiver, so it is not waited for, and data does not reach it.
    cluster.cut({(2, 0), (2, 1), (0, 2), (1, 2)})
    for number in range(20):
        assert cluster[0].send([b"%d" % number])
        cluster.run_for(100 * MILLISECOND)
    assert cluster.run_until(lambda: cluster[0].endpoint.buffered_bytes == 0)
    cluster.heal_all()
    assert cluster.run_until(lambda: deliveries(cluster, 2, 0) == 20 or bool(gaps(cluster)))
    assert bool(gaps(cluster)) is (log_ms == 0)
    if log_ms:
        assert sum(member.endpoint.counters.frames_from_log for member in cluster.alive) > 0
    assert cluster.run(2 * SECOND) == []
