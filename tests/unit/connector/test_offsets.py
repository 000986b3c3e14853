"""Offsets: read as they were written, with one text each, and nothing of another query taken for them."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.errors import OffsetsUnusable
from intergroup_core.ids import MAX_TIMESTAMP, MemberId, Timestamp, ViewId
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.cut_codec import cut_fields
from intergroup_core.wire.header import MAX_SEQ
from pyspark_intergroup.offsets import Offsets, delivery_of

IDS = st.integers(0, (1 << 64) - 1)
MEMBERS = IDS.map(MemberId)
TIMESTAMPS = st.integers(0, MAX_TIMESTAMP).map(Timestamp)
VIEWS = st.none() | st.builds(ViewId, TIMESTAMPS, MEMBERS, IDS)
CUTS: st.SearchStrategy[Cut] = (
    st.builds(OrderCut, TIMESTAMPS, MEMBERS, VIEWS)
    | st.builds(SourceCut, st.dictionaries(MEMBERS, st.integers(0, MAX_SEQ), max_size=4), VIEWS)
    | st.builds(EntryCut, IDS, IDS)
)
NAMES = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=12)
OFFSETS = st.dictionaries(NAMES, CUTS, min_size=1, max_size=4).map(Offsets)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
CUT = OrderCut(7, MemberId(9))


def an_offset(*groups: str, cut: Cut = CUT) -> Offsets:
    return Offsets(dict.fromkeys(groups, cut))


@given(offsets=OFFSETS)
def test_offsets_are_read_as_they_were_written(offsets: Offsets) -> None:
    assert Offsets.of_json(offsets.to_json()) == offsets
    assert Offsets.of_json(offsets.to_text()) == offsets
    assert Offsets.of_json(json.dumps(offsets.to_json(), indent=2)) == offsets
    assert pickle.loads(pickle.dumps(offsets)) == offsets


@given(offsets=OFFSETS)
def test_equal_offsets_have_equal_text_whatever_order_they_came_in(offsets: Offsets) -> None:
    turned = Offsets(dict(reversed(offsets.cuts.items())))
    assert turned.to_text() == offsets.to_text()
    # Spark writes the dictionary that it gets, in the order of its keys.
    assert json.dumps(turned.to_json()) == json.dumps(offsets.to_json(), sort_keys=True)


@given(value=ANYTHING)
def test_anything_else_is_refused_and_raises_nothing_else(value: Any) -> None:
    for content in (value, json.dumps(value), {"version": 1, "groups": value}, {"version": 1, "groups": {"g": value}}):
        with pytest.raises(OffsetsUnusable):
            Offsets.of_json(content)


def test_offsets_are_a_mapping_of_cuts() -> None:
    offsets = an_offset("trades", "prices")
    assert list(offsets) == ["prices", "trades"]
    assert offsets["prices"] == CUT
    assert len(offsets) == 2
    assert offsets != an_offset("prices")


def test_what_offsets_were_made_from_can_change_without_them() -> None:
    cuts: dict[str, Cut] = {"prices": CUT}
    offsets = Offsets(cuts)
    cuts["trades"] = CUT
    assert list(offsets) == ["prices"]


def test_another_version_is_refused_by_its_number() -> None:
    with pytest.raises(OffsetsUnusable, match=r"offsets of version 2.*reads version 1.*begin a new one"):
        Offsets.of_json({"groups": {"prices": cut_fields(CUT)}, "version": 2})


def test_a_cut_of_another_version_is_refused_with_its_group() -> None:
    with pytest.raises(OffsetsUnusable, match=r"group 'prices'.*cut of version 9"):
        Offsets.of_json({"groups": {"prices": {**cut_fields(CUT), "version": 9}}, "version": 1})


def test_a_field_too_many_is_refused() -> None:
    with pytest.raises(OffsetsUnusable, match="another source"):
        Offsets.of_json({**an_offset("prices").to_json(), "more": 1})


@pytest.mark.parametrize("content", ["", "{", "[1]", "null", '{"prices": {"0": 5}}', "[" * 100_000])
def test_text_that_is_no_offset_is_refused(content: str) -> None:
    with pytest.raises(OffsetsUnusable, match="is not the offsets of an intergroup query"):
        Offsets.of_json(content)


def test_a_name_that_no_group_can_have_is_refused() -> None:
    with pytest.raises(OffsetsUnusable, match="printable"):
        Offsets.of_json(json.dumps({"groups": {"a\udc00": cut_fields(CUT)}, "version": 1}))


@pytest.mark.parametrize("groups", [["prices"], ["prices", "trades", "news"], ["prices", "news"]])
def test_offsets_of_other_groups_than_the_query_reads_are_refused(groups: list[str]) -> None:
    with pytest.raises(OffsetsUnusable) as refused:
        Offsets.of_json(an_offset("prices", "trades").to_json(), groups=groups)
    said = str(refused.value)
    assert "the offsets are of groups prices, trades and the query reads group" in said
    assert "intergroup offsets show" in said
    assert "checkpointLocation" in said


def test_offsets_of_the_groups_in_another_order_are_taken() -> None:
    offsets = an_offset("prices", "trades")
    assert Offsets.of_json(offsets.to_json(), groups=("trades", "prices"), delivery="rto") == offsets


def test_offsets_of_another_delivery_are_refused() -> None:
    with pytest.raises(OffsetsUnusable, match=r"group prices is one of uu and the query reads rto.*set delivery to uu"):
        Offsets.of_json(an_offset("prices", cut=EntryCut(1, 2)).to_json(), delivery="rto")


def test_every_cut_belongs_to_a_delivery() -> None:
    assert [delivery_of(cut) for cut in (CUT, SourceCut(), EntryCut(1, 2))] == ["rto", "rso", "uu"]
