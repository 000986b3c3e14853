"""Proposals that are candidates where some do not have them: what they said is said again."""

from __future__ import annotations

from intergroup_core.ids import Timestamp
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.transactions import Verdict
from intergroup_core.wire.statements import Established, Gathering, Restated
from tests.unit.transaction.stories import ANNA, BERT, CLEO, a_label, a_proposal
from tests.unit.transaction.test_transactions import a_story, decide, verdict_on


def test_what_only_one_side_knew_to_be_proposed_is_said_again_where_sides_meet() -> None:
    story = a_story(Ledger())
    many, few = story.ledgers
    staged = story.stage(a_label(), CLEO)
    story.ledgers = [few]
    seq = story.say(a_proposal(staged), CLEO)
    story.ledgers = [many, few]
    story.view((ANNA, BERT, CLEO), before=(ANNA, BERT, CLEO), branches=("another",))
    story.say(Gathering(900))
    assert many.carries() == []
    said = few.carries()
    assert len(said) == 1
    again = story.say(said[0], CLEO)
    assert few.carries() == many.carries() == [], "once is enough"
    for member, ledger in ((CLEO, few), (ANNA, many), (BERT, many)):
        story.say(Restated(ledger.remembered()), member)
    newcomer = Ledger()
    newcomer.begin(many.to_bytes(), story.now)
    story.ledgers.append(newcomer)
    story.say(Gathering(901))
    story.say(Established(902, Timestamp(story.now), (1, 2)))
    decide(story)
    (decision,) = story.decisions
    assert decision.proposal[:2] == (CLEO, seq)
    assert decision.said[:2] == (CLEO, again)
    assert many.to_bytes() == few.to_bytes() == newcomer.to_bytes()


def test_what_is_in_the_log_of_all_need_not_be_said_again() -> None:
    story = a_story()
    assert verdict_on(story, story.stage(a_label())) is Verdict.TAKEN
    decide(story)
    (decision,) = story.decisions
    assert decision.said == decision.proposal
    assert story.ledgers[0].carries() == []
