from __future__ import annotations

from collections.abc import Callable

import pytest

from intergroup_core.config import RepairConfig
from intergroup_core.multicast.adaptation import PATIENCE, AnswerTime, RepairAdaptation, RequestAdaptation


def a_request_window(*, low: float = 1.0, high: float = 5.0) -> RequestAdaptation:
    return RequestAdaptation(RepairConfig(request_low=low, request_high=high))


def a_repair_window(*, low: float = 5.0, high: float = 5.0) -> RepairAdaptation:
    return RepairAdaptation(RepairConfig(repair_low=low, repair_high=high))


def crowd(window: RequestAdaptation | RepairAdaptation, duplicates: int = 10) -> None:
    for _ in range(duplicates):
        if isinstance(window, RequestAdaptation):
            window.duplicate(1.0, of_mine_from_farther=False)
        else:
            window.duplicate(1.0)


def test_the_first_loss_finds_the_parameters_as_configured() -> None:
    window = a_request_window()
    window.noticed()
    assert (window.low, window.high) == (1.0, 5.0)


def test_asking_first_moves_the_start_of_the_interval_down() -> None:
    window = a_request_window()
    window.sent(1.0)
    assert window.low == pytest.approx(0.95)


def test_many_duplicate_requests_widen_the_interval() -> None:
    window = a_request_window()
    window.spared(1.0)
    crowd(window)
    window.noticed()
    assert (window.low, window.high) == (1.0, 5.5)


def test_many_duplicate_requests_start_it_later_too_where_delays_are_short() -> None:
    window = a_request_window()
    window.spared(0.1)
    crowd(window)
    window.noticed()
    assert (window.low, window.high) == pytest.approx((1.05, 5.5))


def test_few_duplicate_requests_narrow_the_interval_and_start_it_sooner_where_delays_are_long() -> None:
    short, long = a_request_window(), a_request_window()
    short.spared(0.1)
    long.spared(3.0)
    short.noticed()
    long.noticed()
    assert (short.low, short.high) == pytest.approx((1.0, 4.9))
    assert (long.low, long.high) == pytest.approx((0.95, 4.9))


def test_the_closest_requester_does_not_yield_to_those_behind_it() -> None:
    window = a_request_window()
    window.sent(1.0)
    for _ in range(10):
        window.duplicate(1.0, of_mine_from_farther=True)
    window.noticed()
    assert (window.low, window.high) == pytest.approx((0.9, 4.9))


def test_between_few_and_many_duplicates_nothing_moves() -> None:
    window = a_request_window()
    window.spared(0.1)
    window.duplicate(1.4, of_mine_from_farther=False)
    window.noticed()
    assert window.average_duplicates == pytest.approx(0.35)
    assert (window.low, window.high) == (1.0, 5.0)


def test_duplicates_are_averaged_per_loss() -> None:
    window = a_request_window()
    for _ in range(60):
        window.noticed()
        for _ in range(4):
            window.duplicate(0.25, of_mine_from_farther=False)
    assert window.average_duplicates == pytest.approx(1.0, abs=0.01)


def crowded_loss(window: RequestAdaptation) -> None:
    window.spared(0.1)
    crowd(window)
    window.noticed()


def lonely_loss(window: RequestAdaptation) -> None:
    window.sent(50.0)
    window.noticed()


@pytest.mark.parametrize(("loss", "low", "high"), [(crowded_loss, 2.0, 100.0), (lonely_loss, 0.5, 1.0)])
def test_request_parameters_stay_in_their_ranges(
    loss: Callable[[RequestAdaptation], None], low: float, high: float
) -> None:
    window = a_request_window()
    for _ in range(1_000):
        loss(window)
    assert (window.low, window.high) == (low, high)


def test_repairing_first_moves_the_start_of_the_interval_down() -> None:
    window = a_repair_window()
    window.sent(1.0)
    assert window.low == pytest.approx(4.95)


def test_many_duplicate_repairs_widen_the_interval_and_start_it_later() -> None:
    window = a_repair_window()
    window.cancelled(2.0)
    high = window.high
    crowd(window)
    window.scheduled()
    assert (window.low, window.high) == pytest.approx((5.1, high + 0.5))


def test_long_delays_without_duplicate_repairs_move_the_interval_down() -> None:
    window = a_repair_window()
    window.cancelled(3.0)
    assert (window.low, window.high) == pytest.approx((5.0, 4.95))
    window.scheduled()
    assert (window.low, window.high) == pytest.approx((4.95, 4.85))


def test_a_member_whose_repairs_are_never_needed_stays_ready() -> None:
    window = a_repair_window()
    for _ in range(1_000):
        window.scheduled()
        window.cancelled(0.1)
    assert (window.low, window.high) == (5.0, 5.0)


def test_early_cancellations_widen_the_interval_while_duplicates_are_not_few() -> None:
    window = a_repair_window()
    crowd(window)
    window.scheduled()
    window.cancelled(0.1)
    assert window.high == pytest.approx(5.1)


def test_repair_parameters_stay_in_their_ranges() -> None:
    up, down = a_repair_window(), a_repair_window()
    for _ in range(1_000):
        up.cancelled(0.1)
        crowd(up)
        up.scheduled()
        down.sent(50.0)
        down.scheduled()
    assert (up.low, up.high) == (10.0, 100.0)
    assert (down.low, down.high) == (0.5, 1.0)


def test_patience_follows_the_answers() -> None:
    answer = AnswerTime(RepairConfig())
    for _ in range(50):
        answer.took(10.0, ambiguous=False)
    assert answer.patience == pytest.approx(PATIENCE * 10.0, rel=0.01)


def test_an_answer_to_one_of_several_requests_is_believed_only_so_far() -> None:
    answer = AnswerTime(RepairConfig())
    before = answer.distances
    answer.took(1_000.0, ambiguous=True)
    assert before < answer.distances <= 1.5 * before
