"""How a site brings a transaction to be visible, step by step."""

from __future__ import annotations

from itertools import count

from intergroup_core.ids import Timestamp
from intergroup_core.transaction.committing import Ask, Committing, Done, Say, Step, Void, Wait
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.transactions import Verdict
from intergroup_core.wire.labels import key_of
from intergroup_core.wire.statements import Decided, Established, Gathering, Holding, Proposed, Restated
from tests.unit.transaction.stories import ANNA, BERT, CLEO, Story, a_label, a_proposal
from tests.unit.transaction.test_transactions import DAY, establish, holding

MEMBERS = (ANNA, BERT, CLEO)


class World:
    """Whatever a site says is delivered to all, and whoever is asked answers."""

    def __init__(self, story: Story, committing: Committing, having: tuple[int, ...] = (1, 2, 3)) -> None:
        self.story, self.committing, self.having = story, committing, having
        self.said: list[type] = []

    def run(self, most: int = 30) -> Step:
        """Until it is done, or nothing helps any more."""
        ledger = self.story.ledgers[0]
        for _ in range(most):
            step = self.committing.next(ledger, ANNA)
            match step:
                case Say(statement):
                    self.said.append(type(statement))
                    self.story.say(statement)
                    if ledger.owes:
                        ledger.owes = False
                        for member in sorted(ledger.transactions.awaiting):
                            self.story.say(Restated(ledger.remembered()), member)
                case Ask():
                    if not step.is_answered_by(self.having):
                        return step
                    self.committing.answered(step, self.having)
                case _:
                    return step
        raise AssertionError("it does not end")


def a_world(*, version: int = 1, established: bool = True, having: tuple[int, ...] = (1, 2, 3)) -> World:
    story = Story(Ledger())
    holding(story, 1, 2, 3)
    if established:
        establish(story)
    staged = story.stage(a_label(version))
    nonces = count(1)
    return World(story, Committing(a_proposal(staged, version=version), lambda: next(nonces)), having)


def test_a_part_that_is_not_established_is_established_first() -> None:
    world = a_world(established=False)
    assert isinstance(world.run(), Done)
    assert world.said == [Gathering, Gathering, Established, Proposed, Decided]
    assert len(world.story.decisions) == 1


def test_one_that_is_established_proposes_and_decides() -> None:
    world = a_world()
    done = world.run()
    assert isinstance(done, Done)
    assert done.made
    assert done.noted.timestamp == world.story.decisions[0].timestamp
    assert world.said == [Proposed, Decided]


def test_what_was_committed_before_is_done_at_a_place_behind_that() -> None:
    world = a_world()
    world.run()
    again = World(world.story, Committing(a_proposal(version=1), lambda: 99))
    done = again.run()
    assert isinstance(done, Done)
    assert not done.made
    assert done.noted.timestamp > world.story.decisions[0].timestamp
    assert again.said == [Gathering]


def test_it_is_the_same_whoever_decides_what_was_proposed_here() -> None:
    world = a_world()
    step = world.committing.next(world.story.ledgers[0], ANNA)
    assert isinstance(step, Say)
    seq = world.story.say(step.statement)
    world.story.say(Decided(700, key_of("query"), 1, ANNA, seq, Timestamp(world.story.now), (1, 2)), BERT)
    done = world.run()
    assert isinstance(done, Done)
    assert done.made
    assert done.noted.timestamp == world.story.decisions[0].timestamp


def test_a_decision_in_a_part_that_others_were_not_in_is_done_behind_what_all_know() -> None:
    world = a_world()
    done = world.run()
    assert isinstance(done, Done)
    world.story.view(MEMBERS, before=MEMBERS, branches=("another",))
    world.committing.unreached()
    world.said.clear()
    again = world.run()
    assert isinstance(again, Done)
    assert again.made
    assert again.noted.timestamp > done.noted.timestamp
    assert world.said == [Gathering, Gathering, Established, Gathering]


def test_what_is_known_to_be_committed_is_not_confirmed_without_a_majority() -> None:
    world = a_world()
    world.run()
    world.story.view(MEMBERS, before=MEMBERS)
    nonces = count(700)
    again = World(world.story, Committing(a_proposal(version=1), lambda: next(nonces)), having=(1,))
    assert isinstance(again.run(), Ask)


