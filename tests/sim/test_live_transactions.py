"""Transactions in groups whose sites fail, part and come back at the worst moments: scenarios and seeds."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from intergroup_core.config import Config
from intergroup_core.effects import Deliver, Effect
from intergroup_core.sim.checkers.transactions import check_transactions
from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from intergroup_core.sim.live_member import LiveMember
from intergroup_core.sim.live_plan import slower
from intergroup_core.sim.mutations import planted
from intergroup_core.sim.transacting import Transacting
from intergroup_core.sim.transaction_mutations import TRANSACTION_PLANTINGS
from intergroup_core.sim.transaction_scenario import play_transactions
from intergroup_core.sim.transaction_trace import Told
from intergroup_core.wire.statements import Decided, Established, Proposed, Statement, statements_in

TOLD = (3225, 5235, 5327, 6225)
"""Each told of something once."""
SEEDS = (3, 4, 5, 9, 14, 17, 20, 27, 37, 39, 40, 43, 56, 62, 64, 65, 69, 75, 76, 78, 80, 82, 84, 86, 89, *TOLD)
"""Short ones: `make fuzz` has more."""
CAUGHT_BY_SEEDS = {
    "nobody_is_asked_what_it_knows": 9,
    "the_floor_is_ignored": 12,
    "candidates_are_lost_where_parts_meet": 2,
}
"""Planted bugs that chance shows, and where."""


def a_group(sites: int = 3, late: int = 0) -> Transacting:
    """Sites that have committed a first transaction of an application at the first of them."""
    seats = [Seat(name=f"s{index}", busy=0.0) for index in range(sites)]
    seats += [Seat(name=f"late{index}", busy=0.0, joins_at=None) for index in range(late)]
    cluster = LiveCluster(seed=1, seats=seats, config=slower(Config.test(), Random(1)))
    group = Transacting(cluster, Random(2))
    cluster.run_for(3 * SECOND)
    assert cluster.agreed()
    group.start("query", 0)
    assert cluster.run_until(lambda: versions_told(group) != [])
    return group


def versions_told(group: Transacting, site: str = "") -> list[int]:
    return [
        event.version[1]
        for event in group.trace.events
        if isinstance(event, Told) and site in event.site  # all, where none is named
    ]


def at_first(group: Transacting, kind: type[Statement], act: Callable[[LiveMember], None]) -> None:
    """Do something the moment one member has delivered a statement and no other has."""

    def look(effect: Effect, member: LiveMember) -> None:
        stated = statements_in(effect.chunk) if isinstance(effect, Deliver) else ()
        if any(isinstance(statement, kind) for _, statement in stated):
            group.delivered = lambda effect, member: None
            act(member)

    group.delivered = look


def apart(group: Transacting, index: int) -> None:
    group.cluster.split([index], [other for other in range(len(group.cluster.seats)) if other != index])


def end(group: Transacting) -> None:
    """Quiet, then everything that was begun has ended well."""
    group.cluster.heal_all()
    for index in range(len(group.cluster.seats)):
        if group.cluster.seats[index].joins_at is not None:
            group.cluster.restart(index)
    group.cluster.run_for(2 * SECOND)
    group.finish()
    violations = check_transactions(group.trace)
    assert not violations, "\n".join(map(str, violations))


@pytest.mark.parametrize("kind", [Proposed, Decided])
@pytest.mark.parametrize("crashes", [True, False], ids=["crashes", "parted"])
def test_who_has_it_first_is_gone_and_another_run_takes_over(kind: type[Statement], crashes: bool) -> None:
    group = a_group()
    gone: list[int] = []

    def strike(member: LiveMember) -> None:
        gone.append(member.index)
        if crashes:
            group.scheduler.after(0, member.crash)
        else:
            apart(group, member.index)

    at_first(group, kind, strike)
    assert group.cluster.run_until(lambda: gone != [])
    (index,) = gone
    other = (index + 1) % 3
    before = len(versions_told(group))
    group.start("query", other)
    assert group.cluster.run_until(lambda: len(versions_told(group, f"s{other}")) > 1)
    assert len(versions_told(group)) > before
    end(group)


def test_most_voters_come_back_behind_a_proposal() -> None:
    group = a_group()
    struck: list[int] = []

    def strike(member: LiveMember) -> None:
        struck.extend(index for index in range(3) if index != 0)
        for index in struck:
            group.scheduler.after(0, group.cluster.crash, index)
            group.scheduler.after(300 * MILLISECOND, group.cluster.restart, index)

    at_first(group, Proposed, strike)
    group.cluster.run_until(lambda: struck != [])
    group.cluster.run_for(SECOND)
    before = len(versions_told(group))
    assert group.cluster.run_until(lambda: len(versions_told(group)) > before + 1)
    end(group)


def test_new_sites_in_a_minority_do_not_make_it_commit() -> None:
    group = a_group(3, late=2)
    group.cluster.split([0, 3, 4], [1, 2])
    group.cluster.run_for(500 * MILLISECOND)
    before = versions_told(group, "s0")
    for index in (3, 4):
        group.cluster.join(index)
    group.start("query", 1)
    group.cluster.run_for(5 * SECOND)
    assert len(versions_told(group, "s0")) <= len(before) + 1
    assert len(versions_told(group, "s1")) > 2
    end(group)
    assert group.cluster[1].endpoint.ledger.transactions.established


def test_sites_that_cease_in_order_leave_the_others_able_to_commit() -> None:
    group = a_group()
    for index in (2, 1):
        group.cease(index)
        group.cluster.run_for(3 * SECOND)
    before = len(versions_told(group))
    assert group.cluster.run_until(lambda: len(versions_told(group)) > before + 1)
    end(group)


def test_a_site_is_gone_with_its_disk() -> None:
    group = a_group()
    group.cluster.crash(2)
    group.lose_disk(2)
    group.cluster.run_for(3 * SECOND)
    group.cluster.join(2)
    group.cluster.run_for(3 * SECOND)
    before = len(versions_told(group))
    assert group.cluster.run_until(lambda: len(versions_told(group)) > before)
    end(group)


def test_one_that_established_a_part_is_gone_before_the_others_hear_of_it() -> None:
    group = a_group()
    group.cluster.crash(2)
    gone: list[int] = []

    def strike(member: LiveMember) -> None:
        gone.append(member.index)
        apart(group, member.index)
        group.scheduler.after(2 * SECOND, group.cluster.heal_all)
        group.scheduler.after(0, group.cluster.restart, 2)

    at_first(group, Established, strike)
    assert group.cluster.run_until(lambda: gone != [])
    group.start("query", 1 - gone[0])
    before = len(versions_told(group))
    assert group.cluster.run_until(lambda: len(versions_told(group)) > before + 2)
    end(group)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_transaction_has_one_outcome(seed: int) -> None:
    outcome = play_transactions(seed)
    assert not outcome.violations, "\n".join(map(str, outcome.violations))
    assert outcome.told


@pytest.mark.parametrize("bug", CAUGHT_BY_SEEDS)
def test_a_seed_catches_a_bug(bug: str) -> None:
    with planted(bug, TRANSACTION_PLANTINGS):
        assert play_transactions(CAUGHT_BY_SEEDS[bug]).violations
