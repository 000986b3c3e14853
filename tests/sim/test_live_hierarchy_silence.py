"""Receivers for which the hierarchy speaks, while that goes wrong: who is waited for, and who knows it."""

from __future__ import annotations

from intergroup_core.ids import wall_us
from intergroup_core.sim.adversary import Rule
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from intergroup_core.sim.workload import Workload
from tests.sim.live_stories import MakeLive, all_there, deliveries, gaps, sendings
from tests.sim.test_live_hierarchy import CARRIES_DATA, reporting, silent

SENDERS = [Seat(name="s0"), Seat(name="s1", busy=0.5)]
RECEIVERS = [Seat(name=f"r{number}", sender=False) for number in range(2, 8)]


def with_silent_receivers(cluster: LiveCluster) -> LiveCluster:
    """Let everybody come together and all receivers fall silent."""
    all_there(cluster)
    receivers = [member.name for member in cluster.alive if not member.sender]
    assert cluster.run_until(lambda: silent(cluster) == receivers, 10 * SECOND), silent(cluster)
    return cluster


def coordinator(cluster: LiveCluster) -> int:
    """The seat whose control process the others are children of."""
    return next(member.index for member in cluster.alive if member.control and member.control.process.children)


def no_data_to(cluster: LiveCluster, seat: int) -> Rule:
    """Loses all data on its way to a seat, whoever sends it. The member is not cut off, and counts."""
    rule = Rule(kinds=CARRIES_DATA, links=frozenset((other, seat) for other in range(len(cluster.seats))))
    cluster.network.oppose(rule)
    return rule


def test_a_silent_receiver_that_nobody_hears_any_more_knows_that_it_is_not_counted(a_live_cluster: MakeLive) -> None:
    config = reporting(2)
    cluster = with_silent_receivers(a_live_cluster(seats=SENDERS + RECEIVERS, hierarchy=True, config=config))
    mute = next(seat for seat in range(2, 8) if seat != coordinator(cluster))
    cluster.cut({(mute, other) for other in range(8) if other != mute})
    cluster.run_for(2_900 * MILLISECOND)
    deaf = no_data_to(cluster, mute)
    lagging = cluster[mute].endpoint
    assert cluster.run_until(lambda: cluster[0].endpoint.stable > lagging.acknowledged, 3 * SECOND)
    assert not lagging._told_counted
    cluster.network.relent(deaf)
    cluster.heal_all()
    assert cluster.run_until(lambda: len(gaps(cluster)) == 1, 3 * SECOND), "it learns what it misses"


def test_a_sender_that_came_when_all_were_silent_waits_for_them(a_live_cluster: MakeLive) -> None:
    seats = [*SENDERS, *RECEIVERS, Seat(name="s8", joins_at=None)]
    cluster = with_silent_receivers(a_live_cluster(seats=seats, hierarchy=True, config=reporting(2)))
    cluster.leave(1)
    cluster.run_for(SECOND)
    cluster.leave(0)
    cluster.run_for(SECOND)
    assert cluster[2].endpoint.view.members == ()  # type: ignore[union-attr]
    cluster.join(8)
    assert cluster.run_until(lambda: cluster[8].state == "sender")
    cluster.run_for(3 * SECOND)
    deaf = no_data_to(cluster, 3)
    cluster.run_for(SECOND)
    assert cluster[8].endpoint.stable <= cluster[3].endpoint.acknowledged
    cluster.network.relent(deaf)
    cluster.run_for(SECOND)
    assert gaps(cluster) == []


def test_buffers_of_silent_receivers_drain_when_no_sender_is_left(a_live_cluster: MakeLive) -> None:
    config = reporting(2)
    cluster = with_silent_receivers(a_live_cluster(seats=SENDERS + RECEIVERS, hierarchy=True, config=config))
    for sender in (1, 0):
        cluster.leave(sender)
        cluster.run_for(SECOND)
    assert cluster.run_until(lambda: all(not member.endpoint.buffered_bytes for member in cluster.alive), 5 * SECOND)


def test_what_a_silent_receiver_lacks_of_the_last_sender_is_kept_by_the_others(a_live_cluster: MakeLive) -> None:
    config = reporting(2)
    cluster = with_silent_receivers(a_live_cluster(seats=SENDERS + RECEIVERS, hierarchy=True, config=config))
    cluster.leave(1)
    cluster.run_for(SECOND)
    deaf = no_data_to(cluster, 4)
    cluster.run_for(100 * MILLISECOND)
    cluster.leave(0)
    cluster.run_for(3 * SECOND)
    assert not cluster[0].alive
    cluster.network.relent(deaf)
    cluster.run_for(SECOND)
    assert deliveries(cluster, 4, 0) == deliveries(cluster, 3, 0)
    assert gaps(cluster) == []


def test_senders_of_another_branch_wait_for_a_silent_receiver_on_its_way(a_live_cluster: MakeLive) -> None:
    seats = [*SENDERS, *(Seat(name=f"r{number}", sender=False) for number in range(2, 10))]
    settings = {"hierarchy": True, "config": reporting(2), "workload": Workload()}
    cluster = with_silent_receivers(a_live_cluster(seats=seats, **settings))
    cluster.split([0, 2, 3, 4, 5], [1, 6, 7, 8, 9])
    cluster.run_for(8 * SECOND)
    no_data_to(cluster, 6)
    cluster.run_for(200 * MILLISECOND)
    cluster.heal_all()
    deaf = no_data_to(cluster, 6)
    assert cluster.run_until(lambda: len(cluster[0].endpoint.view.members) == 2)  # type: ignore[union-attr]
    cluster.run_for(1_500 * MILLISECOND)
    assert cluster[6].state == "receiver recovery"
    # Before both branches ended there was nothing of the new view: its start is the least that matters.
    start = cluster[0].endpoint.view.id.start  # type: ignore[union-attr]
    assert cluster[0].endpoint.stable <= max(start, cluster[6].endpoint.acknowledged)
    assert sendings(cluster, 0) > 0
    cluster.network.relent(deaf)
    cluster.run_for(SECOND)
    assert gaps(cluster) == []