def test_deciding_what_stood_in_the_way_makes_nothing_visible_of_ones_own() -> None:
    world = a_world()
    ledger = world.story.ledgers[0]
    for number, app in enumerate(("other", "third"), start=7):
        staged = world.story.stage(a_label(app=app, attempt=number), BERT)
        world.story.say(a_proposal(staged, app=app, nonce=700 + number), BERT)
    ask = world.committing.next(ledger, ANNA)
    assert isinstance(ask, Ask)
    world.committing.answered(ask, world.having)
    decides = world.committing.next(ledger, ANNA)
    assert isinstance(decides, Say)
    world.story.say(decides.statement)
    newer = world.story.stage(a_label(run="newer", attempt=9), BERT)
    nonces = count(800)
    faster = World(world.story, Committing(a_proposal(newer, run="newer"), lambda: next(nonces)))
    assert isinstance(faster.run(), Done)
    done = world.run()
    assert isinstance(done, Done)
    assert not done.made


def test_without_a_majority_it_stays_at_asking() -> None:
    for established in (True, False):
        world = a_world(established=established, having=(1,))
        step = world.run()
        assert isinstance(step, Ask)
        assert step.sites == {1, 2, 3}
        assert world.story.decisions == []


def test_one_that_others_took_over_is_void() -> None:
    world = a_world()
    world.story.stage(a_label(run="newer", attempt=9), BERT)
    assert world.run() == Void(Verdict.SUPERSEDED)


def test_what_a_run_before_had_proposed_is_decided_first() -> None:
    world = a_world()
    step = world.committing.next(world.story.ledgers[0], ANNA)
    assert isinstance(step, Say)
    world.story.say(step.statement)
    staged = world.story.stage(a_label(1, run="newer", attempt=9), BERT)
    nonces = count(500)
    newer = World(world.story, Committing(a_proposal(staged, run="newer"), lambda: next(nonces)))
    done = newer.run()
    assert isinstance(done, Done)
    assert not done.made, "the rows that are visible are the other run's"
    assert newer.said == [Decided, Gathering]
    (decision,) = world.story.decisions
    assert decision.proposal[0] == ANNA


def test_a_repair_between_proposal_and_decision_is_gone_through() -> None:
    world = a_world()
    step = world.committing.next(world.story.ledgers[0], ANNA)
    assert isinstance(step, Say)
    world.story.say(step.statement)
    world.story.view(MEMBERS, before=MEMBERS)
    assert isinstance(world.run(), Done)
    assert world.said == [Gathering, Gathering, Established, Gathering, Decided]
    assert len(world.story.decisions) == 1


def test_what_was_said_by_an_incarnation_that_is_gone_is_said_again() -> None:
    world = a_world()
    ledger = world.story.ledgers[0]
    lost = world.committing.next(ledger, ANNA)
    assert isinstance(lost, Say)
    assert world.committing.next(ledger, ANNA) == Wait()
    again = world.committing.next(ledger, BERT)
    assert isinstance(again, Say)
    assert isinstance(again.statement, Proposed)


def test_a_site_that_came_since_is_asked_as_well() -> None:
    world = a_world(having=(1, 2))
    world.story.say(Holding(4, "s4", True, DAY))
    world.story.say(Holding(5, "s5", True, DAY))
    step = world.run()
    assert isinstance(step, Ask)
    assert step.sites == {1, 2, 3, 4, 5}
    world.having = (1, 2, 5)
    assert isinstance(world.run(), Done)


def test_sites_that_came_behind_a_proposal_are_asked_for_a_later_place() -> None:
    world = a_world(having=(1,))
    proposal = world.run()
    assert isinstance(proposal, Ask)
    world.committing.answered(proposal, (1,))
    world.having = ()
    later = world.run()
    assert isinstance(later, Ask)
    assert later.seq > proposal.seq, "not for what they will never have"
    world.having = (1, 3)
    assert isinstance(world.run(), Done)
    assert world.said == [Proposed, Gathering, Decided]


def test_the_same_before_a_part_is_established() -> None:
    world = a_world(established=False, having=(1,))
    probe = world.run()
    assert isinstance(probe, Ask)
    world.committing.answered(probe, (1,))
    later = world.committing.next(world.story.ledgers[0], ANNA)
    assert isinstance(later, Say)
    assert isinstance(later.statement, Gathering)


def test_what_could_not_be_said_is_said_again() -> None:
    world = a_world()
    ledger = world.story.ledgers[0]
    assert isinstance(world.committing.next(ledger, ANNA), Say)
    world.committing.unsaid(ledger)
    assert isinstance(world.committing.next(ledger, ANNA), Say)


def test_what_is_left_of_an_earlier_era_is_decided_by_whoever_comes_next() -> None:
    world = a_world()
    world.story.say(a_proposal(world.story.stage(a_label(app="gone", attempt=7)), app="gone", nonce=700))
    world.story.view(MEMBERS, before=MEMBERS)
    assert isinstance(world.run(), Done)
    assert len(world.story.decisions) == 2
