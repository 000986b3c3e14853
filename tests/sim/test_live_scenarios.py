"""Named troubles of live membership, each with what must be seen on the way; every property is checked at the end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from intergroup_core.config import Config
from intergroup_core.ids import Service
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from intergroup_core.sim.trace import Crashed, Left, Sent
from intergroup_core.sim.workload import Workload
from tests.sim.live_stories import (
    MIXED,
    MakeLive,
    all_there,
    deliveries,
    follower,
    gaps,
    leader,
    members_by_name,
    sendings,
    states,
    views,
)

LATE = Seat(name="late", joins_at=None)

# Coming


def test_a_receiver_where_nobody_is_waits_for_the_first_sender(a_live_cluster: MakeLive) -> None:
    seats = [Seat(name="early", sender=False), replace(LATE, name="s1")]
    cluster = a_live_cluster(seats=seats)
    cluster.run_for(5 * SECOND)
    assert states(cluster) == {"early": "bootstrap"}
    cluster.join(1)
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s1"})
    cluster.run_for(2 * SECOND)
    assert deliveries(cluster, 0, 1) == sendings(cluster, 1) > 0


def test_a_sender_alone_delivers_to_itself(a_live_cluster: MakeLive) -> None:
    cluster = a_live_cluster(senders=1, receivers=0)
    cluster.run_for(5 * SECOND)
    assert members_by_name(cluster, 0) == {"s0"}
    assert deliveries(cluster, 0, 0) == sendings(cluster, 0) > 0


@pytest.mark.parametrize("seed", range(1, 6))
def test_two_newcomers_at_the_same_time_found_one_group(a_live_cluster: MakeLive, seed: int) -> None:
    cluster = a_live_cluster(seed=seed, seats=[Seat(name="one"), Seat(name="other")])
    assert cluster.run_until(lambda: cluster.members != [] and cluster.agreed(), 5 * SECOND)
    assert members_by_name(cluster, 0) == {"one", "other"}


@pytest.mark.parametrize("seed", range(1, 6))
def test_two_newcomers_at_the_same_time_join_a_group(a_live_cluster: MakeLive, seed: int) -> None:
    seats = [Seat(name="s0"), Seat(name="s1"), replace(LATE, name="n2"), replace(LATE, name="n3")]
    cluster = all_there(a_live_cluster(seed=seed, seats=seats))
    cluster.join(2)
    cluster.join(3)
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0", "s1", "n2", "n3"}, 5 * SECOND)
    cluster.run_for(2 * SECOND)
    assert deliveries(cluster, 0, 2) > 0
    assert not gaps(cluster)


def test_a_joiner_with_a_slow_clock_never_stamps_below_what_was_delivered(a_live_cluster: MakeLive) -> None:
    """M3."""
    seats = [Seat(name="s0"), Seat(name="s1"), replace(LATE, skew_ns=-20 * SECOND)]
    cluster = all_there(a_live_cluster(seats=seats, skew_ns=0))
    cluster.join(2)
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0", "s1", "late"})
    cluster.run_for(3 * SECOND)
    assert deliveries(cluster, 0, 2) > 0
    stamped = min(
        event.timestamp for event in cluster.trace.events if type(event) is Sent and event.member == cluster[2].id
    )
    assert stamped > views(cluster, 2)[-1].start


def test_a_joiner_with_a_wild_clock_is_refused(a_live_cluster: MakeLive) -> None:
    """D4."""
    seats = [Seat(name="s0"), Seat(name="s1"), replace(LATE, skew_ns=3_600 * SECOND)]
    cluster = all_there(a_live_cluster(seats=seats, skew_ns=0))
    cluster.join(2)
    cluster.run_for(3 * SECOND)
    assert [event.reason for event in cluster.trace.events if type(event) is Left] == ["clock"]
    assert members_by_name(cluster, 0) == {"s0", "s1"}


@pytest.mark.parametrize("victim", range(3))
@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
def test_a_sponsor_dies_half_way(a_live_cluster: MakeLive, victim: int, before: bool) -> None:
    """Whichever of the three it is: the newcomer asks another, or the repair takes it in."""
    seats = [*(Seat(name=f"s{index}") for index in range(3)), LATE]
    cluster = all_there(a_live_cluster(seats=seats))
    cluster.join(3)
    cluster[3].when("to sender", lambda: cluster.crash(victim), before=before)
    left = {f"s{index}" for index in range(3) if index != victim} | {"late"}
    assert cluster.run_until(lambda: members_by_name(cluster, 3) == left)
    assert not cluster[victim].alive
    cluster.run_for(SECOND)
    assert deliveries(cluster, (victim + 1) % 3, 3) > 0


@pytest.mark.parametrize("service", [Service.RTO, Service.RSO, Service.UU])
def test_a_receiver_that_begins_to_send_becomes_a_sender(a_live_cluster: MakeLive, service: Service) -> None:
    seats = [Seat(name="s0"), Seat(name="s1"), Seat(name="r2", sender=False, service=service)]
    cluster = all_there(a_live_cluster(seats=seats))
    cluster.start_sending(2)
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0", "s1", "r2"})
    cluster.run_for(2 * SECOND)
    assert deliveries(cluster, 0, 2) > 0


# Going


def test_a_sender_leaves_in_good_order(a_live_cluster: MakeLive) -> None:
    cluster = all_there(a_live_cluster(senders=3, receivers=2, services=MIXED))
    cluster.leave(1)
    assert cluster.run_until(lambda: cluster[1].left, 5 * SECOND)
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0", "s2"}, SECOND)
    went = [reason for view in views(cluster, 0) for _, reason in view.departed]
    assert went == ["left"]
    cluster.run_for(SECOND)
    assert deliveries(cluster, 0, 1) == sendings(cluster, 1) > 0


def test_silent_senders_become_receivers_and_come_back(a_live_cluster: MakeLive) -> None:
    """M14: all but the last."""
    seats = [Seat(name="busy"), Seat(name="quiet", busy=0), Seat(name="still", busy=0)]
    cluster = all_there(a_live_cluster(seats=seats))
    assert members_by_name(cluster, 0) == {"busy", "quiet", "still"}
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"busy"})
    assert {reason for view in views(cluster, 0) for _, reason in view.departed} == {"silence"}
    assert cluster.run_until(lambda: states(cluster) == {"busy": "sender", "quiet": "receiver", "still": "receiver"})
    cluster.start_sending(1)
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"busy", "quiet"})
    cluster.run_for(2 * SECOND)
    assert deliveries(cluster, 2, 1) == deliveries(cluster, 0, 1) > 0
    assert not gaps(cluster)


@pytest.mark.parametrize("comes", ["receiver", "newcomer"])
def test_all_senders_leave_and_the_next_ones_first_messages_are_not_missed(
    a_live_cluster: MakeLive, comes: str
) -> None:
    """M14: from an empty view receivers follow the next sender without starting anew."""
    seats = [
        Seat(name="s0"),
        Seat(name="s1"),
        Seat(name="r2", sender=False),
        Seat(name="r3", sender=False, service=Service.RSO),
        Seat(name="r4", sender=False),
        LATE,
    ]
    cluster = all_there(a_live_cluster(seats=seats))
    cluster.leave(0)
    cluster.run_for(SECOND)
    cluster.leave(1)
    assert cluster.run_until(lambda: cluster[0].left and cluster[1].left)
    cluster.run_for(3 * SECOND)
    assert all(members_by_name(cluster, index) == set() for index in (2, 3, 4))
    who = 4 if comes == "receiver" else 5
    if comes == "receiver":
        cluster.start_sending(4)
    else:
        cluster.join(5)
    assert cluster.run_until(lambda: members_by_name(cluster, 2) == {cluster.seats[who].name})
    cluster.run_for(3 * SECOND)
    assert not gaps(cluster)
    assert deliveries(cluster, 2, who) == deliveries(cluster, 3, who) == sendings(cluster, who) > 0


@pytest.mark.parametrize("victim", ["leader", "participant"])
@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
def test_a_leave_races_with_a_repair(a_live_cluster: MakeLive, victim: str, before: bool) -> None:
    """M13: the ordered message is in the cut, and all survivors deliver its view before the next."""
    cluster = all_there(a_live_cluster(senders=4, receivers=2, services=MIXED))
    goes = follower(cluster)
    who = leader(cluster) if victim == "leader" else follower(cluster, goes)
    cluster[goes].when("to receiver", lambda: cluster.crash(who), before=before)
    cluster.leave(goes)
    left = {f"s{index}" for index in range(4) if index not in (goes, who)}
    assert cluster.run_until(lambda: members_by_name(cluster, leader(cluster, goes, who)) == left)
    assert cluster.run_until(lambda: cluster[goes].left)
    assert not cluster[who].alive


@pytest.mark.parametrize("victim", ["leader", "participant"])
def test_an_add_races_with_a_repair(a_live_cluster: MakeLive, victim: str) -> None:
    seats = [*(Seat(name=f"s{index}") for index in range(4)), LATE]
    cluster = all_there(a_live_cluster(seats=seats))
    who = leader(cluster) if victim == "leader" else follower(cluster)
    cluster.crash(who)
    cluster.run_for(400 * MILLISECOND)  # the rest will notice within the next 300
    cluster.join(4)
    left = {f"s{index}" for index in range(4) if index != who} | {"late"}
    assert cluster.run_until(lambda: members_by_name(cluster, leader(cluster, who)) == left)
    cluster.run_for(SECOND)
    assert deliveries(cluster, leader(cluster, who, 4), 4) > 0


# Cuts


@pytest.mark.parametrize("moment_ms", [2, 10, 25, 40])
def test_a_large_message_straddles_the_cut(a_live_cluster: MakeLive, moment_ms: int) -> None:
    """D8: a failed sender's cut is rounded down to a whole message; a survivor's is delivered whole."""
    cluster = all_there(a_live_cluster(senders=3, receivers=2, services=MIXED, workload=Workload(rate=20)))
    assert cluster[0].send([bytes(60_000)])
    assert cluster[1].send([bytes(30_000)])
    cluster.run_for(moment_ms * MILLISECOND)
    cluster.crash(0)
    assert cluster.run_until(lambda: members_by_name(cluster, 1) == {"s1", "s2"})
    cluster.run_for(SECOND)
    assert deliveries(cluster, 3, 1) == sendings(cluster, 1)


def test_a_receiver_ahead_of_the_cut_takes_a_gap(a_live_cluster: MakeLive) -> None:
    """M5: it alone got and delivered what the dead sender said last."""
    seats = [Seat(name="dies", busy=0), Seat(name="stays", busy=0), Seat(name="r2", sender=False)]
    cluster = all_there(a_live_cluster(seats=seats))
    cluster.network.cut({(0, 1), (2, 1)})
    assert cluster[0].send([b"only r2 hears this"])
    assert cluster.run_until(lambda: deliveries(cluster, 2, 0) == 1, SECOND)
    cluster.crash(0)
    cluster.network.heal_all()
    assert cluster.run_until(lambda: members_by_name(cluster, 2) == {"stays"})
    assert [gap.reason for gap in gaps(cluster)] == cluster[2].gaps != []
    assert cluster[1].send([b"and this everybody does"])
    assert cluster.run_until(lambda: deliveries(cluster, 2, 1) == 1, SECOND)


# Links and pauses


@pytest.mark.parametrize("parts", [((0, 1, 4), (2, 3, 5)), ((0, 4), (1, 2), (3, 5)), ((0,), (1, 2, 3, 4, 5))])
def test_a_network_in_parts_comes_together_again(a_live_cluster: MakeLive, parts: tuple[tuple[int, ...], ...]) -> None:
    """Each part goes on by itself; then one view of all, and nobody takes a gap."""
    cluster = all_there(a_live_cluster(senders=4, receivers=2, services=(Service.RTO, Service.RSO)))
    cluster.split(*parts)
    assert cluster.run_until(
        lambda: all(
            members_by_name(cluster, index) == {f"s{other}" for other in part if other < 4}
            for part in parts
            for index in part
            if any(other < 4 for other in part)
        )
    )
    cluster.run_for(2 * SECOND)
    healed = cluster.scheduler.now
    assert all(sendings(cluster, index, since=healed - SECOND) > 0 for index in range(4))
    cluster.heal_all()
    assert cluster.run_until(cluster.agreed)
    assert members_by_name(cluster, 5) == {"s0", "s1", "s2", "s3"}
    cluster.run_for(SECOND)
    assert deliveries(cluster, 4, 3, since=healed) > 0
    assert not gaps(cluster)


@pytest.mark.parametrize("way", [((0, 1),), ((0, 1), (0, 2)), ((1, 0), (2, 0))])
def test_an_asymmetric_link_does_not_keep_the_group_from_its_work(
    a_live_cluster: MakeLive, way: tuple[tuple[int, int], ...]
) -> None:
    """M9: a link that works one way only costs a bounded number of views."""
    cluster = all_there(a_live_cluster(senders=3, receivers=1))
    cluster.cut(set(way))
    began = cluster.scheduler.now
    cluster.run_for(15 * SECOND)
    assert len(views(cluster, 2)) < 60
    assert deliveries(cluster, 2, 2, since=began + 2 * SECOND) > 50
    cluster.heal_all()
    assert cluster.run_until(cluster.agreed)
    assert members_by_name(cluster, 0) == {"s0", "s1", "s2"}


@pytest.mark.parametrize(("down_ms", "up_ms"), [(300, 300), (1_500, 200), (1_500, 1_500), (3_000, 100)])
def test_a_flapping_link_ends(a_live_cluster: MakeLive, down_ms: int, up_ms: int) -> None:
    cluster = all_there(a_live_cluster(senders=3, receivers=1))
    links = {(0, 1), (1, 0), (0, 2), (2, 0)}
    for _ in range(5):
        cluster.cut(links)
        cluster.run_for(down_ms * MILLISECOND)
        cluster.heal(links)
        cluster.run_for(up_ms * MILLISECOND)
    assert cluster.run_until(cluster.agreed)
    assert members_by_name(cluster, 3) == {"s0", "s1", "s2"}
    # Repairs may be many, but restarts of one are held back.
    assert sum(sum(member.endpoint.counters.restarts.values()) for member in cluster.members) < 200


@pytest.mark.parametrize("paused", [0, 3, 4], ids=["sender", "rto receiver", "rso receiver"])
@pytest.mark.parametrize("seconds", [0.4, 3, 12])
def test_a_paused_process_returns(a_live_cluster: MakeLive, paused: int, seconds: float) -> None:
    """M8: it does not accuse the others, and a sender keeps its id."""
    services = (Service.RTO, Service.RTO, Service.RTO, Service.RTO, Service.RSO)
    cluster = all_there(a_live_cluster(senders=3, receivers=2, services=services))
    me, began = cluster[paused].id, cluster.scheduler.now
    cluster[paused].pause()
    cluster.run_for(round(seconds * SECOND))
    cluster[paused].resume()
    others = [view for index in (1, 2) for view in views(cluster, index) if view.at > cluster.scheduler.now]
    assert others == []
    assert cluster.run_until(cluster.agreed)
    assert members_by_name(cluster, paused) == {"s0", "s1", "s2"}
    cluster.run_for(2 * SECOND)
    assert deliveries(cluster, paused, 1, since=began) > 0
    if paused == 0:
        assert cluster[0].id == me
        assert deliveries(cluster, 1, 0, since=began + round(seconds * SECOND)) > 0


# Restarts and quorums


def test_a_crashed_sender_comes_back_as_a_new_member(a_live_cluster: MakeLive) -> None:
    cluster = all_there(a_live_cluster(senders=3, receivers=1))
    before = cluster[0].id
    cluster.crash(0)
    cluster.run_for(100 * MILLISECOND)
    cluster.restart(0)
    assert cluster.run_until(lambda: cluster.agreed() and members_by_name(cluster, 1) == {"s0", "s1", "s2"})
    assert cluster[0].id != before
    assert before not in views(cluster, 1)[-1].members


def a_majority_group(a_live_cluster: MakeLive, senders: int) -> LiveCluster:
    config = Config.test()
    config = replace(config, group=replace(config.group, quorum="majority"))
    cluster = all_there(a_live_cluster(senders=senders, receivers=1, config=config))
    cluster.run_for(SECOND)
    return cluster


@pytest.mark.parametrize(
    ("senders", "parts"), [(5, ((0, 1), (2, 3, 4))), (5, ((0, 1, 2), (3,), (4,))), (3, ((0,), (1, 2)))]
)
def test_of_two_would_be_primaries_only_one_may_send(
    a_live_cluster: MakeLive, senders: int, parts: tuple[tuple[int, ...], ...]
) -> None:
    """M11."""
    cluster = a_majority_group(a_live_cluster, senders)
    cluster.split(*parts)
    cluster.run_for(4 * SECOND)
    since = cluster.scheduler.now
    cluster.run_for(2 * SECOND)
    for part in parts:
        sent = [sendings(cluster, index, since=since) for index in part]
        assert all(sent) if 2 * len(part) > senders else not any(sent), (part, sent)
    cluster.heal_all()
    assert cluster.run_until(cluster.agreed)
    healed = cluster.scheduler.now
    cluster.run_for(2 * SECOND)
    assert all(sendings(cluster, index, since=healed) > 0 for index in range(senders))


def test_half_of_a_group_is_no_majority(a_live_cluster: MakeLive) -> None:
    cluster = a_majority_group(a_live_cluster, 4)
    cluster.split((0, 1), (2, 3))
    cluster.run_for(4 * SECOND)
    since = cluster.scheduler.now
    cluster.run_for(2 * SECOND)
    assert not any(sendings(cluster, index, since=since) for index in range(4))
    assert all(cluster[index].refused for index in range(4))


def test_a_full_restart_needs_a_majority_of_the_last_view(a_live_cluster: MakeLive) -> None:
    cluster = a_majority_group(a_live_cluster, 3)
    for index in range(3):
        cluster.crash(index)
    cluster.run_for(2 * SECOND)
    cluster.restart(0)
    cluster.run_for(3 * SECOND)
    assert members_by_name(cluster, 0) == {"s0"}
    assert sendings(cluster, 0) == 0
    cluster.restart(1)
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0", "s1"})
    cluster.run_for(2 * SECOND)
    assert sendings(cluster, 0) > 0
    assert len({event.member for event in cluster.trace.events if type(event) is Crashed}) == 3
