"""Losses and delays by frame kind, source and destination: schedules that chance does not find."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from intergroup_core.config import Config
from intergroup_core.ids import Service
from intergroup_core.sim.adversary import AGREEMENT, Rule
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from intergroup_core.sim.workload import Workload
from intergroup_core.wire.header import FrameType
from tests.sim.live_stories import (
    MakeLive,
    against,
    all_there,
    deliveries,
    follower,
    from_others,
    gaps,
    leader,
    members_by_name,
    sendings,
    to_others,
    views,
)


def senders(cluster: LiveCluster, *gone: int) -> set[str]:
    return {member.name for member in cluster.alive if member.sender and member.index not in gone}


def steps(cluster: LiveCluster, index: int) -> set[str]:
    return {key.split(":")[0] for key in cluster[index].endpoint.counters.transitions}


def asks_for_majority(**settings: object) -> dict[str, object]:
    config = Config.test()
    return {"config": replace(config, group=replace(config.group, quorum="majority")), **settings}


# What a repair says, held back


@pytest.mark.parametrize("kind", sorted(AGREEMENT))
@pytest.mark.parametrize("way", ["leader to one", "one to leader", "leader to half"])
def test_a_word_of_a_repair_is_lost_for_a_while(a_live_cluster: MakeLive, kind: FrameType, way: str) -> None:
    cluster = all_there(a_live_cluster(senders=4, receivers=1))
    leads, follows = leader(cluster, 3), follower(cluster, 3)
    half = [(leads, other) for other in range(5) if other not in (leads, 3)][:2]
    links = {"leader to one": [(leads, follows)], "one to leader": [(follows, leads)], "leader to half": half}[way]
    rule = against(cluster, {kind}, links)
    cluster.crash(3)
    cluster.run_for(2 * SECOND)
    cluster.relent(rule)
    assert rule.met or (kind, way) == (FrameType.MEMBERSHIP, "one to leader"), "only the leader says the change"
    assert cluster.run_until(lambda: cluster.agreed() and members_by_name(cluster, leads) == senders(cluster))


def test_one_that_was_ready_learns_of_the_view_in_the_middle_of_the_next_attempt(a_live_cluster: MakeLive) -> None:
    """M12, from whichever state it is in by then: the change reaches it late."""
    cluster = all_there(a_live_cluster(senders=4, receivers=0))
    leads, follows = leader(cluster, 3), follower(cluster, 3)
    others = [(other, follows) for other in range(4) if other != follows]
    against(cluster, {FrameType.MEMBERSHIP}, others, late_ms=900)
    cluster.crash(3)
    assert cluster.run_until(lambda: members_by_name(cluster, leads) == senders(cluster))
    cluster.run_for(3 * SECOND)
    cluster.heal_all()
    assert cluster.run_until(lambda: cluster.agreed() and members_by_name(cluster, follows) == senders(cluster))


# Two primaries


def by_id(cluster: LiveCluster) -> list[int]:
    """Seats of senders, the first of which leads a repair."""
    return sorted((member.index for member in cluster.alive), key=lambda index: cluster[index].id)


def may_send(cluster: LiveCluster, seats: Iterable[int]) -> bool:
    since = cluster.scheduler.now
    cluster.run_for(SECOND)
    return any(sendings(cluster, index, since=since) for index in seats)


@pytest.mark.parametrize("restarts", [False, True])
def test_one_that_was_ready_and_never_learned_what_came_of_it(a_live_cluster: MakeLive, restarts: bool) -> None:
    """M11: of five, three agree; the change reaches two of them, and the third meets the other two."""
    cluster = all_there(a_live_cluster(**asks_for_majority(senders=5, receivers=0)))
    leads, second, third, *rest = by_id(cluster)
    against(cluster, {FrameType.MEMBERSHIP}, [(leads, third), (second, third)])

    def apart() -> None:
        cluster.split([leads, second], [third, *rest])
        cluster.heal({link for other in rest for link in ((third, other), (other, third))})
        if restarts:
            cluster.crash(third)

    cluster[leads].when("sender", apart)
    cluster.split([leads, second, third], rest)
    assert cluster.run_until(lambda: len(members_by_name(cluster, leads)) == 3)
    cluster.run_for(SECOND)
    cluster.restart(third)
    assert cluster.run_until(lambda: len(members_by_name(cluster, leads)) == 2)
    assert cluster.run_until(lambda: len(members_by_name(cluster, third)) == 3)
    assert may_send(cluster, [leads, second])
    assert not may_send(cluster, [third, *rest])
    cluster.heal_all()
    assert cluster.run_until(cluster.agreed)
    assert may_send(cluster, [third])


def test_a_leader_waits_until_all_are_ready(a_live_cluster: MakeLive) -> None:
    """One of three lacks another's information, so it never is ready; what it never promised binds it to nothing."""
    cluster = all_there(a_live_cluster(**asks_for_majority(senders=5, receivers=0)))
    leads, second, third, *rest = by_id(cluster)
    against(cluster, {FrameType.MEMBERSHIP, FrameType.RECOVERY_INFO}, [(leads, third), (second, third)])

    def apart() -> None:
        cluster.split([leads, second], [third, *rest])
        cluster.heal({link for other in rest for link in ((third, other), (other, third))})

    for state in ("gather ready", "sender"):
        cluster[leads].when(state, apart)
    cluster.split([leads, second, third], rest)
    assert cluster.run_until(lambda: cluster[leads].hooks == [] or cluster[leads].state == "gather ready")
    assert cluster.run_until(lambda: len(members_by_name(cluster, leads)) == 2)
    assert cluster.run_until(lambda: len(members_by_name(cluster, third)) == 3)
    assert may_send(cluster, [third, *rest])
    assert not may_send(cluster, [leads, second])
    cluster.heal_all()
    assert cluster.run_until(cluster.agreed)


