"""Up to where a stream may be planned: kept, and in `rto` never between two messages of one microsecond."""

from __future__ import annotations

import pytest

from intergroup_core.agent.levels import LOCAL, STABLE, Level, Wanted, read_level_of
from intergroup_core.agent.plannable import MAX_TAIL, Frontier, Heads
from intergroup_core.errors import LocalProtocolError
from intergroup_core.ids import COUNTER_BITS, MemberId, Service, Timestamp
from intergroup_core.log.cut import OrderCut, SourceCut
from tests.builders import A, B
from tests.log_builders import LOG, a_chunk, a_gap, an_install

NOW = 1_000
"""In microseconds."""


def at(microsecond: int, counter: int = 0) -> int:
    return (microsecond << COUNTER_BITS) + counter


def heads_of(service: Service, *timestamps: int) -> Heads:
    """After a view and a message at each timestamp, of two senders in turn."""
    heads = Heads(service, LOG)
    heads.appended(0, an_install(A, B, start=at(1)))
    for number, timestamp in enumerate(timestamps):
        heads.appended(number + 1, a_chunk(source=(A, B)[number % 2], seq=number + 1, timestamp=timestamp))
    return heads


def timestamp_of(heads: Heads, level: Wanted = STABLE) -> int | None:
    cut = heads.cut(level)
    assert cut is None or isinstance(cut, OrderCut)
    return None if cut is None else cut.timestamp


def test_there_is_no_head_before_something_is_kept() -> None:
    heads = heads_of(Service.RTO, at(5))
    heads.advance(0, Frontier(at(NOW), at(NOW)))
    assert heads.cut(LOCAL) is None


def test_what_is_kept_and_acknowledged_by_all_is_planned() -> None:
    heads = heads_of(Service.RTO, at(5), at(6))
    heads.advance(3, Frontier(at(NOW), at(NOW)))
    assert timestamp_of(heads) == at(6)


def test_the_levels_have_heads_of_their_own() -> None:
    heads = heads_of(Service.RTO, at(5), at(6))
    heads.advance(3, Frontier(at(NOW), at(6)))
    assert timestamp_of(heads, LOCAL) == at(6)
    assert timestamp_of(heads, STABLE) == at(5)
    assert not heads.waits(LOCAL)
    assert heads.waits(STABLE)


def test_a_microsecond_in_which_more_may_come_is_not_planned() -> None:
    heads = heads_of(Service.RTO, at(5), at(6, 1))
    heads.advance(3, Frontier(at(6, 4_000), at(6, 4_000)))
    assert timestamp_of(heads) == at(5)
    heads.advance(3, Frontier(at(7), at(7)))
    assert timestamp_of(heads) == at(6, 1)


def test_a_microsecond_is_planned_as_a_whole() -> None:
    heads = heads_of(Service.RTO, at(5), at(6, 1), at(6, 2))
    heads.advance(3, Frontier(at(NOW), at(NOW)))
    assert timestamp_of(heads) == at(5)
    heads.advance(4, Frontier(at(NOW), at(NOW)))
    assert timestamp_of(heads) == at(6, 2)


def test_nothing_more_comes_at_or_below_what_is_said() -> None:
    heads = heads_of(Service.RTO, at(5), at(9))
    heads.advance(2, Frontier(at(20), at(20, 7)))
    assert heads.upto(STABLE) == at(9) - 1  # the second message is not kept yet
    heads.advance(3, Frontier(at(20), at(20, 7)))
    assert heads.upto(STABLE) == at(20) - 1


@pytest.mark.parametrize("level", [LOCAL, Wanted(Level.MORE, 2)])
def test_in_rso_senders_promise_too_that_nothing_more_comes(level: Wanted) -> None:
    """Who takes what is there knows by that when it has everything."""
    heads = heads_of(Service.RSO, at(5), at(9))
    for kept, upto in ((2, at(9) - 1), (3, at(20))):
        heads.advance(kept, Frontier(at(20), at(4)))
        if level.counts_sites:
            heads.count(level, kept, Frontier(at(20), at(4)), lambda source, seq, timestamp: True)
        assert heads.upto(level) == upto


def test_a_gap_does_not_hold_up_what_came_before_it() -> None:
    heads = heads_of(Service.RTO, at(5))
    heads.appended(2, a_gap())
    heads.advance(3, Frontier(at(NOW), at(NOW)))
    assert timestamp_of(heads) == at(5)


def test_in_rso_nothing_is_promised_of_what_waits_behind_something_later() -> None:
    heads = heads_of(Service.RSO, at(60), at(90), at(50))
    heads.advance(4, Frontier(at(NOW), at(80)))
    assert heads.waits(STABLE)
    assert heads.upto(STABLE) < at(50)


def test_in_rso_a_head_is_where_each_sender_is() -> None:
    heads = heads_of(Service.RSO, at(5), at(6, 1), at(6, 2))
    heads.advance(3, Frontier(at(6, 1), at(6, 1)))
    cut = heads.cut(STABLE)
    assert isinstance(cut, SourceCut)
    assert cut.seqs == {A: 1, B: 2}


