"""Acknowledgments on their way through the hierarchy."""

from __future__ import annotations

from intergroup_core.hierarchy.acknowledgments import Gathering, Ledger, furthest, least
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.wire.hierarchy import CutKey, LocalControl, Reach
from tests.hierarchy_builders import CHIEF, KEY, OTHER, SECOND_KEY, THIRD, S, T, acks, an_lcon


def test_the_least_is_taken_group_by_group_and_names_the_slowest() -> None:
    found = least([acks(9, KEY, slowest=CHIEF), acks(5, KEY, SECOND_KEY, slowest=THIRD), {}])
    assert (found[KEY].upto, found[KEY].members, found[KEY].slowest) == (5, 2, THIRD)
    assert (found[SECOND_KEY].upto, found[SECOND_KEY].members) == (5, 1)


def test_the_furthest_of_a_cut_is_taken() -> None:
    key = CutKey(7, 1, MemberId(3))
    low, high = Reach(4, Timestamp(90)), Reach(5, Timestamp(80))
    assert furthest([{key: low}, {key: high}, {}]) == {key: high}


def test_what_a_site_that_is_gone_said_last_counts_for_a_grace() -> None:
    ledger = Ledger()
    ledger.put(OTHER, acks(5))
    ledger.keep(OTHER, T + S)
    ledger.expire(T + S - 1)
    assert [table[KEY].upto for table in ledger.tables()] == [5]
    assert [(table[KEY].upto, table[KEY].members) for table in ledger.kept()] == [(5, 0)]
    ledger.expire(T + S)
    assert len(ledger) == 0


def test_who_comes_back_within_the_grace_is_kept() -> None:
    ledger = Ledger()
    ledger.put(OTHER, acks(5))
    ledger.keep(OTHER, T + S)
    ledger.put(OTHER, acks(6))
    ledger.expire(T + 2 * S)
    assert [table[KEY].upto for table in ledger.tables()] == [6]


def test_a_version_changes_with_what_it_stands_for_and_only_then() -> None:
    ledger = Ledger()
    ledger.put(OTHER, acks(5))
    version = ledger.version
    ledger.put(OTHER, acks(5))
    assert ledger.version == version
    ledger.keep(OTHER, T)
    ledger.expire(T)
    assert ledger.version != version


def test_parts_are_put_together_in_any_order() -> None:
    gathering: Gathering[LocalControl] = Gathering()
    first = an_lcon(parts=2, name="x", acknowledgments=acks(5, KEY))
    second = an_lcon(parts=2, part=1, acknowledgments=acks(6, SECOND_KEY))
    assert gathering.add(second) is None
    whole = gathering.add(first)
    assert whole is not None
    assert whole.first is first
    assert whole.acknowledgments == acks(5, KEY) | acks(6, SECOND_KEY)


def test_a_late_part_of_an_older_message_does_not_disturb_a_newer_one() -> None:
    gathering: Gathering[LocalControl] = Gathering()
    old = [an_lcon(sent=T, parts=2, part=part) for part in range(2)]
    new = [an_lcon(sent=T + S, parts=2, part=part) for part in range(2)]
    assert gathering.add(new[0]) is None
    assert gathering.add(old[1]) is None
    whole = gathering.add(new[1])
    assert whole is not None
    assert whole.first is new[0]
