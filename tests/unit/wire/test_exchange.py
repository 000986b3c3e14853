"""What a repair says of the request it answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.ids import MemberId
from intergroup_core.wire.exchange import CLOCK_MASK, MAX_HELD_US, MAX_ROUND_TRIP_US, Exchange, Repair, clock_at
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.records import Payload
from intergroup_core.wire.run import Run
from tests.builders import START, A, B, a_view, parsed

MILLISECOND = 1_000_000
TAG = 0x1234
ASKED_AT = 77 * MILLISECOND
MAKER = FrameMaker(TAG, A, a_view().id.tag, 128)


def some_runs() -> list[Run]:
    return MAKER.message(Payload(b"", bytes(900)), 1, START).runs


def repaired_by(sender: MemberId, exchange: Exchange | None) -> tuple[bytes, int]:
    (run,) = some_runs()
    data, segment = FrameMaker(TAG, sender, a_view().id.tag, 128).repairs(run.frames, exchange)
    return bytes(data), segment


@given(st.integers(1, CLOCK_MASK), st.integers(0, CLOCK_MASK), st.integers(0, MAX_HELD_US))
def test_it_comes_back_as_it_was(asker: int, clock: int, held: int) -> None:
    exchange = Exchange(asker, clock, held)
    assert Exchange.unpacked(*exchange.packed()) == exchange


def test_a_repair_that_answers_nobody_in_particular_says_so() -> None:
    assert Exchange.unpacked(0, 0) is None


def test_the_time_that_the_answer_waited_is_left_out() -> None:
    exchange = Exchange.of(B, clock_at(ASKED_AT), 30 * MILLISECOND)
    assert exchange.round_trip_us(B, ASKED_AT + 42 * MILLISECOND) == 12_000


def test_somebody_elses_request_measures_nothing_here() -> None:
    exchange = Exchange.of(B, clock_at(ASKED_AT), 0)
    assert exchange.round_trip_us(A, ASKED_AT + MILLISECOND) is None


def test_the_clock_may_wrap_on_the_way() -> None:
    before = 1_000 * (CLOCK_MASK - 5)
    exchange = Exchange.of(B, clock_at(before), 0)
    assert exchange.round_trip_us(B, before + MILLISECOND) == 1_000


def test_what_cannot_be_is_not_believed() -> None:
    early = Exchange.of(B, clock_at(ASKED_AT), 30 * MILLISECOND)
    assert early.round_trip_us(B, ASKED_AT + 29 * MILLISECOND) is None
    late = Exchange.of(B, clock_at(ASKED_AT), 0)
    assert late.round_trip_us(B, ASKED_AT + 1_000 * (MAX_ROUND_TRIP_US + 1)) is None


def test_a_run_of_repairs_tells_who_sent_it_and_what_it_answers() -> None:
    exchange = Exchange.of(MemberId(0xABCDEF0123456789), 5, 7_000)
    data, segment = repaired_by(B, exchange)
    (run,) = parsed((data, segment), group=TAG)
    assert isinstance(run, Run)
    assert run.repair == Repair(B, Exchange(0x23456789, 5, 7))
    (single,) = parsed((data[:segment], segment), group=TAG)
    assert isinstance(single, Run)
    assert single.repair == run.repair


def test_repairs_of_different_answers_in_one_buffer_measure_nothing() -> None:
    (first, segment), (second, _) = (repaired_by(B, Exchange.of(A, clock, 0)) for clock in (5, 6))
    for run in parsed((first + second, segment), group=TAG):
        assert isinstance(run, Run)
        assert run.repair == Repair(B, None)
