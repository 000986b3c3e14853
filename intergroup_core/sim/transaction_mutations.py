"""Bugs planted on purpose in the rules of transactions, one at a time: scenarios and checkers have to catch them."""

from __future__ import annotations

from typing import Any

from intergroup_core.agent.held import Held
from intergroup_core.sim.mutations import Planting, Wrong, registry
from intergroup_core.transaction import transactions as transactions_module
from intergroup_core.transaction.committing import Ask
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.transactions import Application, Transactions

TRANSACTION_PLANTINGS: dict[str, Planting] = {}
"""Every planted bug: what it replaces, and how."""

_bug = registry(TRANSACTION_PLANTINGS)


# Majorities


@_bug(transactions_module, "is_majority")
def any_site_is_a_majority(right: Wrong) -> Wrong:
    return lambda sites, electorate: bool(electorate.intersection(sites))


@_bug(Transactions, "electorate")
def whoever_holds_the_log_votes(right: Wrong) -> Wrong:
    return lambda self, timestamp, holders: frozenset(holders.at(timestamp))


@_bug(Transactions, "electorate_of")
def the_old_voters_are_enough(right: Wrong) -> Wrong:
    return lambda self, pending, timestamp, holders: frozenset(self.voters)


@_bug(Transactions, "propose")
def voters_change_with_a_proposal(right: Wrong) -> Wrong:
    def wrong(self: Any, stated: Any, timestamp: int, sender: Any, seq: int, holders: Any) -> Any:
        self.voters, self.voters_since = frozenset(holders.at(timestamp)), timestamp
        return right(self, stated, timestamp, sender, seq, holders)

    return wrong


@_bug(transactions_module, "_still")
def silence_takes_the_vote(right: Wrong) -> Wrong:
    def wrong(voters: Any, since: int, holders: Any) -> Any:
        now = max((word.said for word in holders), default=0)
        return frozenset(site for site in right(voters, since, holders) if site in holders.at(now))

    return wrong


@_bug(transactions_module, "_still")
def who_comes_back_votes_as_before(right: Wrong) -> Wrong:
    def wrong(voters: Any, since: int, holders: Any) -> Any:
        return frozenset(site for site in voters if (word := holders.word_on(site)) is None or word.holds)

    return wrong


@_bug(Held, "within")
def sites_answer_before_they_have_stated_what_they_know(right: Wrong) -> Wrong:
    def wrong(self: Any, spans: Any) -> Any:
        self.withheld = lambda: False
        return right(self, spans)

    return wrong


# Rounds


@_bug(Transactions, "gather")
def nobody_is_asked_what_it_knows(right: Wrong) -> Wrong:
    def wrong(self: Any, timestamp: int) -> bool:
        if right(self, timestamp):
            self.awaiting = frozenset()
            self._settle(timestamp)
        return False

    return wrong


@_bug(Transactions, "_heard_from")
def the_first_answer_is_enough(right: Wrong) -> Wrong:
    return lambda self, members, timestamp: right(
        self, self.awaiting if members & self.awaiting else members, timestamp
    )


@_bug(Transactions, "restated")
def old_answers_count(right: Wrong) -> Wrong:
    def wrong(self: Any, other: Any, *rest: Any) -> Any:
        other.gathered = self.gathered
        return right(self, other, *rest)

    return wrong


@_bug(Transactions, "_settle")
def nothing_is_promised(right: Wrong) -> Wrong:
    def wrong(self: Any, timestamp: int) -> None:
        self.settled = timestamp
        self.promised = max(self.promised, self.era + 1) if len(self.members) > 1 else self.promised

    return wrong


@_bug(Transactions, "establish")
def candidates_need_no_majority_in_a_new_era(right: Wrong) -> Wrong:
    def wrong(self: Any, *rest: Any) -> Any:
        accepted = {key: app.pending.accepted for key, app in self.applications.items() if app.pending is not None}
        verdict = right(self, *rest)
        for key, place in accepted.items():
            self.applications[key].pending = self.applications[key].pending._replace(accepted=place)
        return verdict

    return wrong


@_bug(Transactions, "merge")
def eras_of_candidates_do_not_matter(right: Wrong) -> Wrong:
    def wrong(self: Any, other: Any, *rest: Any) -> Any:
        mine, theirs = self.era, other.era
        self.era = other.era = max(mine, theirs)
        return right(self, other, *rest)

    return wrong


@_bug(Transactions, "merge")
def candidates_are_lost_where_parts_meet(right: Wrong) -> Wrong:
    def wrong(self: Any, other: Any, *rest: Any) -> Any:
        for application in other.applications.values():
            application.pending = None
        return right(self, other, *rest)

    return wrong


@_bug(Transactions, "has_decided")
def what_others_saw_decided_is_not_shown(right: Wrong) -> Wrong:
    return lambda self, app, pending: False


@_bug(Ledger, "carries")
def candidates_are_not_said_again(right: Wrong) -> Wrong:
    return lambda self: []


# Rows and runs


@_bug(Transactions, "_holds")
def the_floor_is_ignored(right: Wrong) -> Wrong:
    def wrong(self: Any, staged: Any) -> bool:
        return bool(self.reach.get(staged.sender, (0, 0))[0] >= staged.last_seq)

    return wrong


@_bug(Ledger, "remembered")
def rows_of_other_streams_count(right: Wrong) -> Wrong:
    def wrong(self: Any) -> bytes:
        packed: bytes = self.to_bytes()
        return packed

    return wrong


@_bug(Application, "is_newest")
def runs_have_no_order(right: Wrong) -> Wrong:
    return lambda self, run: True


@_bug(Transactions, "is_committed")
def what_was_committed_is_forgotten(right: Wrong) -> Wrong:
    return lambda self, app, version: False


@_bug(Ask, "is_answered_by")
def no_answer_is_waited_for(right: Wrong) -> Wrong:
    return lambda self, sites: True