def test_adds_of_which_most_senders_know_nothing(a_live_cluster: MakeLive) -> None:
    """One sender alone must not bring in as many as would outvote the others."""
    seats = [*(Seat(name=f"s{index}") for index in range(3)), *(Seat(name=f"n{i}", joins_at=None) for i in range(2))]
    cluster = all_there(a_live_cluster(**asks_for_majority(seats=seats)))
    others = [(0, 1), (0, 2)]
    against(cluster, {FrameType.CHANGE, FrameType.REPAIR}, others)
    away = [(one, other) for one in (3, 4) for other in (1, 2)]
    against(cluster, set(FrameType), [*away, *((other, one) for one, other in away)])
    cluster.join(3)
    cluster.join(4)
    cluster.run_for(600 * MILLISECOND)
    cluster.split([0, 3, 4], [1, 2])
    cluster.run_for(4 * SECOND)
    assert may_send(cluster, [1, 2])
    assert not may_send(cluster, [0, 3, 4])
    cluster.heal_all()
    assert cluster.run_until(lambda: cluster.agreed() and len(members_by_name(cluster, 0)) == 5)


def test_an_add_that_one_half_applied(a_live_cluster: MakeLive) -> None:
    """Ready for the Add, a sender that never learns whether it took effect counts it as an attempt."""
    seats = [*(Seat(name=f"s{index}") for index in range(3)), Seat(name="late", joins_at=None)]
    cluster = all_there(a_live_cluster(**asks_for_majority(seats=seats)))
    against(cluster, {FrameType.REPORT}, [(0, 1), (2, 1)])
    cluster.join(3)
    assert cluster.run_until(lambda: len(members_by_name(cluster, 0)) == 4)
    cluster.split([0, 3], [1, 2])
    cluster.run_for(4 * SECOND)
    cluster.heal_all()
    assert cluster.run_until(lambda: cluster.agreed() and len(members_by_name(cluster, 1)) == 4)


# Requests and changes that come when all is different


