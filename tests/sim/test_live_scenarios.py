"""Named troubles of live membership, each with what must be seen on the way; every property is checked at the end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from intergroup_core.config import Config
from intergroup_core.ids import Service, timestamp_span
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.live_cluster import Seat
from intergroup_core.sim.trace import Left, Sent
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


@pytest.mark.parametrize("sender", [False, True])
def test_who_comes_to_a_group_that_has_long_been_idle_is_let_in(a_live_cluster: MakeLive, sender: bool) -> None:
    seats = [Seat(name="s0"), replace(LATE, sender=sender)]
    cluster = a_live_cluster(seats=seats, workload=Workload(rate=1e-6))
    cluster.run_for(round(2 * cluster.config.group.clock_bound_ms) * MILLISECOND)
    cluster.join(1)
    cluster.run_for(3 * SECOND)
    there, late = (process.endpoint for process in cluster.processes)
    assert there.acknowledged - late.acknowledged < timestamp_span(SECOND)
    assert not gaps(cluster)


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


def test_a_receiver_that_was_away_too_long_does_not_ask_in_vain(a_live_cluster: MakeLive) -> None:
    config = Config.test()
    config = replace(config, network=replace(config.network, socket_buffer_bytes=65_536))
    workload = Workload(rate=100, size=1_000, duty=1.0)
    cluster = all_there(a_live_cluster(senders=2, receivers=2, config=config, workload=workload))
    cluster[2].pause()
    cluster.run_for(5 * SECOND)
    cluster[2].resume()
    assert cluster.run_until(lambda: [gap.reason for gap in gaps(cluster)] != [], 2 * SECOND)
    assert gaps(cluster)[0].reason == "the others dropped what it misses"
    assert cluster.run_until(lambda: cluster[2].state == "receiver", SECOND)
    since = cluster.scheduler.now
    cluster.run_for(SECOND)
    assert deliveries(cluster, 2, 0, since=since) > 20


def test_what_is_sent_while_a_silent_sender_leaves_is_sent_when_it_is_back(a_live_cluster: MakeLive) -> None:
    seats = [Seat(name="s0"), Seat(name="quiet", busy=0.0), Seat(name="r2", sender=False)]
    cluster = all_there(a_live_cluster(seats=seats))
    quiet = cluster[1]
    quiet.when("to receiver", lambda: quiet.send([b"a late word"]))
    assert cluster.run_until(lambda: quiet.state == "to receiver", 10 * SECOND)
    cluster.run_for(SECOND)
    assert sendings(cluster, 1) == deliveries(cluster, 1, 1) == deliveries(cluster, 2, 1) == 1
