"""Wrong traces of transactions, by the part of property 19 that each breaks; and a right one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from intergroup_core.ids import MemberId
from intergroup_core.sim.checkers.transactions import check_transactions
from intergroup_core.sim.transaction_trace import (
    Begun,
    Counts,
    Event,
    Met,
    Place,
    Proposal,
    Replayed,
    Stood,
    Told,
    TransactionTrace,
    Unended,
    Version,
    Visible,
)

A, B = MemberId(1), MemberId(2)
ONE: Version = ("query", 1)
PROPOSAL, OTHER = (A, 5), (B, 9)


def proposal(stream: MemberId, place: Place = PROPOSAL, *, taken: bool = True, version: Version = ONE) -> Proposal:
    return Proposal(1, stream, place, 50, version, ((A, 3, 4, 30),), taken)


def visible(stream: MemberId, place: Place = PROPOSAL, *, at: int = 60) -> Visible:
    return Visible(2, stream, place, at, A)


def counts(stream: MemberId, era: int, *committed: Version, candidates: tuple[Place, ...] = ()) -> Counts:
    return Counts(3, stream, era, frozenset(committed), frozenset(candidates))


def a_trace(*events: Event, rows: tuple[MemberId, ...] = (A, B)) -> TransactionTrace:
    begun: list[Event] = [Begun(0, stream, 10) for stream in (A, B)]
    return TransactionTrace([*begun, *events], {stream: {(A, 4): 0} for stream in rows})


def all_is_well() -> TransactionTrace:
    stood = [Stood(3, stream, "view", 60, A, 7) for stream in (A, B)]
    told = Told(4, "s1", ONE, 1)
    later = counts(B, 2, candidates=(PROPOSAL,))
    return a_trace(proposal(A), proposal(B), visible(A), visible(B), *stood, told, later, counts(B, 3, ONE))


def two_proposals_are_visible() -> TransactionTrace:
    return a_trace(proposal(A), proposal(B, OTHER), visible(A), visible(B, OTHER))


def visible_twice() -> TransactionTrace:
    return a_trace(proposal(A), visible(A), visible(A, at=80))


def what_nobody_proposed_is_visible() -> TransactionTrace:
    return a_trace(visible(A))


def ledgers_differ() -> TransactionTrace:
    return a_trace(Stood(1, A, "view", 60, A, 7), Stood(1, B, "view", 60, A, 8))


def not_visible_at_that_place() -> TransactionTrace:
    stood = [Stood(3, stream, "view", 60, A, 7) for stream in (A, B)]
    return a_trace(proposal(A), visible(A), *stood)


def what_was_told_is_unknown_later() -> TransactionTrace:
    return a_trace(proposal(A), visible(A), Told(4, "s1", ONE, 1), counts(B, 2))


def another_candidate_than_what_was_told() -> TransactionTrace:
    return a_trace(proposal(A), visible(A), Told(4, "s1", ONE, 1), counts(B, 2, candidates=(OTHER,)))


def nobody_has_what_was_told() -> TransactionTrace:
    return a_trace(proposal(A), Told(4, "s1", ONE, 1))


def committed_and_never_visible() -> TransactionTrace:
    return a_trace(proposal(A), proposal(B), visible(A), counts(B, 2, ONE))


def rows_are_missing() -> TransactionTrace:
    return a_trace(proposal(A), visible(A), rows=())


def rows_come_too_late() -> TransactionTrace:
    trace = a_trace(proposal(A), visible(A))
    trace.rows[A] = {(A, 4): 4}
    return trace


def it_does_not_end() -> TransactionTrace:
    return a_trace(Unended(9, "s1", ONE))


def a_reader_knows_something_else() -> TransactionTrace:
    return a_trace(Replayed(9, A, b"a", b"b", (), ()))


def a_reader_sees_something_else() -> TransactionTrace:
    return a_trace(Replayed(9, A, b"a", b"a", (), ((60, PROPOSAL),)))


WRONG: dict[Callable[[], TransactionTrace], str] = {
    two_proposals_are_visible: "19a one outcome",
    visible_twice: "19a one outcome",
    what_nobody_proposed_is_visible: "19a one outcome",
    ledgers_differ: "19b same ledger",
    not_visible_at_that_place: "19b same decisions",
    what_was_told_is_unknown_later: "19c nothing told is lost",
    another_candidate_than_what_was_told: "19c nothing told is lost",
    nobody_has_what_was_told: "19c what is told is visible",
    committed_and_never_visible: "19c what is told is visible",
    rows_are_missing: "19d rows come first",
    rows_come_too_late: "19d rows come first",
    it_does_not_end: "19e commits end",
    a_reader_knows_something_else: "19f replay",
    a_reader_sees_something_else: "19f replay",
}


@pytest.mark.parametrize("make", WRONG)
def test_a_wrong_trace_is_caught(make: Callable[[], TransactionTrace]) -> None:
    assert [violation.property for violation in check_transactions(make())] == [WRONG[make]]


def test_a_right_trace_is_not() -> None:
    assert check_transactions(all_is_well()) == []


def test_what_was_decided_on_another_branch_need_not_be_visible_here() -> None:
    met = Met(2, B, 70)
    assert check_transactions(a_trace(proposal(A), proposal(B), visible(A), met, counts(B, 2, ONE))) == []


def test_rows_before_a_stream_begins_are_not_in_it() -> None:
    trace = a_trace(proposal(A), visible(A), rows=())
    trace.events[0] = Begun(0, A, 40)
    assert check_transactions(trace) == []