@pytest.mark.parametrize("late_ms", [200, 2_000, 7_000])
def test_a_request_to_be_added_comes_after_its_member_left_again(a_live_cluster: MakeLive, late_ms: int) -> None:
    """It is sent to everybody once, and once more, late, to one of them."""
    seats = [Seat(name="s0"), Seat(name="s1"), Seat(name="r2", sender=False, service=Service.RTO)]
    cluster = all_there(a_live_cluster(seats=seats))
    late = against(cluster, {FrameType.ADD_REQUEST}, [(2, 0), (2, 1)], late_ms=late_ms, most=2)
    cluster[2].send([b"one thing to say"])
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0", "s1", "r2"})
    assert late.met == 2
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0", "s1"}), "silence takes it out again"
    cluster.run_for(8 * SECOND)
    assert members_by_name(cluster, 0) == {"s0", "s1"}
    assert deliveries(cluster, 0, 2) == 1


def test_a_request_to_be_added_comes_in_the_next_epoch(a_live_cluster: MakeLive) -> None:
    """It names a first frame of long ago; what its member says now has other numbers."""
    seats = [Seat(name="s0"), Seat(name="s1"), Seat(name="s2"), Seat(name="r3", sender=False)]
    cluster = all_there(a_live_cluster(seats=seats, workload=Workload(rate=10)))
    late = against(cluster, {FrameType.ADD_REQUEST}, to_others(cluster, 3), late_ms=9_000, most=9)
    cluster[3].send([b"one thing to say"])
    assert cluster.run_until(lambda: deliveries(cluster, 0, 3) == 1)
    assert late.met == 9
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0", "s1", "s2"})
    cluster.crash(2)
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0", "s1"})
    cluster.run_for(4 * SECOND)
    assert members_by_name(cluster, 0) == {"s0", "s1"}
    cluster[3].send([b"and another"])
    assert cluster.run_until(lambda: deliveries(cluster, 0, 3) == 2)


def test_a_second_add_of_one_that_came_and_went(a_live_cluster: MakeLive) -> None:
    """A sponsor that lags gets an old request when its member is about to go, and adds it again behind its Leave."""
    seats = [Seat(name="s0"), Seat(name="s1"), Seat(name="s2"), Seat(name="r3", sender=False)]
    cluster = all_there(a_live_cluster(seats=seats, workload=Workload(rate=10)))
    lags = 1
    deaf = against(cluster, {FrameType.REPORT}, from_others(cluster, lags))
    against(cluster, {FrameType.ADD_REQUEST}, [(3, lags)], late_ms=6_500)
    # The others take it in only when that one has been asked as well.
    slow = against(cluster, {FrameType.ADD_REQUEST}, [(3, 0), (3, 2)])
    cluster[3].send([b"x"])
    cluster.run_for(600 * MILLISECOND)
    cluster.relent(slow)
    assert cluster.run_until(lambda: cluster[3].state == "to receiver", 8 * SECOND)
    cluster.run_for(2 * SECOND)
    cluster.relent(deaf)
    assert cluster.run_until(lambda: "receiver>sender" in steps(cluster, 3))
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0", "s1", "s2"}), "it has nothing to say"
    cluster[3].send([b"and again"])
    assert cluster.run_until(lambda: deliveries(cluster, 0, 3) == deliveries(cluster, lags, 3) == 2)
    assert not gaps(cluster)


@pytest.mark.parametrize("service", [Service.RTO, Service.RSO])
def test_a_source_returns_while_a_receiver_lags(a_live_cluster: MakeLive, service: Service) -> None:
    """It left and was added again before the receiver has what it said the first time."""
    seats = [Seat(name="s0"), Seat(name="s1", busy=0), Seat(name="r2", sender=False, service=service)]
    cluster = all_there(a_live_cluster(seats=seats, workload=Workload(rate=20)))
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0"}), "silence takes s1 out"
    deaf = against(cluster, {FrameType.DATA, FrameType.REPAIR, FrameType.CHANGE}, [(1, 2), (0, 2)])
    cluster[1].send([b"the first time"])
    assert cluster.run_until(lambda: deliveries(cluster, 0, 1) == 1)
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0"})
    cluster[1].send([b"the second time"])
    assert cluster.run_until(lambda: deliveries(cluster, 0, 1) == 2)
    cluster.relent(deaf)
    assert cluster.run_until(lambda: deliveries(cluster, 2, 1) == 2 or cluster[2].gaps != [])
    assert cluster.run_until(cluster.agreed)


