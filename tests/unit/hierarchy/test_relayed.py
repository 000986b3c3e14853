"""Members that fell silent are waited for until the hierarchy has spoken of them."""

from __future__ import annotations

from intergroup_core.hierarchy.relayed import NO_BOUND, Relayed, Waits
from intergroup_core.ids import Timestamp
from intergroup_core.ports import Told
from intergroup_core.wire.messages import Report
from tests.builders import START, A, B, a_report

SECOND = 1_000_000_000
MARGIN = 2 * SECOND
ROOM = 64


def told(upto: int, at: int, room: int = 100) -> Told:
    return Told(upto=Timestamp(upto), members=50, room=room, slowest="far", at=at)


def said_by(member: int, acknowledged: int, serial: int = 1) -> Report:
    return a_report(member=member, acknowledged=acknowledged, serial=serial)


def test_where_everybody_reports_nothing_is_bound() -> None:
    relayed = Relayed(ROOM)
    assert (relayed.bound(), relayed.window(10), bool(relayed), relayed.any) == (NO_BOUND, NO_BOUND, False, False)


def test_one_that_falls_silent_binds_everything_until_the_hierarchy_speaks() -> None:
    relayed = Relayed(ROOM)
    assert relayed.falls_silent(said_by(A, START + 5), now=SECOND)
    assert (relayed.any, A in relayed, list(relayed.acknowledged())) == (True, True, [START + 5])
    assert (relayed.bound(), relayed.window(10)) == (0, 10 + ROOM)


def test_what_the_hierarchy_said_a_moment_after_may_be_older_and_frees_nobody() -> None:
    relayed = Relayed(ROOM)
    relayed.falls_silent(said_by(A, START + 5), now=SECOND)
    assert not relayed.told(told(START + 9, at=SECOND + MARGIN - 1), MARGIN)
    assert A in relayed
    assert relayed.told(told(START + 4, at=SECOND + MARGIN), MARGIN)
    assert A not in relayed
    assert (relayed.bound(), relayed.window(10)) == (START + 4, 110)


def test_saying_it_again_does_not_begin_the_wait_anew() -> None:
    relayed = Relayed(ROOM)
    relayed.falls_silent(said_by(A, START + 5, serial=1), now=SECOND)
    relayed.falls_silent(said_by(A, START + 8, serial=2), now=2 * SECOND)
    assert (list(relayed.acknowledged()), relayed.serial_of(A)) == ([START + 8], 2)
    assert relayed.told(told(START + 7, at=SECOND + MARGIN), MARGIN)


def test_one_that_reports_again_is_forgotten_but_others_may_still_be_silent() -> None:
    relayed = Relayed(ROOM)
    relayed.falls_silent(said_by(A, START), now=SECOND)
    assert relayed.forget(A)
    assert not relayed.forget(B)
    assert (bool(relayed), relayed.any) == (False, True)


def test_of_a_new_epoch_nothing_is_known_until_the_hierarchy_has_spoken_in_it() -> None:
    relayed = Relayed(ROOM)
    relayed.falls_silent(said_by(A, START), now=0)
    relayed.told(told(START + 9, at=MARGIN), MARGIN)
    relayed.enter(now=10 * SECOND)
    assert relayed.bound() == 0
    relayed.told(told(START + 11, at=10 * SECOND + MARGIN - 1), MARGIN)
    assert relayed.bound() == 0
    relayed.told(told(START + 12, at=10 * SECOND + MARGIN), MARGIN)
    assert relayed.bound() == START + 12


WAITS = Waits(margin=MARGIN, patience=10 * SECOND, notice=3 * SECOND)


def test_a_hierarchy_that_says_nothing_is_given_up_after_notice() -> None:
    relayed = Relayed(ROOM)
    relayed.falls_silent(said_by(A, START + 5), now=SECOND)
    relayed.told(told(START + 9, at=2 * SECOND), MARGIN)
    relayed.falls_silent(said_by(B, START + 5), now=2 * SECOND)
    assert not relayed.listen(WAITS, 12 * SECOND)
    assert (relayed.lost, relayed.binds) == (False, True)
    assert not relayed.listen(WAITS, 12 * SECOND + 1)
    assert (relayed.lost, relayed.binds) == (True, True)
    assert relayed.listen(WAITS, 15 * SECOND + 2)
    assert (relayed.lost, relayed.binds, relayed.bound(), relayed.window(1)) == (True, False, NO_BOUND, NO_BOUND)
    assert B not in relayed


def test_a_hierarchy_that_speaks_again_binds_at_once() -> None:
    relayed = Relayed(ROOM)
    relayed.falls_silent(said_by(A, START + 5), now=0)
    relayed.listen(WAITS, 0)
    relayed.listen(WAITS, 11 * SECOND)
    relayed.listen(WAITS, 15 * SECOND)
    assert not relayed.binds
    relayed.told(told(START + 20, at=16 * SECOND), MARGIN)
    relayed.listen(WAITS, 16 * SECOND)
    assert (relayed.lost, relayed.binds, relayed.bound()) == (False, True, START + 20)
