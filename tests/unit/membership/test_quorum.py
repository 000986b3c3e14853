from __future__ import annotations

import pytest

from intergroup_core.ids import ViewId
from intergroup_core.membership.quorum import MAX_PENDING, Pending, Quorum, QuorumRecord, key_of, newest, next_number
from intergroup_core.wire.fields import MAX_RECORD
from tests.builders import START, A
from tests.membership_builders import a_view_id

FIVE = "abcde"


def view(number: int) -> ViewId:
    return a_view_id(START + number, A, number)


def keys(sites: str) -> frozenset[int]:
    """A letter, a site."""
    return frozenset(map(key_of, sites))


def a_record(number: int = 1, sites: str = FIVE, *pending: Pending) -> QuorumRecord:
    return QuorumRecord(view(number), number, keys(sites), pending)


def an_attempt(attempt: int, sites: str, number: int = 2) -> Pending:
    return Pending(attempt, number, keys(sites))


def decides(rule: str, sites: str, *records: QuorumRecord) -> bool:
    return Quorum(rule).decide(records, keys(sites))


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
    assert not decides("majority", "ab", a_record(1, "abcd"))


def test_strangers_do_not_make_a_majority() -> None:
    assert not decides("majority", "abxyz", a_record())


@pytest.mark.parametrize(("sites", "primary"), [("abcde", True), ("abcdex", True), ("abcd", False)])
def test_all_means_all_of_the_last_primary_view(sites: str, primary: bool) -> None:
    assert decides("all", sites, a_record()) is primary


def test_a_number_is_the_least_number_of_sites_on_top_of_a_majority() -> None:
    assert decides("3", "abc", a_record(1, "abc"))
    assert not decides("3", "ab", a_record(1, "abc"))
    assert not decides("3", "abc", a_record(1, "abcdefg"))
    assert not decides("3", "ab", QuorumRecord())


def test_members_of_one_site_count_once() -> None:
    assert not Quorum("majority").decide([a_record()], [key_of("a")] * 3)


def test_the_newest_record_that_anybody_brings_counts() -> None:
    old, new = a_record(1, FIVE), a_record(2, "abc")
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
    unsure = a_record(1, FIVE, an_attempt(7, "xyz", number=2))
    assert decides("majority", "ab", unsure, a_record(3, "abc"))


def test_an_attempt_after_the_newest_primary_view_is_not() -> None:
    unsure = a_record(2, "abc", an_attempt(7, "xyz", number=3))
    assert not decides("majority", "ab", unsure, a_record(2, "abc"))


def test_attempts_at_the_very_first_view_count() -> None:
    unsure = QuorumRecord(pending=(an_attempt(7, "abc", number=1),))
    assert not decides("majority", "a", unsure)
    assert decides("majority", "ab", unsure, QuorumRecord())


# What is remembered


def test_being_ready_is_remembered_until_the_outcome_is_known() -> None:
    quorum = Quorum("majority", a_record())
    quorum.attempting(7, 2, keys("abc"))
    assert quorum.record.pending == (an_attempt(7, "abc"),)
    quorum.attempting(7, 2, keys("abc"))
    assert len(quorum.record.pending) == 1, "said again"
    quorum.installed(view(2), 2, keys("abc"), primary=True)
    assert quorum.record == a_record(2, "abc")
    assert quorum.primary
    assert quorum.may_send


def test_an_attempt_that_came_to_nothing_is_forgotten_alone() -> None:
    quorum = Quorum("majority", a_record(1, FIVE, an_attempt(6, "cde")))
    quorum.attempting(7, 3, keys("ab"))
    quorum.installed(view(2), 3, keys("ab"), primary=False)
    quorum.abandoned(7)
    assert quorum.record == a_record(1, FIVE, an_attempt(6, "cde"))
    assert not quorum.may_send


def test_a_view_learned_late_settles_nothing_that_was_attempted_after_it() -> None:
    """All five were ready for A, then three for B without the others; one of the three learns of A only."""
    quorum = Quorum("majority", a_record())
    quorum.attempting(7, 2, keys(FIVE))
    quorum.attempting(8, 3, keys("cde"))
    quorum.installed(view(2), 2, keys(FIVE), primary=True)
    assert not quorum.primary, "B may be primary by now"
    known = quorum.record
    assert not decides("majority", "abe", a_record(2), a_record(2), known), "two would-be primaries"
    assert decides("majority", "cd", a_record(3, "cde"), a_record(3, "cde"))


def test_a_late_view_does_not_replace_a_later_one() -> None:
    quorum = Quorum("majority", a_record(3, "abc"))
    quorum.installed(view(2), 2, keys(FIVE), primary=True)
    assert quorum.record == a_record(3, "abc")


def test_numbers_go_up_from_all_that_anybody_remembers() -> None:
    assert next_number([]) == 1
    assert next_number([a_record(4), a_record(1, FIVE, an_attempt(7, "abc", number=6))]) == 7


def test_attempts_without_outcome_have_a_bound() -> None:
    quorum = Quorum("majority", a_record())
    for attempt in range(MAX_PENDING + 5):
        quorum.attempting(attempt, 2 + attempt, keys("abc"))
    assert len(quorum.record.pending) == MAX_PENDING
    assert quorum.record.pending[-1].attempt == MAX_PENDING + 4


def test_a_record_of_many_sites_and_attempts_still_fits_its_message() -> None:
    many = frozenset(key_of(f"site {index}") for index in range(256))
    quorum = Quorum("majority", QuorumRecord(view(1), 1, many))
    for attempt in range(MAX_PENDING):
        quorum.attempting(attempt, 2 + attempt, many)
    saved = quorum.record.to_bytes()
    assert len(saved) <= MAX_RECORD
    found = QuorumRecord.from_bytes(saved)
    assert found is not None
    assert found.pending[-1].attempt == MAX_PENDING - 1, "the newest are kept"


def test_after_a_full_restart_the_records_alone_form_the_next_primary_view() -> None:
    record = a_record(1, FIVE)
    saved = [record.to_bytes() for _ in FIVE]
    back = [QuorumRecord.from_bytes(body) for body in saved]
    assert all(found == record for found in back)
    known = [found for found in back if found is not None]
    assert decides("majority", "abc", *known[:3])
    assert not decides("majority", "ab", *known[:2])


def test_a_record_comes_back_as_it_was() -> None:
    record = a_record(3, "ob", an_attempt(7, "abc"), an_attempt(8, "x", number=9))
    assert QuorumRecord.from_bytes(record.to_bytes()) == record
    assert QuorumRecord.from_bytes(QuorumRecord().to_bytes()) == QuorumRecord()


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x90", b"\x95\x02\xc0\x00\x90\x90", b"\x95\x01\xc0\x00\x90", b"\x95\x01\x05\x00\x90\x90"]
)
def test_bytes_that_are_no_record_are_none(body: bytes) -> None:
    assert QuorumRecord.from_bytes(body) is None


def test_a_record_with_any_byte_changed_is_read_without_raising() -> None:
    body = a_record(3, "ob", an_attempt(7, "abc")).to_bytes()
    for at in range(len(body)):
        for value in range(256):
            QuorumRecord.from_bytes(body[:at] + bytes([value]) + body[at + 1 :])


def test_the_newest_of_no_records_is_empty() -> None:
    assert newest([]) == newest([QuorumRecord()]) == QuorumRecord()
    assert newest([a_record(1), a_record(3), a_record(2)]).last == view(3)