# Cuts


def test_a_later_cut_is_not_below_an_earlier_one(a_live_cluster: MakeLive) -> None:
    """The first attempt's leader alone knows its outcome; whoever took part keeps what that attempt taught."""
    cluster = all_there(a_live_cluster(senders=5, receivers=1, workload=Workload(rate=60)))
    dies = 4
    leads = leader(cluster, dies)
    rest = [index for index in range(4) if index != leads]
    # One survivor alone has the last words and promises of the one that dies, and tells them to the first attempt only.
    knows = rest[0]
    against(cluster, {FrameType.DATA, FrameType.KEEP_ALIVE}, [(dies, index) for index in range(6) if index != knows])
    cluster.run_for(100 * MILLISECOND)
    against(cluster, {FrameType.MEMBERSHIP}, [(leads, index) for index in rest])
    cluster[leads].when("sender", lambda: cluster.split([leads, 5], [*rest[1:], dies], [knows]))
    cluster.crash(dies)
    assert cluster.run_until(lambda: len(members_by_name(cluster, leads)) == 4)
    cluster.run_for(3 * SECOND)
    cluster.heal_all()
    assert cluster.run_until(cluster.agreed)


def test_two_die_and_each_survivor_knows_one_of_them_better(a_live_cluster: MakeLive) -> None:
    """M4: beyond the lesser of the best promises something of the other one may be missing."""
    cluster = all_there(a_live_cluster(senders=4, receivers=1, workload=Workload(rate=60)))
    against(cluster, {FrameType.DATA, FrameType.KEEP_ALIVE, FrameType.REPAIR}, [(2, 0), (2, 1), (2, 4)])
    cluster.run_for(60 * MILLISECOND)
    cluster[3].send([b"after something of the other one"])
    cluster.run_for(60 * MILLISECOND)
    cluster.crash(2)
    cluster.crash(3)
    assert cluster.run_until(lambda: cluster.agreed() and members_by_name(cluster, 0) == {"s0", "s1"})


def test_only_one_survivor_has_what_a_dead_sender_said_last(a_live_cluster: MakeLive) -> None:
    """And what it has is late: the others wait for it, and meanwhile somebody else dies."""
    cluster = all_there(a_live_cluster(senders=5, receivers=1))
    dies, knows = 4, follower(cluster, 4)
    others = [index for index in range(6) if index not in (dies, knows)]
    against(cluster, {FrameType.DATA}, [(dies, other) for other in others])
    slow = against(cluster, {FrameType.REPAIR}, [(index, other) for index in range(6) for other in others])
    cluster[dies].send([bytes(3_000)])
    cluster.run_for(40 * MILLISECOND)
    waits = leader(cluster, dies)
    second = next(index for index in range(4) if index not in (waits, knows))
    cluster[waits].when("recovery", lambda: cluster.crash(second))
    cluster.crash(dies)
    assert cluster.run_until(lambda: not cluster[second].alive), "nobody had to recover anything"
    cluster.run_for(2 * SECOND)
    cluster.relent(slow)
    assert cluster.run_until(lambda: cluster.agreed() and members_by_name(cluster, waits) == senders(cluster))
    assert "recovery>consensus" in steps(cluster, waits)


# Steps that chance does not meet


