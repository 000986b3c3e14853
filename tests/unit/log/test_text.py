"""Text of fixed width, made of numbers by the column."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.api.events import position
from intergroup_core.log.text import hex_digits, positions

numbers = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20)


@given(numbers)
def test_digits_are_those_that_python_prints(values: list[int]) -> None:
    rows = hex_digits(np.array(values, dtype=np.uint64), 16)
    assert [row.tobytes().decode() for row in rows] == [f"{value:016x}" for value in values]


@given(st.lists(st.tuples(*[st.integers(0, 2**63 - 1)] * 3, st.integers(0, 5)), min_size=1, max_size=10))
def test_positions_are_those_of_a_live_stream(messages: list[tuple[int, int, int, int]]) -> None:
    places, senders, seqs = (np.array([each[at] for each in messages], dtype=np.uint64) for at in range(3))
    counts = np.array([each[3] for each in messages], dtype=np.int64)
    records = np.array([record for each in messages for record in range(each[3])], dtype=np.int32)
    text = positions(places, senders, seqs, counts, records)
    expected = [position(*each[:3], record) for each in messages for record in range(each[3])]
    assert [row.tobytes().decode() for row in text] == expected
