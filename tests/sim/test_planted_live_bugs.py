"""Every bug planted in live membership is caught by a checker; without it the same runs are clean."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from intergroup_core.config import Config
from intergroup_core.ids import Service
from intergroup_core.sim.agreement_mutations import AGREEMENT_PLANTINGS
from intergroup_core.sim.checkers import check
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.faults import Crash, Leave, Lossy, Restart, Split
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from intergroup_core.sim.live_mutations import LIVE_PLANTINGS
from intergroup_core.sim.mutations import planted
from intergroup_core.sim.network import Conditions
from intergroup_core.sim.workload import Workload
from tests.sim import test_live_adversary as adversary
from tests.sim import test_live_quorums as quorums
from tests.sim import test_live_reports as reports
from tests.sim.live_stories import MakeLive

SEEDS = range(1, 6)
DURATION_NS = 9 * SECOND
LOOKS = 3
"""Many bugs show before the end."""
SERVICES = (Service.RTO, Service.RSO, Service.RTO, Service.UU, Service.RTO)


def a_restless_cluster(seed: int) -> LiveCluster:
    """A crash, a return, a departure, a newcomer, a partition and its merge, a one-way link: in nine seconds."""
    services = SERVICES[seed % 5 :] + SERVICES[: seed % 5]
    seats = [Seat(name=f"s{index}", service=services[index]) for index in range(3)]
    seats += [
        Seat(name="r3", service=(Service.RTO, Service.RSO)[seed % 2], sender=False),
        Seat(name="late", service=services[4], joins_at=3 * SECOND),
    ]
    here, there = frozenset({seed % 3, 3}), frozenset({(seed + 1) % 3, (seed + 2) % 3, 4})
    victim = (seed + 1) % 3
    return LiveCluster(
        seed=seed,
        seats=seats,
        config=Config.test(),
        conditions=Conditions(loss=0.08, duplicate=0.02, reorder=0.02, jitter_ns=2 * MILLISECOND, coalesce=0.8),
        workload=Workload(rate=25, large=0.05, answer=0.05),
        faults=[
            Lossy(at=1_700 * MILLISECOND, until=2_500 * MILLISECOND, links=frozenset({(victim, seed % 3)}), loss=1.0),
            Crash(at=2 * SECOND, member=victim),
            Restart(at=3_500 * MILLISECOND, member=victim),
            Split(at=5 * SECOND, until=7 * SECOND, parts=(here, there)),
            Lossy(at=7_500 * MILLISECOND, until=8_500 * MILLISECOND, links=frozenset({(0, 1)}), loss=1.0),
            Leave(at=8 * SECOND, member=2),
        ],
        quiet_limit_ns=8 * SECOND,
    )


def a_cluster_with_a_receiver_ahead(seed: int) -> LiveCluster:
    """Only the receiver hears, and delivers, what one sender says before it crashes."""
    seats = [Seat(name="dies"), Seat(name="stays"), Seat(name="r2", sender=False)]
    deaf = frozenset({(0, 1), (2, 1)})
    return LiveCluster(
        seed=seed,
        seats=seats,
        workload=Workload(rate=40),
        faults=[
            Lossy(at=3 * SECOND, until=3_500 * MILLISECOND, links=deaf, loss=1.0),
            Crash(at=3_400 * MILLISECOND, member=0),
        ],
        quiet_limit_ns=8 * SECOND,
    )


def a_cluster_that_is_left(seed: int) -> LiveCluster:
    """A sender goes while it has much to say."""
    leave = Leave(at=2 * SECOND, member=1)
    return LiveCluster(
        seed=seed, senders=3, receivers=1, workload=Workload(rate=100), faults=[leave], quiet_limit_ns=8 * SECOND
    )


CLUSTERS = (
    (a_cluster_with_a_receiver_ahead, 1),
    (a_cluster_that_is_left, 1),
    *((a_restless_cluster, seed) for seed in SEEDS),
)


def broken_by(make: Callable[[int], LiveCluster], seed: int) -> str | None:
    """The properties that a run breaks, or how it fell over."""
    cluster = make(seed)
    try:
        for _ in range(LOOKS):
            cluster.run_for(DURATION_NS // LOOKS)
            if broken := check(cluster.trace):
                return ", ".join(violation.property for violation in broken)
        cluster.settle()
    except (AssertionError, LookupError) as error:
        return f"an assertion: {error!r:.60}"
    return ", ".join(violation.property for violation in check(cluster.trace)) or None


def test_there_are_at_least_ten_bugs() -> None:
    assert len(LIVE_PLANTINGS) >= 10


@pytest.mark.parametrize(("make", "seed"), CLUSTERS)
def test_without_a_bug_nothing_is_violated(make: Callable[[int], LiveCluster], seed: int) -> None:
    assert broken_by(make, seed) is None


def test_a_receiver_ahead_of_the_cut_is_among_them() -> None:
    cluster = a_cluster_with_a_receiver_ahead(1)
    cluster.run_for(DURATION_NS)
    assert cluster[2].gaps


Story = Callable[[MakeLive], None]
READY = adversary.test_one_that_was_ready_and_never_learned_what_came_of_it

STORIES: dict[str, Story] = {
    "sponsors_do_not_wait_for_their_newcomers": reports.test_a_newcomer_whose_reports_come_late_is_waited_for,
    "changes_wait_for_nobody": adversary.test_adds_of_which_most_senders_know_nothing,
    "requests_of_long_ago_are_acted_on": adversary.test_a_request_to_be_added_comes_in_the_next_epoch,
    "a_returning_source_starts_where_it_once_did": adversary.test_a_second_add_of_one_that_came_and_went,
    "a_second_add_begins_a_source_anew": adversary.test_a_second_add_of_one_that_came_and_went,
    "departed_sources_are_forgotten": partial(
        adversary.test_a_source_returns_while_a_receiver_lags, service=Service.RSO
    ),
    "the_cut_is_at_the_best_promise": adversary.test_two_die_and_each_survivor_knows_one_of_them_better,
    "the_leader_does_not_wait_for_all": adversary.test_a_leader_waits_until_all_are_ready,
    "half_is_a_majority": quorums.test_half_of_a_group_is_no_majority,
    "attempts_are_not_remembered": partial(READY, restarts=False),
    "records_are_lost_with_the_process": partial(READY, restarts=True),
    "only_the_last_view_is_asked": partial(READY, restarts=False),
}
"""Bugs that chance rarely shows, and the scenario that does; without the bug it is a test of its own."""


LIKELY: dict[str, int] = {
    "everybody_came_along": 1,
    "any_change_is_installed": 1,
    "newcomers_start_one_frame_late": 1,
    "an_epoch_starts_one_frame_late": 1,
    "other_components_are_never_met": 1,
    "stamping_goes_on_in_a_repair": 2,
    "frames_of_any_view_are_taken": 2,
    "the_cut_is_too_low": 3,
    "what_ends_a_view_is_not_recovered": 3,
    "who_leaves_just_goes": 3,
}
"""Restless clusters to look at first, for bugs that the others do not show."""


def caught(name: str) -> str | None:
    likely = [(a_restless_cluster, LIKELY[name])] if name in LIKELY else []
    for make, seed in (*likely, *CLUSTERS):
        with planted(name, LIVE_PLANTINGS):
            found = broken_by(make, seed)
        if found:
            return f"{make.__name__} {seed}: {found}"
    return None


@pytest.mark.parametrize("name", [name for name in LIVE_PLANTINGS if name not in STORIES])
def test_a_planted_bug_is_caught(name: str, record_property: pytest.RecordProperty) -> None:
    found = caught(name)
    assert found is not None, f"no checker saw {name}"
    record_property("caught", found)


def told(story: Story) -> str | None:
    """The properties that a scenario breaks; else what it missed on the way."""
    made: list[LiveCluster] = []

    class Brief(LiveCluster):
        """Where a bug shows nobody waits long."""

        def run_until(self, holds: Callable[[], bool], limit_ns: int = 8 * SECOND) -> bool:
            return super().run_until(holds, min(limit_ns, 8 * SECOND))

    def make(**settings: Any) -> LiveCluster:
        made.append(Brief(**({"seed": 1, "senders": 3, "receivers": 1, "quiet_limit_ns": 8 * SECOND} | settings)))
        return made[-1]

    missed: str | None = None
    try:
        story(make)
        for cluster in made:
            cluster.settle()
    except (AssertionError, LookupError) as error:
        missed = f"its scenario: {str(error).splitlines()[0] if str(error) else error!r:.80}"
        for cluster in made:
            cluster.settle()
    broken = [violation.property for cluster in made for violation in check(cluster.trace)]
    return ", ".join(broken) or missed


@pytest.mark.parametrize("name", STORIES)
def test_a_planted_bug_is_caught_by_its_scenario(name: str, record_property: pytest.RecordProperty) -> None:
    with planted(name, LIVE_PLANTINGS | AGREEMENT_PLANTINGS):
        found = told(STORIES[name])
    assert found is not None, f"nobody saw {name}"
    record_property("caught", found)


def test_every_bug_of_agreement_has_its_scenario() -> None:
    assert AGREEMENT_PLANTINGS.keys() <= STORIES.keys()