@pytest.mark.parametrize("follows", ["dies", "stays"])
def test_one_that_is_about_to_send_hears_only_the_end_of_a_repair(a_live_cluster: MakeLive, follows: str) -> None:
    """Two senders lose each other; it hears both, and then one of the changes, above or below what it delivered."""
    seats = [Seat(name="dies", busy=0), Seat(name="stays", busy=0), Seat(name="r2", sender=False)]
    cluster = all_there(a_live_cluster(seats=seats))
    against(cluster, {FrameType.ADD_REQUEST}, to_others(cluster, 2))
    against(cluster, {FrameType.JOIN, FrameType.RECOVERY_INFO, FrameType.READY}, from_others(cluster, 2))
    against(cluster, {FrameType.MEMBERSHIP}, [(1, 2)] if follows == "dies" else [(0, 2)])
    cluster[2].send([b"it would like to send"])
    cluster.cut({(0, 1), (1, 0), (2, 1)})
    assert cluster[0].send([b"only r2 hears this"])
    if follows == "dies":
        cluster.run_for(400 * MILLISECOND)  # it takes longer than the senders to miss one of them
        against(cluster, {FrameType.KEEP_ALIVE, FrameType.DATA, FrameType.REPORT}, [(1, 2)])
    step = "to sender>receiver recovery" if follows == "dies" else "to sender>bootstrap"
    assert cluster.run_until(lambda: step in steps(cluster, 2)), steps(cluster, 2)
    cluster.heal_all()
    assert cluster.run_until(lambda: cluster.agreed() and members_by_name(cluster, 2) == {"dies", "stays", "r2"})


def let_a_change_come_late(cluster: LiveCluster) -> int:
    """Two of three survivors give up their leader before its change comes; the seat of one of them."""
    leads, waits, late = (index for index in by_id(cluster) if index != 3)
    against(cluster, {FrameType.REPORT}, [(one, other) for one in range(4) for other in range(4) if one != other])
    against(cluster, {FrameType.MEMBERSHIP}, [*from_others(cluster, late), (leads, waits)], late_ms=1_200)
    # What the other says when it has given up does not reach it.
    deaf = Rule(kinds=frozenset({FrameType.JOIN}), links=frozenset({(waits, late)}))
    cluster[late].when("wait for change", lambda: cluster.oppose(deaf))
    return late


def test_one_that_was_about_to_leave_learns_late_that_it_has(a_live_cluster: MakeLive) -> None:
    cluster = all_there(a_live_cluster(senders=4, receivers=0))
    goes = let_a_change_come_late(cluster)
    cluster.leave(goes)
    cluster.crash(3)
    assert cluster.run_until(lambda: "consensus>receiver" in steps(cluster, goes)), "repair>receiver"
    cluster.heal_all()
    assert cluster.run_until(lambda: cluster[goes].left)


def test_one_that_began_a_repair_anew_learns_late_how_the_last_one_ended(a_live_cluster: MakeLive) -> None:
    """M12: it was ready for that change, so it installs it."""
    cluster = all_there(a_live_cluster(senders=4, receivers=0))
    late = let_a_change_come_late(cluster)
    cluster.crash(3)
    assert cluster.run_until(lambda: "consensus>sender" in steps(cluster, late)), "repair>sender"
    cluster.heal_all()
    assert cluster.run_until(cluster.agreed)


def test_one_that_finds_nobody_is_told_to_go(a_live_cluster: MakeLive) -> None:
    cluster = a_live_cluster(seats=[Seat(name="alone", sender=False)])
    cluster.run_for(SECOND)
    cluster.leave(0)
    assert steps(cluster, 0) == {"bootstrap>left"}


def test_the_last_of_two_that_go_silent_together_stays(a_live_cluster: MakeLive) -> None:
    cluster = all_there(a_live_cluster(seats=[Seat(name="one", busy=0), Seat(name="other", busy=0)]))
    assert cluster.run_until(lambda: cluster.agreed() and len(members_by_name(cluster, 0)) == 1)
    assert "to receiver>sender" in steps(cluster, 0) | steps(cluster, 1)


def test_one_that_wants_nothing_any_more_goes_before_it_is_added(a_live_cluster: MakeLive) -> None:
    seats = [Seat(name="s0"), Seat(name="s1"), Seat(name="late", busy=0, joins_at=None)]
    cluster = all_there(a_live_cluster(seats=seats))
    against(cluster, {FrameType.ADD_REQUEST}, to_others(cluster, 2))
    cluster.join(2)
    assert cluster.run_until(lambda: cluster[2].state == "to sender")
    cluster.leave(2)
    assert cluster.run_until(lambda: "to sender>left" in steps(cluster, 2))


