from __future__ import annotations

import pytest

from intergroup_core.ids import ViewId
from intergroup_core.membership.quorum import MAX_PENDING, Pending, Quorum, QuorumRecord, newest
from tests.builders import START, A, a_view_id

FIVE = ("a", "b", "c", "d", "e")


def view(number: int) -> ViewId:
    return a_view_id(START + number, A, number)


def a_record(number: int | None = 1, sites: tuple[str, ...] = FIVE, *pending: Pending) -> QuorumRecord:
    return QuorumRecord(view(number) if number else None, frozenset(sites), pending)


def an_attempt(attempt: int, sites: str, after: int | None = 1) -> Pending:
    return Pending(attempt, view(after) if after else None, frozenset(sites))


def decides(rule: str, sites: str, *records: QuorumRecord) -> bool:
    return Quorum(rule).decide(records, sites)


# The rules


def test_without_a_rule_everybody_may_send() -> None:
    assert Quorum("none").may_send
    assert not Quorum("majority").may_send, "not before a primary view"


def test_the_first_view_ever_is_primary() -> None:
    assert decides("majority", "ab", QuorumRecord(), QuorumRecord())


@pytest.mark.parametrize(("sites", "primary"), [("abc", True), ("abcd", True), ("ab", False), ("de", False)])
def test_a_majority_of_the_last_primary_view_is_primary(sites: str, primary: bool) -> None:
    assert decides("majority", sites, a_record()) is primary


def test_half_is_no_majority() -> None:
    assert not decides("majority", "ab", a_record(1, ("a", "b", "c", "d")))


def test_strangers_do_not_make_a_majority() -> None:
    assert not decides("majority", "abxyz", a_record())


@pytest.mark.parametrize(("sites", "primary"), [("abcde", True), ("abcdex", True), ("abcd", False)])
def test_all_means_all_of_the_last_primary_view(sites: str, primary: bool) -> None:
    assert decides("all", sites, a_record()) is primary


def test_a_number_is_the_least_number_of_sites_on_top_of_a_majority() -> None:
    assert decides("3", "abc", a_record(1, ("a", "b", "c")))
    assert not decides("3", "ab", a_record(1, ("a", "b", "c")))
    assert not decides("3", "abc", QuorumRecord(view(1), frozenset("abcdefg")))
    assert not decides("3", "ab", QuorumRecord())


def test_members_of_one_site_count_once() -> None:
    assert not Quorum("majority").decide([a_record()], ["a", "a", "a"])


def test_the_newest_record_that_anybody_brings_counts() -> None:
    old, new = a_record(1, FIVE), a_record(2, ("a", "b", "c"))
    assert decides("majority", "ab", old, new)
    assert not decides("majority", "ade", old, new), "a majority of the older view only"


# Two would-be primaries


def test_both_sides_of_a_split_are_never_primary() -> None:
    sides = [("abc", "de"), ("ab", "cde"), ("abcd", "e")]
    for one, other in sides:
        assert decides("majority", one, a_record()) != decides("majority", other, a_record())


def test_a_view_that_may_have_become_primary_must_be_overruled_by_its_own_majority() -> None:
    """{a, b, c} of five were ready for a view and parted before they learned of it: c may have installed it.

    Then d and e, which know nothing of it, meet c: a majority of the five, but c's attempt may be primary elsewhere.
    """
    unsure = a_record(1, FIVE, an_attempt(7, "abc"))
    assert not decides("majority", "cde", unsure, a_record(), a_record())
    assert decides("majority", "bcde", unsure, unsure, a_record(), a_record())


def test_two_attempts_from_the_same_view_cannot_both_win() -> None:
    """Half of an attempt and half of the other: each side has a majority of the last view, not of both attempts."""
    one = a_record(1, FIVE, an_attempt(7, "abc"))
    two = a_record(1, FIVE, an_attempt(8, "cde"))
    both = a_record(1, FIVE, an_attempt(7, "abc"), an_attempt(8, "cde"))
    left = decides("majority", "abc", one, one, both)
    right = decides("majority", "cde", both, two, two)
    assert not (left and right)
    assert decides("majority", "abcde", one, both, two)


