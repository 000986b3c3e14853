"""T2.3: who sends what to whom, how far, and how often."""

from __future__ import annotations

from collections import Counter
from functools import cache

from intergroup_core.effects import Control, CoordinatorGroup, LocalGroup
from intergroup_core.hierarchy.states import ControlState
from intergroup_core.sim.control_site import SimSite
from intergroup_core.sim.hierarchy_scenario import HierarchyScenario
from intergroup_core.sim.sites import SimSites
from intergroup_core.wire.hierarchy import CoordinatorControl, GlobalControl, LocalControl

SITES, SECONDS = 40, 10


class Overheard(SimSites):
    """Keeps who said what."""

    def carry(self, sender: SimSite, control: Control) -> None:
        self.said.append((sender, control))
        super().carry(sender, control)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.said: list[tuple[SimSite, Control]] = []


@cache
def a_hierarchy_at_rest() -> Overheard:
    scenario = HierarchyScenario(sites=SITES, preset="test", seed=3)
    sites = scenario.build()
    sites.__class__ = Overheard
    assert isinstance(sites, Overheard)
    sites.said = []
    assert sites.settle(60) is not None
    sites.said.clear()
    sites.run(SECONDS)
    return sites


def test_children_speak_to_their_group_coordinators_to_theirs_and_to_each_other() -> None:
    sites = a_hierarchy_at_rest()
    counted: Counter[tuple[type, ControlState]] = Counter()
    for sender, control in sites.said:
        counted[type(control.message), sender.process.state] += 1
        match control.message:
            case LocalControl():
                assert control.to == LocalGroup(control.message.coordinator)
            case CoordinatorControl():
                assert control.to == LocalGroup(sender.id)
            case GlobalControl():
                assert control.to == CoordinatorGroup()
    assert set(counted) == {
        (LocalControl, ControlState.CHILD),
        (CoordinatorControl, ControlState.COORDINATOR),
        (GlobalControl, ControlState.COORDINATOR),
    }


def test_a_message_goes_as_far_as_it_must_and_no_further() -> None:
    sites = a_hierarchy_at_rest()
    for sender, control in sites.said:
        group = [site for site in sites.alive() if site.process.coordinator == sender.process.coordinator]
        hops = [sites.terrain.way(sender.index, site.index)[1] for site in group if site is not sender]
        match control.message:
            case LocalControl():
                leader = sites.by_id[control.message.coordinator]
                assert control.ttl == sites.terrain.way(sender.index, leader.index)[1] + 1
            case CoordinatorControl():
                assert control.ttl == max(hops) + 1
            case _:
                assert control.ttl == 64


def test_every_site_speaks_about_once_in_the_least_interval() -> None:
    sites = a_hierarchy_at_rest()
    times = Counter(sender.index for sender, control in sites.said if isinstance(control.message, LocalControl))
    expected = SECONDS / 0.2
    assert all(0.8 * expected < count < 1.2 * expected for count in times.values())


def test_a_local_group_stays_within_its_bandwidth() -> None:
    sites = a_hierarchy_at_rest()
    sent: Counter[object] = Counter()
    for _, control in sites.said:
        sent[control.to] += len(control.frame)
    assert max(sent.values()) / SECONDS < sites.config.bandwidth
