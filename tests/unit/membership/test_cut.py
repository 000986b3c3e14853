from __future__ import annotations

from intergroup_core.ids import MAX_TIMESTAMP
from intergroup_core.membership.cut import ending_of
from tests.builders import START, A, B, C, R, S
from tests.membership_builders import a_recovery_info


def test_without_failures_everything_of_the_survivors_is_kept() -> None:
    end = ending_of([a_recovery_info(A, last_seq=7), a_recovery_info(B, last_seq=0)])
    assert (end.bound, end.failed) == (MAX_TIMESTAMP, frozenset())
    assert end.targets == {A: 7, B: 0}


def test_the_best_of_what_survivors_have_of_a_failed_sender_counts() -> None:
    end = ending_of(
        [
            a_recovery_info(A, last_seq=1, failed=[(C, 5, START + 50)]),
            a_recovery_info(B, last_seq=2, failed=[(C, 8, START + 40)]),
        ]
    )
    assert end.targets == {A: 1, B: 2, C: 8}
    assert end.bound == START + 50
    assert end.failed == {C}


def test_the_least_of_the_failed_senders_promises_bounds_all_of_them() -> None:
    end = ending_of([a_recovery_info(A, failed=[(B, 5, START + 50), (C, 9, START + 20)])])
    assert end.bound == START + 20
    assert end.failed == {B, C}


def test_a_message_that_depends_on_a_lost_one_is_cut_off() -> None:
    """M4's causal hole: S delivered F's m and sent m'; R got m' only; F and S crash.

    R knows F up to a promise below m, so m' lies above the bound and goes with m.
    """
    f, s = B, C
    m, m_prime = START + 100, START + 120
    end = ending_of([a_recovery_info(R, failed=[(f, 0, START + 90), (s, 1, m_prime)])])
    assert end.bound == START + 90
    assert end.bound < m < m_prime


def test_what_anybody_delivered_is_never_cut() -> None:
    """A delivered up to 80 because B and C had promised that to it; that another knows less of them changes nothing."""
    delivered = START + 80
    end = ending_of(
        [
            a_recovery_info(A, failed=[(B, 8, delivered), (C, 3, delivered + 5)]),
            a_recovery_info(R, failed=[(B, 2, START + 10), (C, 1, START + 12)]),
        ]
    )
    assert end.bound == delivered
    assert end.targets[B] == 8


def test_a_sender_that_left_and_that_one_survivor_still_waits_for_is_kept_to_its_end() -> None:
    end = ending_of(
        [
            a_recovery_info(A, failed=[(C, 9, MAX_TIMESTAMP), (S, 4, START + 70)]),
            a_recovery_info(B, failed=[(C, 6, START + 30), (S, 4, START + 60)]),
        ]
    )
    assert (end.targets[C], end.bound) == (9, START + 70)


def test_the_last_change_that_took_effect_anywhere_is_known() -> None:
    end = ending_of([a_recovery_info(A, changed=START + 5), a_recovery_info(B, changed=START + 3)])
    assert end.changed == START + 5
