"""Parts of a group that are apart, meet and lose members: what one may have decided nobody decides otherwise."""

from __future__ import annotations

from dataclasses import replace

from intergroup_core.effects import Install
from intergroup_core.ids import MemberId, Timestamp, View, ViewId
from intergroup_core.log.body import install_of, packed_install
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.transactions import Verdict
from intergroup_core.wire.labels import key_of
from intergroup_core.wire.statements import Decided, Established, Gathering, Holding, Restated
from tests.unit.transaction.stories import ANNA, BERT, CLEO, Story, a_label, a_proposal
from tests.unit.transaction.test_transactions import DAY, SITES, a_story, decide, establish, gather, holding, verdict_on

QUERY = key_of("query")


def apart(together: Story, *members: MemberId, ledger: Ledger | None = None) -> Story:
    """Some of the members go on by themselves, with one of the ledgers, or a copy of the first."""
    story = Story(members=members)
    if ledger is None:
        ledger = Ledger()
        ledger.begin(together.ledgers[0].to_bytes(), together.now)
    story.ledgers, story.now = [ledger], together.now
    story.view(members, before=members)
    return story


def candidate(ledger: Ledger) -> tuple[MemberId, int] | None:
    pending = ledger.transactions.applications[QUERY].pending
    return (pending.proposer, pending.seq) if pending is not None else None


def test_a_candidate_of_an_earlier_era_is_not_decided_before_a_majority_has_it_in_the_new_one() -> None:
    story = a_story()
    assert verdict_on(story, story.stage(a_label())) is Verdict.TAKEN
    before = Timestamp(story.now)
    proposal = candidate(story.ledgers[0])
    assert proposal is not None
    story.view((ANNA, BERT), before=(ANNA, BERT))
    establish(story, 1, 2, members=(ANNA, BERT))
    story.say(Decided(903, QUERY, 1, *proposal, before, SITES))
    assert story.decisions == []
    decide(story, 1, 2)
    assert len(story.decisions) == 1


def test_who_was_in_the_later_era_overrules_a_candidate_of_an_earlier_one() -> None:
    """Two leave a view with different ends; what one of the parts makes its own is not undone by the other."""
    story = a_story()
    at_anna, at_cleo = apart(story, ANNA), apart(story, BERT, CLEO)
    for part, member, run in ((at_anna, ANNA, "one"), (at_cleo, CLEO, "other")):
        part.ledgers[0].transactions.established = True  # still in the view that they leave
        assert verdict_on(part, part.stage(a_label(run=run), member), run=run) is Verdict.TAKEN
    chosen = candidate(at_cleo.ledgers[0])
    at_cleo.view((BERT, CLEO), before=(BERT, CLEO))
    establish(at_cleo, 2, 3, members=(BERT, CLEO))
    for _ in range(3):  # a minority that asks itself again and again is no later era
        at_anna.view((ANNA,), before=(ANNA,))
        gather(at_anna, ANNA)
    for one, other in ((at_anna, at_cleo), (at_cleo, at_anna)):
        known = Ledger()
        known.learn(one.ledgers[0].to_bytes())
        known.learn(other.ledgers[0].to_bytes())
        assert candidate(known) == chosen


def test_no_two_parts_have_the_same_era() -> None:
    """A site that has helped one part to be established goes to another before it hears of that."""
    story = a_story()
    here, there = apart(story, ANNA, BERT), apart(story, CLEO)
    gather(here, ANNA, BERT)
    here.say(Gathering(901))
    probe = Timestamp(here.now)
    met = here.ledgers[0].remembered()
    there.say(Restated(met), CLEO)
    there.now = here.now
    there.view((CLEO, BERT), before=(CLEO, BERT))
    establish(there, 2, 3, members=(CLEO, BERT))
    here.say(Established(902, probe, (1, 2)))
    assert here.ledgers[0].transactions.established
    assert there.ledgers[0].transactions.established
    assert here.ledgers[0].transactions.era < there.ledgers[0].transactions.era


def test_what_was_said_before_all_were_asked_does_not_answer() -> None:
    story = a_story()
    story.view((ANNA, BERT), before=(ANNA, BERT))
    early = story.ledgers[0].remembered()
    story.say(Gathering(900))
    for member in (ANNA, BERT):
        story.say(Restated(early), member)
    assert story.ledgers[0].transactions.awaiting == {ANNA, BERT}
    for member in (ANNA, BERT):
        story.say(Restated(story.ledgers[0].remembered()), member)
    assert not story.ledgers[0].transactions.awaiting


