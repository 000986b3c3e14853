"""Figures of several rounds: medians, and shares taken within a round."""

from __future__ import annotations

import pytest

from intergroup_core.benchmarks.figures import Case, middle_of


def a_case(value: float, ceiling: float, name: str = "a case", **details: float) -> Case:
    return Case(name=name, value=value, unit="MB/s", ceiling=ceiling, details=dict(details))


def test_one_round_stays_as_it_is() -> None:
    only = a_case(100.0, 400.0, requests=3)
    assert middle_of([only]) == only


def test_several_rounds_give_their_medians_and_their_range() -> None:
    rounds = [a_case(90.0, 500.0, requests=1), a_case(300.0, 400.0, requests=2), a_case(100.0, 300.0, requests=3)]
    found = middle_of(rounds)
    assert (found.value, found.ceiling) == (100.0, 400.0)
    assert found.details == {"requests": 3, "rounds": 3, "lowest": 90.0, "highest": 300.0}


def test_a_share_is_taken_round_by_round() -> None:
    """A slow minute meets both cases; medians of each alone would compare different minutes."""
    base = [a_case(100.0, 200.0, "one sender, rto"), a_case(50.0, 100.0, "one sender, rto"), a_case(80.0, 160.0)]
    found = middle_of([a_case(60.0, 300.0), a_case(30.0, 150.0), a_case(40.0, 160.0)], base)
    assert found.details["share_of_one_sender"] == pytest.approx(0.6)
    assert found.details["ratio_to_its_ratio"] == pytest.approx(0.4)
