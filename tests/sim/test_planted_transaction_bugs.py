"""Every bug planted in the rules of transactions is caught by the scenario that is a test of its own without it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from intergroup_core.sim.mutations import planted
from intergroup_core.sim.transaction_mutations import TRANSACTION_PLANTINGS
from tests.unit.agent import test_witnesses as witnesses
from tests.unit.transaction import test_carrying as carrying
from tests.unit.transaction import test_committing as committing
from tests.unit.transaction import test_rounds as rounds
from tests.unit.transaction import test_transactions as transactions

STORIES: dict[str, Callable[[], None]] = {
    "any_site_is_a_majority": transactions.test_a_minority_is_not_established,
    "whoever_holds_the_log_votes": transactions.test_sites_that_come_in_a_minority_do_not_make_it_a_majority,
    "the_old_voters_are_enough": transactions.test_voters_change_with_a_decision_that_both_majorities_have,
    "voters_change_with_a_proposal": transactions.test_voters_change_with_a_decision_that_both_majorities_have,
    "silence_takes_the_vote": rounds.test_silence_does_not_make_a_minority_a_majority,
    "who_comes_back_votes_as_before": rounds.test_a_site_that_ceased_and_came_back_is_not_a_voter_of_before,
    "sites_answer_before_they_have_stated_what_they_know": (
        witnesses.test_a_site_that_has_not_stated_what_it_remembers_holds_nothing
    ),
    "nobody_is_asked_what_it_knows": (
        transactions.test_nobody_is_established_before_all_in_the_view_have_said_what_they_know
    ),
    "the_first_answer_is_enough": (
        transactions.test_nobody_is_established_before_all_in_the_view_have_said_what_they_know
    ),
    "old_answers_count": rounds.test_what_was_said_before_all_were_asked_does_not_answer,
    "nothing_is_promised": rounds.test_no_two_parts_have_the_same_era,
    "candidates_need_no_majority_in_a_new_era": (
        rounds.test_a_candidate_of_an_earlier_era_is_not_decided_before_a_majority_has_it_in_the_new_one
    ),
    "eras_of_candidates_do_not_matter": rounds.test_who_was_in_the_later_era_overrules_a_candidate_of_an_earlier_one,
    "candidates_are_lost_where_parts_meet": (
        rounds.test_who_was_in_the_later_era_overrules_a_candidate_of_an_earlier_one
    ),
    "what_others_saw_decided_is_not_shown": rounds.test_what_only_one_saw_decided_is_decided_where_it_comes_back,
    "candidates_are_not_said_again": (
        carrying.test_what_only_one_side_knew_to_be_proposed_is_said_again_where_sides_meet
    ),
    "the_floor_is_ignored": transactions.test_rows_staged_before_parts_of_the_group_met_are_not_at_everybody,
    "rows_of_other_streams_count": rounds.test_rows_of_another_stream_do_not_count,
    "runs_have_no_order": transactions.test_a_new_run_makes_older_ones_void,
    "what_was_committed_is_forgotten": transactions.test_versions_below_one_that_was_committed_count_as_committed,
    "no_answer_is_waited_for": committing.test_without_a_majority_it_stays_at_asking,
}


def test_every_bug_has_a_story() -> None:
    assert STORIES.keys() == TRANSACTION_PLANTINGS.keys()


@pytest.mark.parametrize("bug", STORIES)
def test_a_bug_is_caught(bug: str) -> None:
    STORIES[bug]()
    with planted(bug, TRANSACTION_PLANTINGS), pytest.raises(AssertionError):
        STORIES[bug]()