def test_a_newcomer_that_knows_of_a_later_round_makes_a_part_count_no_more() -> None:
    story = a_story()
    elsewhere = apart(story, BERT, CLEO)
    establish(elsewhere, 2, 3, members=(BERT, CLEO))
    story.say(Restated(elsewhere.ledgers[0].remembered()), CLEO)
    known = story.ledgers[0].transactions
    assert not known.established
    establish(story)
    assert known.established
    assert known.era > elsewhere.ledgers[0].transactions.era


def test_a_newcomer_that_knows_of_a_later_round_is_waited_for_once_all_have_answered() -> None:
    story = a_story()
    elsewhere = apart(story, CLEO)
    for _ in range(3):
        elsewhere.view((CLEO,), before=(CLEO,))
        gather(elsewhere, CLEO)
    story.view((ANNA, BERT), before=(ANNA, BERT))
    gather(story, ANNA, BERT)
    story.say(Gathering(901))
    probe = Timestamp(story.now)
    story.say(Restated(elsewhere.ledgers[0].remembered()), CLEO)
    story.say(Established(902, probe, SITES))
    assert not story.ledgers[0].transactions.established
    story.say(Gathering(901))
    story.say(Established(902, Timestamp(story.now), SITES))
    assert story.ledgers[0].transactions.era > elsewhere.ledgers[0].transactions.promised


def test_silence_does_not_make_a_minority_a_majority() -> None:
    story = a_story()
    story.now += 10 * DAY * 1_000_000 << 12
    story.say(Holding(1, "s1", True, DAY))
    story.view((ANNA,), before=(ANNA,))
    establish(story, 1, members=(ANNA,))
    assert not story.ledgers[0].transactions.established


def test_a_site_that_ceased_and_came_back_is_not_a_voter_of_before() -> None:
    story = a_story()
    for site in (2, 3):
        story.say(Holding(site, f"s{site}", False, DAY))
        story.say(Holding(site, f"s{site}", True, DAY))
    story.view((BERT, CLEO), before=(BERT, CLEO))
    establish(story, 2, 3, members=(BERT, CLEO))
    assert not story.ledgers[0].transactions.established
    story.view((ANNA,), before=(ANNA,))
    establish(story, 1, members=(ANNA,))
    assert story.ledgers[0].transactions.established


def test_what_only_one_saw_decided_is_decided_where_it_comes_back() -> None:
    story = a_story()
    assert verdict_on(story, story.stage(a_label())) is Verdict.TAKEN
    alone = apart(story, CLEO)
    alone.ledgers[0].transactions.established = True  # still in the view that it leaves
    decide(alone, 1, 3)
    assert alone.ledgers[0].transactions.is_committed(QUERY, 1)
    story.view((ANNA, BERT), before=(ANNA, BERT))
    story.say(Restated(alone.ledgers[0].remembered()), CLEO)
    assert [decision.timestamp for decision in story.decisions] == [story.now]


def test_another_proposal_than_the_one_that_was_decided_is_dropped() -> None:
    story = a_story()
    elsewhere = apart(story, BERT, CLEO)
    assert verdict_on(story, story.stage(a_label(run="here")), run="here") is Verdict.TAKEN
    establish(elsewhere, 2, 3, members=(BERT, CLEO))
    assert verdict_on(elsewhere, elsewhere.stage(a_label(), BERT)) is Verdict.TAKEN
    decide(elsewhere, 2, 3)
    story.say(Restated(elsewhere.ledgers[0].remembered()), CLEO)
    assert story.decisions == []
    assert candidate(story.ledgers[0]) is None


def test_what_does_not_last_and_was_decided_is_not_a_candidate_again() -> None:
    story = a_story()
    staged = story.stage(a_label(0, app="once"))
    story.say(replace(a_proposal(staged, version=0, app="once"), lasting=False))
    before = story.ledgers[0].remembered()
    decide(story, app="once")
    story.say(Restated(before), BERT)
    assert story.ledgers[0].transactions.pending() == []


