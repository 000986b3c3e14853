"""A coordinator's side."""

from __future__ import annotations

from typing import Any

from intergroup_core.hierarchy.leadership import Leadership
from intergroup_core.ids import SiteId
from tests.hierarchy_builders import CHIEF, KEY, ME, MS, OTHER, THIRD, S, T, a_gcon, a_leadership, acks, an_lcon, clock


def a_pair(now: int = T) -> Leadership:
    """With one fellow, that hears it."""
    lead = a_leadership(now)
    lead.own(acks(100))
    lead.sent(clock(now), now)
    lead.receive_fellow(a_gcon(OTHER, sent=now, acknowledgments=acks(50), echoes={ME: (clock(now), 0)}), 2, now)
    return lead


def hear(lead: Leadership, site: SiteId, now: int, **fields: Any) -> None:
    lead.receive_fellow(a_gcon(site, sent=now, **fields), 2, now)


def stable(lead: Leadership, now: int) -> int | None:
    system = lead.system(now)
    return None if system is None else int(system[KEY].upto)


def test_the_system_acknowledgment_is_the_least_of_all() -> None:
    lead = a_pair()
    assert stable(lead, T) == 50
    lead.receive_child(an_lcon(THIRD, ME, acknowledgments=acks(40)), 1, T, accepting=True)
    assert lead.group()[KEY].upto == stable(lead, T) == 40


def test_it_is_not_said_before_all_were_listened_for() -> None:
    lead = a_leadership(silent_until=T + S)
    lead.own(acks(100))
    assert stable(lead, T + S - 1) is None
    assert stable(lead, T + S) == 100


def test_it_is_not_said_while_somebody_speaks_of_a_coordinator_that_was_not_heard() -> None:
    lead = a_pair()
    lead.rumour_ns = S
    hear(lead, OTHER, T + MS, acknowledgments=acks(60), echoes={ME: (clock(T), 0), CHIEF: (1, 1)})
    assert stable(lead, T + MS) is None
    assert lead.counted_upto(T + MS) is None
    hear(lead, CHIEF, T + 2 * MS, acknowledgments=acks(55), echoes={ME: (clock(T), 0)})
    assert stable(lead, T + 2 * MS) == 55


def test_a_rumour_that_nobody_repeats_ends() -> None:
    lead = a_pair()
    lead.rumour(CHIEF, T + S)
    lead.forget_silent(9 * S, 9 * S, S, T + S)
    assert stable(lead, T + S) is None
    lead.forget_silent(9 * S, 9 * S, S, T + S + 1)
    assert stable(lead, T + S) == 50


def test_it_is_not_said_while_others_count_more_coordinators() -> None:
    lead = a_pair()
    hear(lead, OTHER, T + MS, coordinators=3, acknowledgments=acks(60))
    assert stable(lead, T + MS) is None


def test_it_is_not_said_before_every_fellow_hears_this_site() -> None:
    lead = a_pair()
    hear(lead, CHIEF, T + MS, acknowledgments=acks(70))
    assert stable(lead, T + MS) is None
    hear(lead, CHIEF, T + 2 * MS, acknowledgments=acks(70), echoes={ME: (clock(T), 0)})
    assert stable(lead, T + 2 * MS) == 50


def test_what_was_heard_before_the_oldest_message_that_all_echo_is_counted() -> None:
    lead = a_pair()
    lead.sent(clock(T + S), T + S)
    hear(lead, CHIEF, T + 2 * S, echoes={ME: (clock(T + S), 0)})
    assert lead.counted_upto(T + 2 * S) == T
    hear(lead, OTHER, T + 2 * S, echoes={ME: (clock(T + S), 0)})
    assert lead.counted_upto(T + 2 * S) == T + S


def test_a_lone_coordinator_counts_everything_at_once() -> None:
    assert a_leadership().counted_upto(T + 5) == T + 5