def test_a_hierarchy_without_the_senders_counts_for_nothing(a_live_cluster: MakeLive) -> None:
    config = reporting(2)
    cluster = with_silent_receivers(a_live_cluster(seats=SENDERS + RECEIVERS, hierarchy=True, config=config))
    with_senders = sorted({0, 1, coordinator(cluster)})
    apart = [seat for seat in range(8) if seat not in with_senders]
    cluster.split(with_senders, apart)
    # Long enough for those without senders to find a coordinator of their own, who counts them.
    cluster.run_for(7 * SECOND)
    process = cluster[apart[0]].control.process  # type: ignore[union-attr]
    assert process.coordinator in [cluster[seat].control.process.me for seat in apart]  # type: ignore[union-attr]
    assert cluster[0].endpoint.stable > cluster[apart[0]].endpoint.acknowledged
    assert not any(cluster[seat].endpoint._told_counted for seat in apart)
    cluster.heal_all()
    cluster.run_for(3 * SECOND)
    assert sorted(gap.reason for gap in gaps(cluster)) == ["the others dropped what it misses"] * len(apart)
    assert cluster.run_until(lambda: len(silent(cluster)) == len(RECEIVERS), 5 * SECOND)


def lag_s(cluster: LiveCluster, seat: int) -> float:
    """How far what a member takes as stable is behind what it has itself, in seconds."""
    endpoint = cluster[seat].endpoint
    return (wall_us(endpoint.acknowledged) - wall_us(endpoint.stable)) / 1e6


def test_a_sender_that_hears_nothing_of_the_hierarchy_goes_by_reports_again(a_live_cluster: MakeLive) -> None:
    workload = Workload(rate=30, size=1_000, duty=1.0)
    settings = {"hierarchy": True, "config": reporting(2), "workload": workload}
    cluster = with_silent_receivers(a_live_cluster(seats=SENDERS + RECEIVERS, **settings))
    cluster[0].control.crash()  # type: ignore[union-attr]
    cluster.run_for(12 * SECOND)
    assert lag_s(cluster, 0) < 1
    assert lag_s(cluster, 1) < 1
    assert silent(cluster) == []
    deaf = no_data_to(cluster, 3)
    cluster.run_for(SECOND)
    assert cluster[0].endpoint.stable <= cluster[3].endpoint.acknowledged
    cluster.network.relent(deaf)
    before = sendings(cluster, 0)
    cluster.run_for(2 * SECOND)
    assert sendings(cluster, 0) > before + 30
    assert gaps(cluster) == []


def test_a_coordinator_that_one_sender_does_not_hear_does_not_hold_the_others_back(a_live_cluster: MakeLive) -> None:
    config = reporting(2)
    cluster = with_silent_receivers(a_live_cluster(seats=SENDERS + RECEIVERS, hierarchy=True, config=config))
    assert coordinator(cluster) > 1
    cluster.cut({(coordinator(cluster), 0)})
    cluster.run_for(12 * SECOND)
    assert lag_s(cluster, 1) < 1
    cluster.heal_all()
    assert cluster.run_until(lambda: len(silent(cluster)) == len(RECEIVERS), 10 * SECOND)
    assert gaps(cluster) == []


def lose_control_messages(cluster: LiveCluster, one: set[int]) -> None:
    """No control message passes between some seats and the others; whatever else is sent does."""
    passage = cluster.network.passage

    def blocked(sender: int, receiver: int) -> int | None:
        return None if (sender in one) != (receiver in one) else passage(sender, receiver)

    cluster.network.passage = blocked  # type: ignore[method-assign]


def test_where_senders_are_in_another_hierarchy_receivers_report(a_live_cluster: MakeLive) -> None:
    cluster = a_live_cluster(seats=SENDERS + RECEIVERS, hierarchy=True, config=reporting(2))
    lose_control_messages(cluster, {0, 1})
    all_there(cluster)
    cluster.run_for(8 * SECOND)
    assert silent(cluster) == []
    deaf = no_data_to(cluster, 3)
    cluster.run_for(SECOND)
    assert cluster[0].endpoint.stable <= cluster[3].endpoint.acknowledged
    cluster.network.relent(deaf)
    cluster.run_for(SECOND)
    assert gaps(cluster) == []


def test_receivers_report_again_when_senders_come_from_another_hierarchy(a_live_cluster: MakeLive) -> None:
    seats = [*SENDERS, *RECEIVERS, Seat(name="s8", joins_at=None)]
    cluster = a_live_cluster(seats=seats, hierarchy=True, config=reporting(2))
    lose_control_messages(cluster, {8})
    with_silent_receivers(cluster)
    cluster.join(8)
    assert cluster.run_until(lambda: cluster[8].state == "sender")
    assert cluster.run_until(lambda: silent(cluster) == [], 3 * SECOND)
