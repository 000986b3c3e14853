"""The check at the end of the demonstration finds what it is there to find."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_intergroup.demo.events import Seen
from pyspark_intergroup.demo.screen import batch_lines
from pyspark_intergroup.demo.verification import Evidence


def a_view(place: int, *members: str) -> Seen:
    return Seen("view", f"{place:04}", "", None, "", f"v{place}", members)


def a_record(place: int, sender: str, number: int, view: int) -> Seen:
    return Seen("data", f"{place:04}", sender, (sender, number, 0), f"{sender} {number}", f"v{view}")


ROWS = [
    a_view(1, "lima", "paris"),
    a_record(2, "paris", 1, 1),
    a_record(3, "lima", 1, 1),
    a_record(4, "lima", 2, 1),
    a_view(5, "paris"),
    a_record(6, "paris", 2, 5),
]
SOUND = Evidence(query=ROWS, witness=ROWS, acknowledged={"paris": ["paris 1", "paris 2"]}, killed="lima")


def test_what_is_as_promised_is_told_with_its_numbers() -> None:
    assert SOUND.complaints() == []
    assert SOUND.sentence().startswith("verified: all 2 records that paris got acknowledged")
    assert "its 6 rows, 2 view rows among them" in SOUND.sentence()


def test_a_witness_may_have_read_on() -> None:
    assert replace(SOUND, witness=[*ROWS, a_view(7)]).complaints() == []


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (ROWS[:-1], "'paris 2' was acknowledged and is not in the query's output"),
        ([*ROWS, a_record(7, "paris", 3, 5)], "'paris 3' is in the query's output and was never acknowledged"),
        ([*ROWS, ROWS[-1]], "'paris 2' is in the query's output twice"),
        ([*ROWS[:2], ROWS[3], ROWS[2], *ROWS[4:]], "the query has position 0003 behind 0004"),
        ([*ROWS[:2], *ROWS[3:]], "what is there of lima has a hole: lima 2"),
        ([*ROWS, a_record(7, "lima", 3, 5)], "'lima 3' stands in a view without lima"),
        ([*ROWS[:4], ROWS[5]], "no view row says that lima has gone"),
        ([*ROWS, Seen("gap", "0007", "", None, "", "")], "the query has a gap at 0007"),
    ],
)
def test_what_is_not_is_found(rows: list[Seen], complaint: str) -> None:
    assert complaint in replace(SOUND, query=rows, witness=rows).complaints()


def test_another_order_at_the_witness_is_found() -> None:
    other = [*ROWS[:2], ROWS[3], ROWS[2], *ROWS[4:]]
    (complaint,) = replace(SOUND, witness=other).complaints()
    assert complaint.startswith("row 2 is ")


def test_a_witness_that_read_less_is_found() -> None:
    assert replace(SOUND, witness=ROWS[:3]).complaints() == ["the query has 6 rows and the other reader only 3"]


def test_a_batch_is_shown_with_its_views_in_their_place() -> None:
    assert list(batch_lines(ROWS, ("lima",))) == [
        "    view  lima, paris   <- paris came",
        "    data  paris 1, lima 1, lima 2",
        "    view  paris   <- lima went",
        "    data  paris 2",
    ]