def test_in_rso_a_head_counts_what_was_sent_before_the_log_begins() -> None:
    """Its sender may have nothing to send any more."""
    heads = Heads(Service.RSO, LOG)
    heads.appended(0, an_install(A, B, start=at(1)), before=SourceCut({A: 7, B: 0}))
    heads.appended(1, a_chunk(source=B, seq=1, timestamp=at(5)))
    heads.advance(2, Frontier(at(NOW), at(NOW)))
    cut = heads.cut(STABLE)
    assert isinstance(cut, SourceCut)
    assert cut.seqs == {A: 7, B: 1}


# Levels that count sites

TWO_MORE = Wanted(Level.MORE, 2)
NEWS = Frontier(at(NOW), at(5))


def nobody(source: MemberId, seq: int, timestamp: int) -> bool:
    return False


def test_a_level_that_counts_sites_goes_as_far_as_they_have_everything() -> None:
    heads = heads_of(Service.RTO, at(5), at(6), at(7))
    heads.count(TWO_MORE, 4, NEWS, lambda source, seq, timestamp: seq != 2)
    assert timestamp_of(heads, TWO_MORE) == at(5)
    assert heads.spans(TWO_MORE, 4) == [(B, 2, 2), (A, 3, 3)]
    heads.count(TWO_MORE, 4, NEWS, lambda source, seq, timestamp: True)
    assert timestamp_of(heads, TWO_MORE) == at(7)
    assert heads.spans(TWO_MORE, 4) == []


def test_what_sites_have_and_this_one_has_not_kept_is_not_planned() -> None:
    heads = heads_of(Service.RTO, at(5), at(6))
    heads.count(TWO_MORE, 2, NEWS, lambda source, seq, timestamp: True)
    assert timestamp_of(heads, TWO_MORE) == at(5)


def test_a_level_that_is_asked_for_late_counts_what_came_before() -> None:
    heads = heads_of(Service.RTO, at(5), at(6))
    heads.advance(3, Frontier(at(NOW), at(NOW)))
    heads.count(TWO_MORE, 3, NEWS, nobody)
    assert timestamp_of(heads, TWO_MORE) == at(1)  # the view, which no site has to say that it has
    assert heads.spans(TWO_MORE, 3) == [(A, 1, 1), (B, 2, 2)]


def test_what_is_long_past_when_a_level_is_first_asked_for_counts_as_held() -> None:
    heads = heads_of(Service.RTO, *(at(10 + number) for number in range(MAX_TAIL + 3)))
    heads.count(TWO_MORE, MAX_TAIL + 10, NEWS, nobody)
    assert timestamp_of(heads, TWO_MORE) == at(12)


def test_what_lies_before_a_log_counts_once_everybody_has_it() -> None:
    heads = Heads(Service.RTO, LOG)
    heads.appended(0, an_install(A, B, start=at(1)), behind=OrderCut(Timestamp(at(5)), A, None))
    heads.count(TWO_MORE, 1, Frontier(at(NOW), at(4)), nobody)
    assert timestamp_of(heads, TWO_MORE) is None
    heads.count(TWO_MORE, 1, Frontier(at(NOW), at(5)), nobody)
    assert timestamp_of(heads, TWO_MORE) == at(5)


def test_in_rso_too_a_head_stops_before_what_too_few_have() -> None:
    heads = heads_of(Service.RSO, at(5), at(6), at(7))
    heads.count(TWO_MORE, 4, NEWS, lambda source, seq, timestamp: seq != 3)
    cut = heads.cut(TWO_MORE)
    assert isinstance(cut, SourceCut)
    assert (cut.seqs[A], cut.seqs[B]) == (1, 2)


@pytest.mark.parametrize(
    ("level", "holders", "needed"),
    [
        ("majority", {1}, 0),
        ("majority", {1, 2}, 1),
        ("majority", {1, 2, 3}, 1),
        ("majority", {1, 2, 3, 4}, 2),
        ("majority", {2, 3, 4}, 2),
        ("majority", set(), 0),
        ("k:2", {1}, 2),
        ("stable", {1, 2, 3}, 0),
    ],
)
def test_so_many_other_sites_must_have_something(level: str, holders: set[int], needed: int) -> None:
    assert read_level_of(level).others(holders, 1) == needed


def test_a_level_that_is_asked_for_never_passes_over_what_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intergroup_core.agent.plannable.MAX_WAITING", 3)
    heads = heads_of(Service.RTO, at(5), at(6))
    heads.count(TWO_MORE, 3, NEWS, nobody)
    for number in range(3, 6):
        heads.appended(number, a_chunk(source=A, seq=number, timestamp=at(10 + number)))
    with pytest.raises(LocalProtocolError, match="too few log-holding sites"):
        heads.count(TWO_MORE, 6, NEWS, nobody)
    heads.advance(6, Frontier(at(NOW), at(NOW)))
    assert timestamp_of(heads) == at(15)  # other levels go on