def test_an_attempt_before_the_newest_primary_view_is_settled() -> None:
    unsure = a_record(1, FIVE, an_attempt(7, "xyz", after=1))
    assert decides("majority", "ab", unsure, a_record(2, ("a", "b", "c")))


def test_an_attempt_after_the_newest_primary_view_is_not() -> None:
    unsure = a_record(2, ("a", "b", "c"), an_attempt(7, "xyz", after=2))
    assert not decides("majority", "ab", unsure, a_record(2, ("a", "b", "c")))


def test_attempts_at_the_very_first_view_count() -> None:
    unsure = QuorumRecord(None, frozenset(), (an_attempt(7, "abc", after=None),))
    assert not decides("majority", "a", unsure)
    assert decides("majority", "ab", unsure, QuorumRecord())


# What is remembered


def test_being_ready_is_remembered_until_the_outcome_is_known() -> None:
    quorum = Quorum("majority", a_record())
    quorum.attempting(7, view(1), "abc")
    assert quorum.record.pending == (an_attempt(7, "abc"),)
    quorum.attempting(7, view(1), "abc")
    assert len(quorum.record.pending) == 1, "said again"
    quorum.installed(view(2), "abc", primary=True, attempt=7)
    assert quorum.record == QuorumRecord(view(2), frozenset("abc"))
    assert quorum.primary
    assert quorum.may_send


def test_a_view_that_is_not_primary_settles_only_its_own_attempt() -> None:
    quorum = Quorum("majority", a_record(1, FIVE, an_attempt(6, "cde")))
    quorum.attempting(7, view(1), "ab")
    quorum.installed(view(2), "ab", primary=False, attempt=7)
    assert quorum.record == a_record(1, FIVE, an_attempt(6, "cde"))
    assert not quorum.may_send


def test_attempts_without_outcome_have_a_bound() -> None:
    quorum = Quorum("majority", a_record())
    for attempt in range(MAX_PENDING + 5):
        quorum.attempting(attempt, view(1), "abc")
    assert len(quorum.record.pending) == MAX_PENDING
    assert quorum.record.pending[-1].attempt == MAX_PENDING + 4


def test_after_a_full_restart_the_records_alone_form_the_next_primary_view() -> None:
    record = a_record(1, FIVE)
    saved = [record.to_bytes() for _ in FIVE]
    back = [QuorumRecord.from_bytes(body) for body in saved]
    assert all(found == record for found in back)
    known = [found for found in back if found is not None]
    assert Quorum("majority").decide(known[:3], "abc")
    assert not Quorum("majority").decide(known[:2], "ab")


def test_a_record_comes_back_as_it_was() -> None:
    record = a_record(3, ("oslo", "berlin"), an_attempt(7, "abc"), an_attempt(8, "x", after=None))
    assert QuorumRecord.from_bytes(record.to_bytes()) == record
    assert QuorumRecord.from_bytes(QuorumRecord().to_bytes()) == QuorumRecord()


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x90", b"\x94\x02\xc0\x90\x90", b"\x94\x01\xc0\x90", b"\x94\x01\x05\x90\x90"]
)
def test_bytes_that_are_no_record_are_none(body: bytes) -> None:
    assert QuorumRecord.from_bytes(body) is None


def test_a_record_with_any_byte_changed_is_read_without_raising() -> None:
    body = a_record(3, ("oslo", "berlin"), an_attempt(7, "abc")).to_bytes()
    for at in range(len(body)):
        for value in range(256):
            QuorumRecord.from_bytes(body[:at] + bytes([value]) + body[at + 1 :])


def test_the_newest_of_no_records_is_empty() -> None:
    assert newest([]) == newest([QuorumRecord()]) == QuorumRecord()
    assert newest([a_record(1), a_record(3), a_record(2)]).last == view(3)
