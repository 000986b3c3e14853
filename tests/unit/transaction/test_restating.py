"""What a member says of its ledger by itself, and how often."""

from __future__ import annotations

from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.restating import Restating
from intergroup_core.wire.statements import Gathering, Holding, Restated
from tests.unit.transaction.stories import ANNA, Story
from tests.unit.transaction.test_transactions import DAY, holding


def test_who_is_asked_says_once_what_it_knows() -> None:
    story = Story(Ledger())
    holding(story, 1)
    restating = Restating(story.ledgers[0])
    assert restating.due(ANNA) == []
    story.say(Gathering(1))
    assert [type(said) for said in restating.due(ANNA)] == [Restated]
    assert restating.due(ANNA) == []


def test_what_only_the_site_remembers_is_said_once_in_an_incarnation() -> None:
    ledger = Ledger()
    ledger.unstated = b"what nobody else knows"
    restating = Restating(ledger)
    assert restating.due(ANNA) == [Restated(b"what nobody else knows")]
    assert restating.due(ANNA) == []
    restating.leave_stream()
    ledger.unstated = b"what nobody else knows"
    assert restating.due(ANNA) == [Restated(b"what nobody else knows")]


def test_who_holds_the_log_goes_on_to_say_since_when() -> None:
    story = Story(Ledger())
    holding(story, 1)
    restating = Restating(story.ledgers[0])
    again, new = (restating.worded(Holding(site, "s", True, DAY), story.now + 1) for site in (1, 2))
    assert isinstance(again, Holding)
    assert isinstance(new, Holding)
    assert 0 < again.since <= story.now
    assert new.since == 0
    over = Holding(1, "s1", False, DAY)
    assert restating.worded(over, story.now) is over
