"""What a control process keeps of others."""

from __future__ import annotations

import pytest

from intergroup_core.hierarchy.peers import Known, Peers, is_newer
from intergroup_core.wire.exchange import CLOCK_MASK, MAX_ROUND_TRIP_US, clock_at
from tests.hierarchy_builders import CHIEF, MS, OTHER, THIRD, S, T, clock


def test_clocks_compare_across_their_wrap() -> None:
    assert is_newer(5, CLOCK_MASK - 5)
    assert not is_newer(CLOCK_MASK - 5, 5)
    assert not is_newer(7, 7)
    assert clock_at((1 << 32) * 1_000 + 3_000) == 3


def test_a_message_is_heard_once_and_an_older_one_not_at_all() -> None:
    peers = Peers(10)
    assert peers.heard(OTHER, 100, 2, T)
    assert not peers.heard(OTHER, 100, 2, T + S)
    assert not peers.heard(OTHER, 99, 2, T + S)
    assert peers.heard(OTHER, 101, None, T + S)
    known = peers.get(OTHER)
    assert known is not None
    assert (known.clock, known.received_at, known.hops) == (101, T + S, 2)


def test_the_distance_is_half_of_what_the_round_trip_took_on_the_way() -> None:
    peers = Peers(10)
    peers.heard(OTHER, 1, 2, T)
    peers.echoed(OTHER, (clock(T), 30_000), T + 50 * MS)
    known = peers.get(OTHER)
    assert known is not None
    assert known.distance_us == 10_000


def test_nonsense_gives_no_distance() -> None:
    peers = Peers(10)
    peers.heard(OTHER, 1, 2, T)
    peers.echoed(OTHER, (clock(T), 60_000), T + 50 * MS)
    peers.echoed(OTHER, (clock(T), 0), T + (MAX_ROUND_TRIP_US + 1) * 1_000)
    known = peers.get(OTHER)
    assert known is not None
    assert known.distance_us is None


def test_one_late_answer_does_not_move_a_distance_far() -> None:
    known = Known(T)
    known.sample(20_000)
    known.sample(10_000_000)
    assert known.distance_us is not None
    assert known.distance_us < 11_000
    for _ in range(100):
        known.sample(60_000)
    assert known.distance_us == pytest.approx(30_000, rel=0.05)


def test_echoes_come_in_turns_and_only_of_those_that_were_heard() -> None:
    peers = Peers(10)
    peers.mentioned(THIRD, T)
    for number in range(1, 5):
        peers.heard(OTHER + number, number, 1, T)
    first = peers.echoes(2, T + MS)
    second = peers.echoes(2, T + MS)
    assert len(first) == len(second) == 2
    assert not first.keys() & second.keys()
    assert THIRD not in first.keys() | second.keys()
    assert set(first.values()) <= {(number, 1_000) for number in range(1, 5)}


def test_who_is_not_heard_of_is_silent_unless_this_site_stood_still() -> None:
    peers = Peers(10)
    peers.heard(OTHER, 1, 1, T)
    peers.heard(CHIEF, 1, 1, T)
    peers.mentioned(CHIEF, T + 2 * S)
    assert peers.silent(S, T + 2 * S) == [OTHER]
    peers.excuse(2 * S)
    assert peers.silent(S, T + 2 * S) == []


def test_a_full_table_takes_nobody() -> None:
    peers = Peers(1)
    assert peers.heard(OTHER, 1, 1, T)
    assert not peers.heard(THIRD, 1, 1, T)
    peers.mentioned(THIRD, T)
    assert len(peers) == 1