def test_a_fellow_that_fails_counts_for_a_grace_here_and_in_what_is_said_to_newcomers() -> None:
    lead = a_pair()
    assert lead.forget_silent(S, S, 4 * S, T + S + 1) == [OTHER]
    assert lead.group()[KEY].upto == 50
    assert lead.group()[KEY].members == 1
    # Somebody else may still hear it.
    assert stable(lead, T + S + 1) is None
    lead.forget_silent(S, S, 4 * S, T + 3 * S)
    assert stable(lead, T + 3 * S) == 50
    lead.forget_silent(S, S, 4 * S, T + 6 * S)
    assert stable(lead, T + 6 * S) == 100


def test_a_child_that_fails_counts_for_a_grace() -> None:
    lead = a_leadership()
    lead.own(acks(100))
    lead.receive_child(an_lcon(OTHER, ME, acknowledgments=acks(40)), 1, T, accepting=True)
    assert lead.forget_silent(S, S, 4 * S, T + S + 1) == [OTHER]
    assert stable(lead, T + 5 * S) == 40
    assert lead.holds_for_others()
    lead.forget_silent(S, S, 4 * S, T + 5 * S + 1)
    assert stable(lead, T + 6 * S) == 100
    assert not lead.holds_for_others()


def test_a_farewell_is_believed_and_what_it_overtook_is_not() -> None:
    lead = a_pair()
    lead.receive_child(an_lcon(THIRD, ME, sent=T, acknowledgments=acks(40)), 1, T, accepting=True)
    lead.child_left(THIRD, clock(T + 2 * MS), T + 2 * MS)
    lead.receive_child(an_lcon(THIRD, ME, sent=T + MS, acknowledgments=acks(41)), 1, T + 3 * MS, accepting=True)
    assert THIRD not in lead.children
    lead.receive_child(an_lcon(THIRD, ME, sent=T + 4 * MS, acknowledgments=acks(42)), 1, T + 5 * MS, accepting=True)
    assert THIRD in lead.children
    # A copy of the farewell comes late.
    lead.child_left(THIRD, clock(T + 2 * MS), T + 6 * MS)
    assert THIRD in lead.children


def test_a_coordinator_that_retired_may_become_one_again() -> None:
    lead = a_pair()
    lead.fellow_left(OTHER, clock(T + 2 * MS), T + 2 * MS)
    assert stable(lead, T + 2 * MS) == 100
    hear(lead, OTHER, T + MS, acknowledgments=acks(60))
    assert OTHER not in lead.fellows
    lead.rumour(OTHER, T + 9 * S)
    assert stable(lead, T + 2 * MS) == 100
    hear(lead, OTHER, T + 3 * MS, acknowledgments=acks(60), echoes={ME: (clock(T), 0)})
    assert stable(lead, T + 3 * MS) == 60
    lead.fellow_left(OTHER, clock(T + 2 * MS), T + 4 * MS)
    assert OTHER in lead.fellows


def test_orphans_of_a_coordinator_that_goes_for_good_count_on() -> None:
    lead = a_pair()
    lead.fellow_left(OTHER, clock(T + MS), T + MS, keep_until=T + 5 * S)
    assert OTHER not in lead.fellows
    assert stable(lead, T + MS) == 50
    lead.forget_silent(S, S, S, T + 5 * S)
    assert stable(lead, T + 5 * S) == 100


def test_who_stood_still_says_nothing_before_all_have_heard_it_again() -> None:
    lead = a_pair()
    lead.stood_still(10 * S, T + 10 * S)
    assert stable(lead, T + 10 * S) is None
    assert lead.forget_silent(S, S, S, T + 10 * S) == []
    lead.sent(clock(T + 10 * S), T + 10 * S)
    hear(lead, OTHER, T + 11 * S, acknowledgments=acks(70), echoes={ME: (clock(T + 10 * S), 0)})
    assert stable(lead, T + 11 * S) == 70


def test_nobody_new_is_taken_by_one_that_is_about_to_leave() -> None:
    lead = a_leadership()
    lead.receive_child(an_lcon(OTHER, ME), 1, T, accepting=False)
    assert OTHER not in lead.children


def test_the_heir_is_the_lowest_child() -> None:
    lead = a_leadership()
    assert lead.heir() is None
    for site in (THIRD, OTHER, CHIEF):
        lead.receive_child(an_lcon(site, ME), 1, T, accepting=True)
    assert lead.heir() == CHIEF
