"""T2.5: coordinators and children decide for themselves; tests/unit/hierarchy/test_determination.py has the tables."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from intergroup_core.config import Config
from intergroup_core.sim.sites import SimSites
from intergroup_core.sim.terrain import Clustered


def a_system(sites: int, clusters: int, *, settled: bool = True, **settings: float) -> SimSites:
    config = replace(Config.test().hierarchy, **settings)
    found = SimSites(terrain=Clustered(4 * sites, Random(1), clusters), seed=1, config=config)
    for _ in range(sites):
        found.add()
    if settled:
        assert found.settle(60) is not None
    return found


def test_sites_that_start_at_once_near_each_other_become_one_group() -> None:
    assert len(a_system(7, 1).coordinators()) == 1


def test_far_sites_have_a_coordinator_in_every_cluster() -> None:
    sites = a_system(30, 5)
    terrain = sites.terrain
    assert isinstance(terrain, Clustered)
    assert {terrain.cluster[site.index] for site in sites.coordinators()} == set(range(5))


def test_small_groups_near_each_other_merge() -> None:
    sites = a_system(4, 1, settled=False)
    for site in sites.sites:
        site.component = site.index
    sites.run(5)
    assert len(sites.coordinators()) == 4
    sites.heal()
    assert sites.settle(60) is not None
    assert len(sites.coordinators()) == 1


def test_there_are_no_fewer_coordinators_than_the_low_threshold() -> None:
    assert len(a_system(12, 1, coordinators_low=3).coordinators()) >= 3


def test_more_coordinators_than_the_high_threshold_become_fewer() -> None:
    sites = a_system(24, 12, coordinators_high=4)
    assert len(sites.coordinators()) <= 4


def test_nobody_is_restless() -> None:
    sites = a_system(40, 4)
    sites.run(10)
    before = [site.process.moves for site in sites.sites]
    sites.run(20)
    assert [site.process.moves for site in sites.sites] == before