def test_rows_of_another_stream_do_not_count() -> None:
    story = a_story()
    elsewhere = apart(story, CLEO)
    staged = elsewhere.stage(a_label(), CLEO)
    story.say(Restated(elsewhere.ledgers[0].remembered()), CLEO)
    assert verdict_on(story, staged) is Verdict.LACKING


def test_that_others_close_what_they_opened_takes_nothing_from_a_transaction() -> None:
    story = a_story()
    story.stage(a_label(app="other"))
    assert verdict_on(story, story.stage(a_label(app="other", attempt=2)), app="other") is Verdict.TAKEN
    staged = story.stage(a_label())
    story.ledgers[0].transactions.opens.clear()
    decide(story, app="other")
    assert verdict_on(story, staged) is Verdict.TAKEN


def test_what_is_known_together_does_not_depend_on_who_says_it_first() -> None:
    story = a_story()
    parts = [apart(story, member) for member in (ANNA, BERT, CLEO)]
    for part, member in zip(parts, (ANNA, BERT, CLEO), strict=True):
        part.now += 1_000 * member
        holding(part, member)
        staged = part.stage(a_label(run=f"run {member}", attempt=member), member)
        part.ledgers[0].transactions.established = True
        for app, lasting in (("query", True), ("once", False)):
            proposal = a_proposal(staged, app=app, run=f"run {member}")
            part.say(replace(proposal, lasting=lasting), member)
        if member != BERT:
            decide(part, app="once")
    known = set()
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        ledger = Ledger()
        for number in order:
            ledger.learn(parts[number].ledgers[0].remembered())
        known.add(ledger.to_bytes())
    assert len(known) == 1


def test_what_is_known_is_put_aside_where_nobody_comes_along_who_would_state_it() -> None:
    """A receiver follows into a view whose senders are all from elsewhere: they know nothing of where it was."""
    story = a_story()
    assert verdict_on(story, story.stage(a_label())) is Verdict.TAKEN
    ledger = story.ledgers[0]
    here, there = ledger.remembered(), Ledger()
    story.view((CLEO,), before=(CLEO,), branches=("other",), transitional=())
    assert ledger.to_bytes() == there.to_bytes()
    assert ledger.unstated
    assert ledger.remembered() == replaced_gathered(here)
    story.ledgers.append(there)
    story.say(Restated(ledger.unstated), CLEO)
    assert not ledger.unstated
    assert ledger.transactions.pending() == there.transactions.pending() != []


def test_a_receiver_that_becomes_a_sender_speaks_for_where_it_was_and_logs_tell_of_it() -> None:
    """All who sent there are gone, and still one comes along who knows: nothing is put aside, nor by who reads."""
    story = a_story()
    assert verdict_on(story, story.stage(a_label())) is Verdict.TAKEN
    ledger, reader = story.ledgers[0], Ledger()
    reader.learn(ledger.to_bytes())
    known = ledger.transactions.pending()
    view = View(id=ViewId(Timestamp(story.now + 1_000), CLEO, 1), members=(CLEO,))
    entered = ledger.enter(Install(view, before=((CLEO, 0),), branches=("other",), spoken_for=True))
    assert ledger.transactions.pending() == known != []
    assert not ledger.unstated
    reader.enter(install_of(memoryview(packed_install(entered))))
    assert reader.to_bytes() == ledger.to_bytes()


def replaced_gathered(stated: bytes) -> bytes:
    """As it is remembered once those who were asked are behind."""
    known = Ledger()
    known.learn(stated)
    return known.remembered()


def test_one_who_had_a_candidate_and_one_who_had_not_know_the_same_of_what_does_not_last() -> None:
    story = a_story()
    staged = story.stage(a_label(0, app="once"))
    story.say(replace(a_proposal(staged, version=0, app="once"), lasting=False))
    without = Ledger()
    without.learn(story.ledgers[0].remembered())
    decided = apart(story, CLEO)
    decided.ledgers[0].transactions.established = True  # still in the view that it leaves
    decide(decided, app="once")
    without.transactions.applications[key_of("once")].pending = None
    story.ledgers.append(without)
    story.stage(a_label(1, app="once", attempt=4), BERT)
    story.say(Restated(decided.ledgers[0].remembered()), CLEO)
    one, other = (ledger.transactions.applications[key_of("once")] for ledger in story.ledgers)
    assert len(story.decisions) == 1
    assert one == other
