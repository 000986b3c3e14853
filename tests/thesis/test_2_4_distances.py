"""T2.4: distances from timestamp pairs, without synchronized clocks, and through the hierarchy (table 2.1)."""

from __future__ import annotations

import pytest

from intergroup_core.sim.control_site import SimSite
from intergroup_core.sim.hierarchy_scenario import HierarchyScenario
from intergroup_core.sim.sites import SimSites


@pytest.fixture(scope="module")
def sites() -> SimSites:
    found = HierarchyScenario(sites=80, preset="wan", seed=2).build()
    assert found.settle(120) is not None
    found.run(20)
    return found


def wrong_by(sites: SimSites, one: SimSite, other: SimSite) -> float:
    true_us = sites.terrain.way(one.index, other.index)[0] / 1_000
    thought = one.process.distance_us(other.id, other.process.coordinator)
    assert thought is not None
    return abs(thought - true_us) / true_us


def of_kind(sites: SimSites, *, leads: bool) -> list[SimSite]:
    return [site for site in sites.alive() if (site.process.coordinator == site.id) is leads]


def test_clocks_that_are_hours_apart_do_not_matter_between_coordinators(sites: SimSites) -> None:
    leaders = of_kind(sites, leads=True)
    assert len(leaders) > 2
    assert all(wrong_by(sites, one, other) < 0.02 for one in leaders for other in leaders if one is not other)


def test_a_child_knows_its_coordinator_and_its_siblings(sites: SimSites) -> None:
    for child in of_kind(sites, leads=False):
        group = [site for site in sites.alive() if site.process.coordinator == child.process.coordinator]
        assert all(wrong_by(sites, child, other) < 0.05 for other in group if other is not child)


def test_beyond_its_group_distances_go_by_way_of_coordinators(sites: SimSites) -> None:
    children, leaders = of_kind(sites, leads=False), of_kind(sites, leads=True)
    child = children[0]
    own = child.process.distance_us(child.process.coordinator, child.process.coordinator)
    chief = sites.by_id[child.process.coordinator]
    assert own is not None
    for leader in leaders:
        if leader is not chief:
            between = chief.process.distance_us(leader.id, leader.id)
            assert between is not None
            assert child.process.distance_us(leader.id, leader.id) == pytest.approx(own + between, rel=0.02)
            to_leader = child.process.distance_us(leader.id, leader.id)
            for other in (site for site in children if site.process.coordinator == leader.id):
                # One that was a coordinator itself a while ago may still be known by its own distance.
                assert child.process.distance_us(other.id, leader.id) == pytest.approx(to_leader, rel=0.1)


def test_nine_of_ten_distances_are_right_to_a_fifth(sites: SimSites) -> None:
    errors = sorted(sites.distance_errors(1_000))
    assert errors[900] < 0.2
