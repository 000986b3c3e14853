"""Offsets of queries, kept for ever: they lie in checkpoints for years, and Spark compares them as text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intergroup_core.ids import MemberId, Timestamp, ViewId
from intergroup_core.log.cut import EntryCut, OrderCut, SourceCut
from pyspark_intergroup.offsets import Offsets

FILES = Path(__file__).parent / "offsets"
ANNA, BERT = MemberId(0x0123_4567_89AB_CDEF), MemberId(0xFEDC_BA98_7654_3210)
TIMESTAMP = 0x0777_8888_9999_AAAA
VIEW = ViewId(Timestamp(TIMESTAMP), ANNA, 3)
OFFSETS = {
    "rto": Offsets({"trades": OrderCut(TIMESTAMP + 7, BERT, VIEW), "prices": OrderCut(TIMESTAMP, ANNA)}),
    "rso": Offsets({"prices": SourceCut({BERT: 1 << 40, ANNA: 9}, VIEW)}),
    "uu": Offsets({"Übung, 1": EntryCut(0x1122_3344_5566_7788, 70_000)}),
}


def test_everything_on_file_is_tried() -> None:
    assert {path.stem for path in FILES.iterdir()} == OFFSETS.keys()


@pytest.mark.parametrize("name", OFFSETS)
def test_offsets_are_what_is_on_file(name: str) -> None:
    on_file = (FILES / f"{name}.json").read_text().strip()
    assert OFFSETS[name].to_text() == on_file
    assert Offsets.of_json(on_file) == OFFSETS[name]
    # What Spark gets is the dictionary; its keys must come in this order, too.
    assert json.dumps(OFFSETS[name].to_json(), separators=(",", ":")) == on_file
