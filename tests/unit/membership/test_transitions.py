"""The table of steps is what docs/protocol.md draws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from intergroup_core.membership.states import State
from intergroup_core.membership.transitions import DRAWN, NAMES, RESTARTS, drawn, restarted

PAGE = Path(__file__).parents[3] / "docs" / "protocol.md"


def test_every_step_is_drawn_with_its_reason() -> None:
    drawing = PAGE.read_text().split("stateDiagram-v2", 1)[1].split("```", 1)[0]
    steps = re.findall(r"^ +(\w+) --> (\w+): (.+)$", drawing, re.MULTILINE)
    table = [
        ((before.value if isinstance(before, State) else before).replace(" ", "_"), after.value.replace(" ", "_"), why)
        for before, after, why in DRAWN
    ]
    assert steps == table


def test_no_step_is_drawn_twice_and_every_state_can_be_reached() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert {after for _, after, _ in DRAWN} == set(State)


def test_counts_are_brought_to_the_steps_of_the_drawing() -> None:
    counts = {"sender>consensus: join": 2, "sender>consensus: failure": 3, "gather cut>sender: installed": 1}
    found = drawn(counts)
    assert found["sender>consensus"] == 5
    assert found["repair>sender"] == 1
    assert sum(found.values()) == 6


def test_a_step_that_is_not_drawn_is_not_counted_silently() -> None:
    with pytest.raises(KeyError):
        drawn({"left>sender: a miracle": 1})
    with pytest.raises(KeyError):
        restarted({"recovery: a whim": 1})


def test_restarts_are_added_up_by_reason() -> None:
    assert restarted({"recovery: join": 1, "gather cut: join": 2}) == dict.fromkeys(RESTARTS, 0) | {"join": 3}
