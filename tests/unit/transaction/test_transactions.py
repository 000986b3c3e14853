"""Which transactions become visible, by what is stated in one order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from intergroup_core.effects import Departure, Install
from intergroup_core.ids import MemberId, Timestamp, View, ViewId
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.transactions import MAX_APPLICATIONS, MAX_SENDERS, Verdict
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.fields import MAX_LEDGER
from intergroup_core.wire.labels import key_of
from intergroup_core.wire.statements import Abandoned, Decided, Established, Gathering, Holding, Restated
from tests.unit.transaction.stories import ANNA, BERT, CLEO, HOUR, Story, a_label, a_proposal

SITES = (1, 2, 3)
DAY = 86_400


def holding(story: Story, *sites: int) -> None:
    for site in sites:
        story.say(Holding(site, f"s{site}", True, DAY))


def gather(story: Story, *members: MemberId) -> None:
    """Everybody says what it knows."""
    story.say(Gathering(900))
    for member in members:
        story.say(Restated(story.ledgers[0].remembered()), member)


def establish(story: Story, *sites: int, members: tuple[MemberId, ...] = (ANNA, BERT, CLEO)) -> None:
    gather(story, *members)
    story.say(Gathering(901))
    story.say(Established(902, Timestamp(story.now), sites or SITES))


def a_story(*more: Ledger) -> Story:
    """Three log-holding sites in a part that is established."""
    story = Story(Ledger(), *more)
    holding(story, *SITES)
    establish(story)
    assert story.ledgers[0].transactions.established
    return story


def verdict_on(story: Story, *attempts: Staged, version: int = 1, run: str = "run", app: str = "query") -> Verdict:
    for ledger in story.ledgers:
        ledger.expect(77)
    story.say(a_proposal(*attempts, version=version, run=run, app=app, nonce=77))
    noted = story.ledgers[0].noted(77)
    assert noted is not None
    return noted.verdict


def decide(story: Story, *sites: int, app: str = "query") -> None:
    pending = story.ledgers[0].transactions.applications[key_of(app)].pending
    assert pending is not None
    place = Timestamp(story.now)
    story.say(Decided(903, key_of(app), pending.version, pending.proposer, pending.seq, place, sites or SITES))


def test_a_transaction_is_visible_once_a_majority_has_its_proposal() -> None:
    story = a_story()
    staged = story.stage(a_label())
    assert verdict_on(story, staged) is Verdict.TAKEN
    decide(story, 1)
    assert story.decisions == []
    decide(story, 1, 3)
    assert [decision.timestamp for decision in story.decisions] == [story.now]
    assert story.ledgers[0].transactions.is_committed(key_of("query"), 1)


def test_the_first_proposal_for_a_version_is_the_only_one() -> None:
    story = a_story()
    one, other = story.stage(a_label(attempt=1)), story.stage(a_label(attempt=2), BERT)
    assert verdict_on(story, one) is Verdict.TAKEN
    assert verdict_on(story, other) is Verdict.UNSETTLED
    decide(story)
    assert verdict_on(story, other) is Verdict.COMMITTED
    assert len(story.decisions) == 1


def test_versions_below_one_that_was_committed_count_as_committed() -> None:
    story = a_story()
    assert verdict_on(story, story.stage(a_label(5)), version=5) is Verdict.TAKEN
    decide(story)
    assert verdict_on(story, story.stage(a_label(4)), version=4) is Verdict.COMMITTED
    assert verdict_on(story, story.stage(a_label(6)), version=6) is Verdict.TAKEN


def test_a_new_run_makes_older_ones_void() -> None:
    story = a_story()
    old = story.stage(a_label(run="old"))
    story.stage(a_label(run="new", attempt=2))
    assert verdict_on(story, old, run="old") is Verdict.SUPERSEDED
    assert verdict_on(story, story.stage(a_label(run="new", attempt=3)), run="new") is Verdict.TAKEN


def test_what_an_old_run_had_proposed_is_decided_all_the_same() -> None:
    story = a_story()
    assert verdict_on(story, story.stage(a_label(run="old")), run="old") is Verdict.TAKEN
    staged = story.stage(a_label(run="new", attempt=2))
    assert verdict_on(story, staged, run="new") is Verdict.UNSETTLED
    decide(story)
    assert verdict_on(story, staged, run="new") is Verdict.COMMITTED


def test_a_proposal_too_long_after_its_first_row_is_void() -> None:
    story = a_story()
    staged = story.stage(a_label(timeout_s=HOUR))
    story.now += HOUR * 1_000_000 << 12
    assert verdict_on(story, staged) is Verdict.LATE


def test_rows_that_did_not_all_come_are_not_proposed() -> None:
    story = a_story()
    staged = story.stage(a_label())
    assert verdict_on(story, staged._replace(last_seq=staged.last_seq + 1)) is Verdict.LACKING
    assert verdict_on(story, staged, staged._replace(sender=CLEO)) is Verdict.LACKING


def test_rows_staged_before_parts_of_the_group_met_are_not_at_everybody() -> None:
    story = a_story()
    staged = story.stage(a_label())
    members = (ANNA, BERT, CLEO)
    story.view(members, before=members, branches=("other",))
    establish(story)
    assert verdict_on(story, staged) is Verdict.LACKING


def test_rows_outlive_the_failure_of_somebody_else() -> None:
    story = a_story()
    staged = story.stage(a_label())
    story.view((ANNA, BERT), before=(ANNA, BERT))
    assert verdict_on(story, staged) is Verdict.UNESTABLISHED
    establish(story, 1, 2, members=(ANNA, BERT))
    assert verdict_on(story, staged) is Verdict.TAKEN


def test_a_minority_is_not_established() -> None:
    story = a_story()
    story.view((ANNA,), before=(ANNA,))
    establish(story, 1, members=(ANNA,))
    assert not story.ledgers[0].transactions.established


def test_nobody_is_established_before_all_in_the_view_have_said_what_they_know() -> None:
    story = Story(Ledger())
    holding(story, *SITES)
    gather(story, ANNA, BERT)
    story.say(Established(902, Timestamp(story.now), SITES))
    assert not story.ledgers[0].transactions.established
    story.say(Restated(story.ledgers[0].remembered()), CLEO)
    story.say(Gathering(901))
    story.say(Established(902, Timestamp(story.now), SITES))
    assert story.ledgers[0].transactions.established


def test_who_leaves_is_not_waited_for() -> None:
    story = Story(Ledger())
    holding(story, *SITES)
    gather(story, ANNA, BERT)
    story.now += 1_000
    view = View(id=ViewId(Timestamp(story.now), ANNA, 2), members=(ANNA, BERT))
    story.ledgers[0].enter(Install(view, departed=(Departure(CLEO, "cleo", "left"),), before=((CLEO, 9),)))
    assert not story.ledgers[0].transactions.awaiting


def test_sites_that_come_in_a_minority_do_not_make_it_a_majority() -> None:
    story = a_story()
    story.view((ANNA,), before=(ANNA,))
    holding(story, 4, 5)
    establish(story, 1, 4, 5, members=(ANNA,))
    assert not story.ledgers[0].transactions.established


def test_voters_change_with_a_decision_that_both_majorities_have() -> None:
    story = a_story()
    holding(story, 4, 5)
    assert verdict_on(story, story.stage(a_label())) is Verdict.TAKEN
    decide(story, 1, 2)
    assert story.decisions == []
    decide(story, 1, 4, 5)
    assert story.decisions == []
    decide(story, 1, 2, 4)
    assert len(story.decisions) == 1
    assert story.ledgers[0].transactions.voters == frozenset({1, 2, 3, 4, 5})


def test_a_site_that_ceases_or_is_removed_does_not_vote_any_more() -> None:
    story = a_story()
    story.say(Holding(2, "s2", False, DAY))
    story.say(Holding(3, "s3", False, DAY))
    story.view((ANNA,), before=(ANNA,))
    establish(story, 1, members=(ANNA,))
    assert story.ledgers[0].transactions.established


def test_what_was_proposed_is_decided_by_others_where_all_who_were_to_decide_have_ceased() -> None:
    story = a_story()
    assert verdict_on(story, story.stage(a_label())) is Verdict.TAKEN
    for site in SITES:
        story.say(Holding(site, f"s{site}", False, DAY))
    holding(story, *SITES)
    story.view((ANNA, BERT, CLEO), before=(ANNA, BERT, CLEO))
    establish(story)
    assert story.ledgers[0].transactions.established
    decide(story)
    assert len(story.decisions) == 1


def test_what_was_proposed_and_perhaps_decided_is_decided_where_a_majority_goes_on() -> None:
    story = a_story()
    assert verdict_on(story, story.stage(a_label())) is Verdict.TAKEN
    story.view((BERT, CLEO), before=(BERT, CLEO))
    establish(story, 2, 3, members=(BERT, CLEO))
    assert verdict_on(story, story.stage(a_label(attempt=9), BERT)) is Verdict.UNSETTLED
    decide(story, 2, 3)
    assert [decision.timestamp for decision in story.decisions] == [story.now]
    assert story.ledgers[0].transactions.is_committed(key_of("query"), 1)


def test_what_only_a_minority_had_does_not_count_where_the_others_went_on() -> None:
    there = Ledger()
    together = a_story(there)
    here = together.ledgers[0]
    alone = Story(members=(ANNA,))
    alone.ledgers, alone.now = [there], together.now
    together.ledgers = [here]
    assert verdict_on(alone, alone.stage(a_label(run="there"))) is Verdict.TAKEN  # delivered by nobody else
    alone.view((ANNA,), before=(ANNA,))
    together.view((BERT, CLEO), before=(BERT, CLEO))
    establish(together, 2, 3, members=(BERT, CLEO))
    assert verdict_on(together, together.stage(a_label(run="here"), BERT), run="here") is Verdict.TAKEN
    theirs = there.to_bytes()
    there.learn(here.to_bytes())
    here.learn(theirs)
    assert there.transactions.pending() == here.transactions.pending()
    (_, pending), *rest = here.transactions.pending()
    assert rest == []
    assert pending.timestamp == together.now


def test_the_ledger_is_the_same_after_it_was_handed_over() -> None:
    story = a_story()
    story.stage(a_label(2, attempt=5), BERT)
    assert verdict_on(story, story.stage(a_label())) is Verdict.TAKEN
    newcomer = Ledger()
    newcomer.begin(story.ledgers[0].to_bytes(), story.now)
    newcomer.transactions.members = story.ledgers[0].transactions.members
    assert newcomer.to_bytes() == story.ledgers[0].to_bytes()
    story.ledgers.append(newcomer)
    decide(story)
    verdict_on(story, story.stage(a_label(3)), version=3)
    assert newcomer.to_bytes() == story.ledgers[0].to_bytes()


def test_open_transactions_hold_what_they_staged_until_they_are_decided_abandoned_or_late() -> None:
    story = a_story()
    known = story.ledgers[0].transactions
    assert known.open_since(story.now) is None
    first = story.stage(a_label())
    story.stage(a_label(run="other", app="second", attempt=2))
    assert known.open_since(story.now) == first.first_timestamp
    assert verdict_on(story, first) is Verdict.TAKEN
    assert known.open_since(story.now) == first.first_timestamp
    decide(story)
    assert known.open_since(story.now) is not None
    story.say(Abandoned("second", "other", 1))
    assert known.open_since(story.now) is None
    story.stage(a_label(2, attempt=3))
    story.now += 2 * HOUR * 1_000_000 << 12
    assert known.open_since(story.now) is None, "also where nobody stages anything after it"
    late = story.stage(a_label(3, attempt=4))
    assert known.open_since(story.now) == late.first_timestamp


def test_rows_are_held_for_as_long_as_any_attempt_may_be_proposed() -> None:
    story = a_story()
    known = story.ledgers[0].transactions
    first = story.stage(a_label())
    story.now += HOUR * 900_000 << 12
    again = story.stage(a_label(attempt=2))
    story.now += HOUR * 900_000 << 12
    assert known.open_since(story.now) == first.first_timestamp
    assert verdict_on(story, again) is Verdict.TAKEN


def test_those_that_never_committed_anything_are_forgotten_before_those_that_did() -> None:
    story = a_story()
    known = story.ledgers[0].transactions
    assert verdict_on(story, story.stage(a_label())) is Verdict.TAKEN
    decide(story)
    for number in range(MAX_APPLICATIONS + 10):
        story.stage(a_label(0, app=f"once {number}"))
    assert len(known.applications) == MAX_APPLICATIONS
    assert known.is_committed(key_of("query"), 1)
    for number in range(MAX_APPLICATIONS + 10):
        story.say(Abandoned(f"once {number}", "run", 0))
    assert set(known.applications) == {key_of("query")}


def test_a_straggler_of_what_is_over_is_not_remembered() -> None:
    story = a_story()
    known = story.ledgers[0].transactions
    staged = story.stage(a_label(0, app="once"))
    story.say(replace(a_proposal(staged, version=0, app="once"), lasting=False))
    decide(story, app="once")
    late = story.stage(a_label(0, app="once", attempt=2))
    assert verdict_on(story, late, version=0, app="once") is Verdict.COMMITTED
    assert key_of("once") not in known.applications
    assert known.open_since(story.now) is None


def test_an_application_that_does_not_last_is_remembered_by_its_version_alone() -> None:
    story = a_story()
    staged = story.stage(a_label(0, app="once"))
    story.say(replace(a_proposal(staged, version=0, app="once"), lasting=False))
    decide(story, app="once")
    known = story.ledgers[0].transactions
    assert key_of("once") not in known.applications
    assert known.is_committed(key_of("once"), 0)
    assert not known.is_committed(key_of("once"), 1)


def test_the_fullest_ledger_fits_what_a_sponsor_says() -> None:
    story = a_story()
    for number in range(MAX_APPLICATIONS + 20):
        for run in range(5):
            story.stage(a_label(number, app=f"application {number}", run=f"{run}"))
    for site in range(300):
        story.say(Holding((1 << 64) - 1 - site, "n" * 64, True, DAY))
    for app in ("application 100", "application 101"):
        verdict_on(story, story.stage(a_label(200, app=app, run="9")), version=200, app=app, run="9")
    known = story.ledgers[0].transactions
    known.reach = {MemberId((1 << 64) - 1 - sender): ((1 << 50) + sender, story.now) for sender in range(MAX_SENDERS)}
    assert len(known.pending()) == 2
    assert len(known.applications) == MAX_APPLICATIONS
    assert len(story.ledgers[0].to_bytes()) <= MAX_LEDGER


@pytest.mark.parametrize("garbage", [b"\x93\x02\x90\x90", b"\x93\x02\x90\x9c" + b"\x00" * 12, b"\x93\x02\x90\xc0"])
def test_what_says_nothing_of_transactions_changes_nothing(garbage: bytes) -> None:
    story = a_story()
    before = story.ledgers[0].to_bytes()
    story.ledgers[0].learn(garbage)
    assert story.ledgers[0].to_bytes() == before
