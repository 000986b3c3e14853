"""Processes that come back, and who may send when a group has fallen apart (M11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from intergroup_core.config import Config
from intergroup_core.sim.adversary import Rule
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.live_cluster import LiveCluster
from intergroup_core.sim.trace import Crashed
from intergroup_core.wire.header import FrameType
from tests.sim.live_stories import MakeLive, all_there, members_by_name, sendings, views


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


def test_the_last_sender_of_a_majority_group_leaves_and_comes_back(a_live_cluster: MakeLive) -> None:
    """A view without senders is nobody's: the site that sent last may go on."""
    cluster = a_majority_group(a_live_cluster, 2)
    cluster.leave(0)
    assert cluster.run_until(lambda: cluster[0].left)
    cluster.leave(1)
    assert cluster.run_until(lambda: cluster[1].left)
    cluster.run_for(SECOND)
    cluster.restart(1)
    assert cluster.run_until(lambda: members_by_name(cluster, 1) == {"s1"})
    cluster.run_for(2 * SECOND)
    assert sendings(cluster, 1) > 0


def test_a_site_that_left_and_comes_back_to_a_lagging_sponsor_may_send(a_live_cluster: MakeLive) -> None:
    """It remembers its own Leave as an attempt, and its sponsor has not delivered that yet."""
    cluster = a_majority_group(a_live_cluster, 3)
    lags, others = 0, [1, 2, 3]
    deaf = Rule(kinds=frozenset({FrameType.REPORT}), links=frozenset((other, lags) for other in others))
    cluster.oppose(deaf)
    cluster.leave(2)
    assert cluster.run_until(lambda: cluster[2].left)
    cluster.restart(2)
    cluster.run_for(100 * MILLISECOND)
    cluster.relent(deaf)
    assert cluster.run_until(lambda: members_by_name(cluster, 2) == {"s0", "s1", "s2"})
    cluster.run_for(2 * SECOND)
    assert sendings(cluster, 2) > 0
