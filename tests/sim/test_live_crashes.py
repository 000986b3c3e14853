"""A crash at the worst moment: in every state of a repair, of a participant, of the leader and of a receiver."""

from __future__ import annotations

import pytest

from intergroup_core.ids import Service
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from tests.sim.live_stories import MakeLive, all_there, follower, leader, members_by_name, states, views
from tests.sizes import sized

FIRST = 3
"""The seat whose crash begins the repair."""


def repaired(cluster: LiveCluster, gone: set[int]) -> bool:
    """Whether everybody is in a view of all senders but these."""
    left = {seat.name for index, seat in enumerate(cluster.seats) if seat.sender and index not in gone}
    return all(
        members_by_name(cluster, member.index) == left
        for member in cluster.alive
        if member.service is not Service.UU or member.sender
    )


@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
@pytest.mark.parametrize("state", ["consensus", "gather cut", "gather recovery", "recovery", "wait for change"])
def test_a_participant_crashes_in(a_live_cluster: MakeLive, state: str, before: bool) -> None:
    cluster = all_there(a_live_cluster(senders=4, receivers=2))
    who = follower(cluster, FIRST)
    cluster.network.cut({(FIRST, who)})
    cluster[FIRST].send([bytes(500)])
    cluster.run_for(MILLISECOND)
    cluster[who].when(state, lambda: cluster.crash(who), before=before)
    cluster.crash(FIRST)
    assert cluster.run_until(lambda: not cluster[who].alive), f"never was in {state}"
    assert cluster.run_until(lambda: repaired(cluster, {FIRST, who}))


@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
@pytest.mark.parametrize("state", ["consensus", "gather cut", "gather recovery", "recovery", "gather ready"])
def test_the_leader_crashes_in(a_live_cluster: MakeLive, state: str, before: bool) -> None:
    cluster = all_there(a_live_cluster(senders=4, receivers=2))
    who = leader(cluster, FIRST)
    # Where it waits for the others, one of them must recover something; else it does itself.
    cluster.network.cut({(FIRST, follower(cluster, FIRST) if state == "gather ready" else who)})
    cluster[FIRST].send([bytes(500)])
    cluster.run_for(MILLISECOND)
    cluster[who].when(state, lambda: cluster.crash(who), before=before)
    cluster.crash(FIRST)
    assert cluster.run_until(lambda: not cluster[who].alive), f"never was in {state}"
    assert cluster.run_until(lambda: repaired(cluster, {FIRST, who}))


@pytest.mark.parametrize("reached", [1, 2])
def test_the_leader_dies_when_its_word_has_reached_some(a_live_cluster: MakeLive, reached: int) -> None:
    """M12: whoever said that it was ready installs the view when it learns of it, from whomever."""
    cluster = all_there(a_live_cluster(senders=5, receivers=2))
    first = follower(cluster)
    who = leader(cluster, first)
    others = [member.index for member in cluster.alive if member.index not in (who, first)]
    senders = [index for index in others if cluster[index].sender]
    hears = set(senders[:reached])
    cluster[who].when(
        "gather ready", lambda: cluster.network.cut({(who, index) for index in others if index not in hears})
    )
    cluster[who].when("sender", lambda: cluster.crash(who))
    cluster.crash(first)
    assert cluster.run_until(lambda: not cluster[who].alive)
    last = views(cluster, who)[-1].view
    assert cluster.run_until(lambda: repaired(cluster, {first, who}))
    for index in senders:
        assert last in {view.view for view in views(cluster, index)}, "everybody said ready, so everybody installs it"


@pytest.mark.parametrize("state", ["receiver wait", "receiver recovery"])
@pytest.mark.parametrize("victim", ["receiver", "leader", "participant"])
def test_somebody_crashes_while_a_receiver_is_in(a_live_cluster: MakeLive, state: str, victim: str) -> None:
    cluster = all_there(a_live_cluster(senders=4, receivers=2))
    receiver = 4
    who = {"receiver": receiver, "leader": leader(cluster, FIRST), "participant": follower(cluster, FIRST)}[victim]
    # The receiver lacks what the dead one said last, and is slow to get it.
    cluster.network.cut({(FIRST, receiver)})
    cluster.network.lossy({(index, receiver) for index in range(4)}, 0.3)
    cluster[FIRST].send([bytes(2_000)])
    cluster.run_for(MILLISECOND)
    cluster[receiver].when(state, lambda: cluster.crash(who))
    cluster.crash(FIRST)
    assert cluster.run_until(lambda: not cluster[who].alive), f"never was in {state}"
    cluster.network.heal_all()
    assert cluster.run_until(lambda: repaired(cluster, {FIRST, who}))


@pytest.mark.parametrize("moment_ms", [1, 20, 200, 400, 600])
def test_two_crash_one_after_the_other(a_live_cluster: MakeLive, moment_ms: int) -> None:
    services = (Service.RTO, Service.RSO, Service.RTO, Service.UU, Service.RTO, Service.RSO)
    cluster = all_there(a_live_cluster(senders=4, receivers=2, services=services))
    cluster[FIRST].send([bytes(500)])
    cluster.crash(FIRST)
    cluster.run_for(moment_ms * MILLISECOND)
    second = follower(cluster, FIRST)
    cluster.crash(second)
    assert cluster.run_until(lambda: repaired(cluster, {FIRST, second}))


@pytest.mark.parametrize("victim", ["leader", "participant"])
@pytest.mark.parametrize("state", ["consensus", "gather recovery", "wait for change", "gather ready"])
def test_a_crash_during_a_merge(a_live_cluster: MakeLive, state: str, victim: str) -> None:
    cluster = all_there(a_live_cluster(senders=4, receivers=2))
    cluster.split((0, 1, 4), (2, 3, 5))
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0", "s1"} == members_by_name(cluster, 4))
    assert cluster.run_until(lambda: members_by_name(cluster, 2) == {"s2", "s3"} == members_by_name(cluster, 5))
    cluster.run_for(SECOND)
    who = leader(cluster) if victim == "leader" else follower(cluster)
    watched = who if state != "wait for change" or victim != "leader" else follower(cluster)
    if state == "gather ready":
        watched = leader(cluster)
    cluster[watched].when(state, lambda: cluster.crash(who))
    cluster.heal_all()
    assert cluster.run_until(lambda: not cluster[who].alive), f"never was in {state}"
    assert cluster.run_until(lambda: repaired(cluster, {who}))


@pytest.mark.parametrize("moment_ms", range(50, 800, sized(150, 25)))
def test_who_comes_to_send_before_a_crash_is_noticed_becomes_a_sender_without_having_data(
    a_live_cluster: MakeLive, moment_ms: int
) -> None:
    cluster = all_there(a_live_cluster(seats=[Seat(name="s0", busy=0.0), Seat(name="s1", busy=0.0)]))
    cluster.crash(1)
    cluster.run_for(moment_ms * MILLISECOND)
    cluster.restart(1)
    assert cluster.run_until(lambda: states(cluster) == {"s0": "sender", "s1": "sender"}), states(cluster)
    assert cluster.run(2 * SECOND) == []