def test_a_receiver_leaves_while_it_follows_a_change(a_live_cluster: MakeLive) -> None:
    cluster = all_there(a_live_cluster(senders=3, receivers=1))
    against(cluster, {FrameType.DATA}, [(2, 3)])
    cluster[2].send([bytes(2_000)])
    cluster.run_for(10 * MILLISECOND)
    against(cluster, {FrameType.REPAIR}, from_others(cluster, 3))
    cluster.crash(2)
    assert cluster.run_until(lambda: cluster[3].state == "receiver recovery")
    cluster.leave(3)
    assert cluster.run_until(lambda: cluster[3].left)
    assert "receiver recovery>left" in steps(cluster, 3)


def test_a_receiver_that_lacks_something_waits_for_the_change_under_way(a_live_cluster: MakeLive) -> None:
    """Nobody repairs what it misses for longer than it would wait elsewhere; the change says that it can be had."""
    config = Config.test()
    config = replace(config, repair=replace(config.repair, give_up_ms=900.0))
    cluster = all_there(a_live_cluster(senders=3, receivers=1, config=config))
    missed = against(cluster, {FrameType.DATA}, [(2, 3)])
    cluster[2].send([bytes(2_000)])
    cluster.run_for(10 * MILLISECOND)
    cluster.relent(missed)
    kept = [
        against(cluster, {FrameType.REPAIR}, from_others(cluster, 3)),
        against(cluster, {FrameType.MEMBERSHIP}, from_others(cluster, 3)),
    ]
    cluster.crash(1)
    assert cluster.run_until(lambda: cluster[3].state == "receiver wait")
    assert cluster.run_until(lambda: cluster[3].endpoint.counters.suspicions > 0)
    assert cluster[3].state == "receiver wait"
    for rule in kept:
        cluster.relent(rule)
    assert cluster.run_until(lambda: members_by_name(cluster, 3) == {"s0", "s2"})
    assert gaps(cluster) == []


def test_views_are_the_same_everywhere_whatever_is_late(a_live_cluster: MakeLive) -> None:
    """Every frame of the protocol may come up to a second late on some links, for a while."""
    cluster = all_there(a_live_cluster(senders=4, receivers=1))
    for index, kind in enumerate(sorted(AGREEMENT)):
        against(cluster, {kind}, [(index, (index + 1) % 4), (index, 4)], late_ms=150 * (index + 1))
    cluster.crash(3)
    cluster.run_for(SECOND)
    cluster.restart(3)
    cluster.run_for(4 * SECOND)
    cluster.heal_all()
    assert cluster.run_until(cluster.agreed)
    assert len(views(cluster, 0)) < 30
    assert sendings(cluster, 0) > 0


def test_nothing_of_one_whose_add_is_the_last_before_the_cut_is_delivered(a_live_cluster: MakeLive) -> None:
    """What it said may follow from what the cut leaves out (property 15)."""
    seats = [Seat(name="s0", busy=0.0), Seat(name="s1", busy=0.0), Seat(name="late", busy=0.0, joins_at=None)]
    cluster = all_there(a_live_cluster(seats=seats))
    against(cluster, {FrameType.REPORT}, from_others(cluster, 0))  # so it never hears that all are ready
    cluster.join(2)
    assert cluster.run_until(lambda: members_by_name(cluster, 1) == members_by_name(cluster, 2) == {"s0", "s1", "late"})
    cluster[1].send([b"cause"])
    assert cluster.run_until(lambda: deliveries(cluster, 2, 1) == 1)
    cluster[2].send([b"effect"])
    assert cluster.run_until(lambda: deliveries(cluster, 1, 2) == 1)
    assert members_by_name(cluster, 0) == {"s0", "s1"}
    late = cluster[2].id
    cluster.crash(1)
    cluster.crash(2)
    assert cluster.run_until(lambda: members_by_name(cluster, 0) == {"s0"})
    assert any(late in view.joined for view in views(cluster, 0)), "its Add is in the cut"
    assert deliveries(cluster, 0, 1) == deliveries(cluster, 0, 2) == 0
