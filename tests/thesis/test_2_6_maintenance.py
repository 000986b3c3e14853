"""T2.6: joining the hierarchy, changing places, and faults."""

from __future__ import annotations

from intergroup_core.hierarchy.states import ControlState
from intergroup_core.sim.control_site import SECOND, SimSite
from intergroup_core.sim.hierarchy_scenario import HierarchyScenario
from intergroup_core.sim.sites import SimSites


def a_hierarchy(sites: int = 40, seed: int = 3) -> SimSites:
    found = HierarchyScenario(sites=sites, preset="test", seed=seed).build()
    assert found.settle(60) is not None
    return found


def children_of(sites: SimSites, leader: SimSite) -> list[SimSite]:
    return [site for site in sites.alive() if site.process.coordinator == leader.id and site is not leader]


def a_leader(sites: SimSites) -> SimSite:
    return max(sites.coordinators(), key=lambda site: site.process.children)


def test_the_first_site_is_a_coordinator() -> None:
    sites = HierarchyScenario(sites=1, preset="test").build()
    sites.run(2)
    assert sites.sites[0].process.state is ControlState.COORDINATOR


def test_a_newcomer_joins_the_group_of_a_coordinator_near_it() -> None:
    sites = a_hierarchy()
    newcomer = sites.add()
    sites.run(2)
    assert newcomer.process.state is ControlState.CHILD
    leader = sites.by_id[newcomer.process.coordinator]
    assert sites.terrain.way(newcomer.index, leader.index)[0] < 30_000_000


def test_the_heir_of_a_coordinator_takes_over_its_group() -> None:
    sites = a_hierarchy()
    leader = a_leader(sites)
    orphans = children_of(sites, leader)
    heir = min(orphans, key=lambda site: site.id)
    leader.crash()
    assert sites.settle(60) is not None
    assert heir.process.state is ControlState.COORDINATOR
    assert any(site.process.coordinator == heir.id for site in orphans if site is not heir)


def test_a_dead_child_is_forgotten_and_holds_nobody_back_for_ever() -> None:
    sites = a_hierarchy()
    leader = a_leader(sites)
    child = children_of(sites, leader)[0]
    children = leader.process.children
    child.crash()
    sites.run(2)
    assert leader.process.children == children - 1
    before = leader.stable
    sites.run(10)
    assert leader.stable > before
    assert max(sites.stability_latencies()) < 3


def test_orphans_are_counted_by_what_they_said_until_they_have_a_place() -> None:
    sites = a_hierarchy()
    leader = a_leader(sites)
    orphan = children_of(sites, leader)[-1]
    sites.hold(orphan, 6.0)
    sites.run(0.5)
    leader.crash()
    sites.run(5.0)
    assert orphan.counted
    assert all(site.stable <= orphan.acknowledged for site in sites.alive())
    assert sites.violations == []


def test_children_of_a_coordinator_that_leaves_cleanly_find_another() -> None:
    sites = a_hierarchy()
    leader = a_leader(sites)
    orphans = children_of(sites, leader)
    leader.leave()
    assert sites.settle(60) is not None
    assert all(site.process.coordinator not in (None, leader.id) for site in orphans)


def test_a_third_may_die_at_once() -> None:
    sites = a_hierarchy()
    for site in sites.rng.sample(sites.alive(), 13):
        site.crash()
    assert sites.settle(60) is not None
    sites.run(15)
    assert max(sites.stability_latencies()) < 3
    assert all(site.counted for site in sites.alive())


def test_a_partition_becomes_hierarchies_of_their_own_which_merge() -> None:
    sites = a_hierarchy()
    sites.split(2)
    assert sites.settle(60) is not None
    parts = {site.component: site.process.coordinators for site in sites.alive()}
    sites.heal()
    assert sites.settle(60) is not None
    assert all(site.process.coordinators == len(sites.coordinators()) for site in sites.alive())
    assert len(parts) == 2
    assert sites.violations == []


def test_a_newcomer_is_waited_for_from_where_its_sponsor_was() -> None:
    sites = a_hierarchy()
    sponsor = children_of(sites, a_leader(sites))[0]
    newcomer = sites.join(sponsor, lag_ns=SECOND, lease_ns=20 * SECOND)
    begin = newcomer.acknowledged
    while not newcomer.counted:
        sites.run(0.1)
        assert all(site.stable <= begin for site in sites.alive())
    sites.run(15)
    assert newcomer.stable > begin
    assert sites.violations == []
