"""Every bug planted in the control hierarchy is caught, by a simulation or by a rule; without it all are clean."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from random import Random
from typing import Any

import pytest

from intergroup_core.hierarchy.determination import Appropriateness, SelfDetermination
from intergroup_core.hierarchy.peers import Peers
from intergroup_core.sim.hierarchy_mutations import HIERARCHY_PLANTINGS
from intergroup_core.sim.hierarchy_outcome import play
from intergroup_core.sim.hierarchy_scenario import HierarchyScenario
from intergroup_core.sim.mutations import planted
from tests.hierarchy_builders import (
    CHIEF,
    KEY,
    ME,
    MS,
    OTHER,
    S,
    T,
    a_ccon,
    a_gcon,
    a_hierarchy_config,
    a_leadership,
    acks,
    an_attachment,
    an_lcon,
    clock,
)

Check = Callable[[], str | None]
"""What is wrong, if something is."""


def simulated(scenario: HierarchyScenario) -> str | None:
    outcome = play(scenario)
    if outcome.violations:
        return outcome.violations[0]
    return "distances" if outcome.distance_error["p50"] > 0.5 else None


def an_older_message_is_not_heard() -> str | None:
    peers = Peers(9)
    peers.heard(OTHER, 10, 1, T)
    return "an older message is heard" if peers.heard(OTHER, 9, 1, T) else None


def table_2_3_is_kept() -> str | None:
    tables = SelfDetermination(a_hierarchy_config(coordinators_low=2, coordinators_high=10), Random(1))
    goes_on = [count for count in range(1, 20) if tables.coordinator_goes_on(Appropriateness.INAPPROPRIATE, count)]
    return None if goes_on == list(range(11, 20)) else f"goes on with {goes_on}"


def a_new_coordinator_hears_of_the_dead() -> str | None:
    lead = a_leadership()
    lead.own(acks(100))
    lead.receive_fellow(a_gcon(OTHER, acknowledgments=acks(50)), 1, T)
    lead.forget_silent(S, S, S, T + S + 1)
    return None if lead.group()[KEY].upto == 50 else "what a dead coordinator had is not told"


def nobody_is_spoken_for_who_is_only_heard_of() -> str | None:
    lead = a_leadership()
    lead.rumour_ns = S
    lead.sent(clock(T), T)
    echoes = {ME: (clock(T), 0), CHIEF: (1, 1)}
    lead.receive_fellow(a_gcon(OTHER, acknowledgments=acks(50), echoes=echoes), 1, T)
    return "a rumour is ignored" if lead.system(T) is not None else None


def counted_is_what_was_said_last() -> str | None:
    child = an_attachment()
    child.sent(clock(T), [KEY], T)
    child.forget(KEY)
    child.receive_coordinator(a_ccon(sent=T + S, echoes={ME: (clock(T), 900_000)}), 1, T + S)
    return "what was taken back is counted" if child.counted_at(KEY) is not None else None


def nobody_leaves_before_it_is_counted() -> str | None:
    child = an_attachment()
    child.sent(clock(T), [KEY], T)
    child.receive_sibling(an_lcon(OTHER), 1, T + MS)
    return "not counted, and taken for it" if child.all_counted([KEY], T) else None


def a_site_that_lost_its_coordinator_knows_that_nobody_counts_it() -> str | None:
    sites = HierarchyScenario(sites=12, preset="test").build()
    sites.run(10.0)
    child = next(site for site in sites.alive() if site.process.coordinator != site.id)
    if not child.counted:
        return "never counted"
    child.component = 1
    while child.process.coordinator != child.id:
        sites.run(0.1)
    return "uncounted, and takes itself for counted" if child.counted else None


def who_stood_still_asks_itself_who_there_is() -> str | None:
    sites = HierarchyScenario(sites=1, preset="test").build()
    sites.run(5.0)
    alone = sites.sites[0]
    if not alone.counted:
        return "never counted"
    alone.pause()
    sites.run(20.0)
    alone.paused = False
    return "stood still, and takes itself for counted" if alone.counted else None


def a(faults: str, seed: int, **settings: Any) -> Check:
    kinds = tuple(faults.split(","))
    return partial(
        simulated, HierarchyScenario(sites=16, seed=seed, duration=8.0, preset="test", faults=kinds, **settings)
    )


CHECKS: list[Check] = [
    an_older_message_is_not_heard,
    table_2_3_is_kept,
    a_new_coordinator_hears_of_the_dead,
    nobody_is_spoken_for_who_is_only_heard_of,
    counted_is_what_was_said_last,
    nobody_leaves_before_it_is_counted,
    a_site_that_lost_its_coordinator_knows_that_nobody_counts_it,
    who_stood_still_asks_itself_who_there_is,
    a("coordinators,hold,leave", 1),
    a("coordinators,hold,leave", 3),
    a("hold,join,withdraw", 1, loss=0.1, dup=0.1, reorder=0.3, groups=6),
    a("hold,pause,partition,moving,join", 3, loss=0.1),
    a("hold,join,withdraw", 3, loss=0.1, dup=0.1, reorder=0.3, groups=6),
]


def test_there_are_at_least_ten_bugs() -> None:
    assert len(HIERARCHY_PLANTINGS) >= 10


@pytest.mark.parametrize("check", CHECKS)
def test_without_a_bug_nothing_is_wrong(check: Check) -> None:
    assert check() is None


@cache
def caught(name: str) -> str | None:
    for check in CHECKS:
        with planted(name, HIERARCHY_PLANTINGS):
            found = check()
        if found:
            return found
    return None


@pytest.mark.parametrize("name", HIERARCHY_PLANTINGS)
def test_a_planted_bug_is_caught(name: str, record_property: pytest.RecordProperty) -> None:
    found = caught(name)
    assert found is not None, f"nothing saw {name}"
    record_property("caught", found)
