"""Cuts and descriptions of ranges: read as they were written, and everything else refused."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.errors import LogFormat, RangeMalformed
from intergroup_core.ids import MAX_TIMESTAMP, MemberId, Timestamp, ViewId
from intergroup_core.log.chain import Chain, Described
from intergroup_core.log.chain_codec import described_of_list, listed_described
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.cut_codec import cut_fields, cut_of_fields, cut_of_list, cut_of_text, cut_text, listed_cut
from intergroup_core.wire.header import MAX_SEQ

IDS = st.integers(0, (1 << 64) - 1)
MEMBERS = IDS.map(MemberId)
TIMESTAMPS = st.integers(0, MAX_TIMESTAMP)
SEQS = st.integers(0, MAX_SEQ)
VIEWS = st.none() | st.builds(ViewId, TIMESTAMPS.map(Timestamp), MEMBERS, IDS)
ORDER_CUTS = st.builds(OrderCut, TIMESTAMPS, MEMBERS, VIEWS)
SOURCE_CUTS = st.builds(SourceCut, st.dictionaries(MEMBERS, SEQS, max_size=5), VIEWS)
ENTRY_CUTS = st.builds(EntryCut, IDS, IDS)
CUTS: st.SearchStrategy[Cut] = ORDER_CUTS | SOURCE_CUTS | ENTRY_CUTS
ENDS = st.none() | st.tuples(MEMBERS, SEQS)
CHAINS = st.builds(Chain, first=ENDS, last=ENDS, messages=IDS, frames=IDS, digest=IDS)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 65) | st.text(max_size=20) | st.binary(max_size=9) | st.floats(),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=9), inner, max_size=5),
    max_leaves=25,
)
REFUSED = (RangeMalformed, LogFormat)


@st.composite
def descriptions(draw: st.DrawFn) -> Described:
    services: list[st.SearchStrategy[Cut]] = [ORDER_CUTS, SOURCE_CUTS, ENTRY_CUTS]
    ends = draw(st.sampled_from(services))
    views = tuple(draw(st.lists(TEXTS, max_size=3)))
    by_source = ends is SOURCE_CUTS
    return Described(
        start=draw(ends),
        stop=draw(ends),
        views=views,
        gaps=tuple(draw(st.lists(st.tuples(st.integers(0, len(views)), TEXTS), max_size=2))),
        views_digest=draw(IDS),
        whole=None if by_source else draw(CHAINS),
        sources=draw(st.dictionaries(MEMBERS, CHAINS, max_size=3)) if by_source else {},
    )


@given(cut=CUTS)
def test_a_cut_is_read_as_it_was_written(cut: Cut) -> None:
    assert cut_of_list(msgpack.unpackb(msgpack.packb(listed_cut(cut)))) == cut
    assert cut_of_fields(json.loads(json.dumps(cut_fields(cut)))) == cut
    assert cut_of_text(cut_text(cut)) == cut
    assert cut_text(cut_of_text(cut_text(cut))) == cut_text(cut)


@given(seqs=st.dictionaries(MEMBERS, SEQS, min_size=2, max_size=5))
def test_the_same_cut_is_written_the_same_whatever_order_its_senders_came_in(seqs: dict[MemberId, int]) -> None:
    turned = SourceCut(dict(reversed(seqs.items())))
    assert cut_text(turned) == cut_text(SourceCut(seqs))
    assert listed_cut(turned) == listed_cut(SourceCut(seqs))


@given(described=descriptions())
def test_a_description_is_read_as_it_was_written(described: Described) -> None:
    assert described_of_list(msgpack.unpackb(msgpack.packb(listed_described(described)))) == described


@given(value=ANYTHING)
def test_anything_else_is_refused_and_raises_nothing_else(value: Any) -> None:
    for read in (cut_of_list, cut_of_fields, cut_of_text, described_of_list):
        with pytest.raises(REFUSED):
            read(value)


@given(cut=CUTS, data=st.data())
def test_a_cut_with_something_else_in_one_of_its_places_is_another_cut_or_refused(
    cut: Cut, data: st.DataObject
) -> None:
    listed, fields = listed_cut(cut), cut_fields(cut)
    listed[data.draw(st.integers(0, len(listed) - 1))] = data.draw(ANYTHING)
    fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(ANYTHING)
    with suppress(*REFUSED):
        assert listed_cut(cut_of_list(listed)) == listed
    with suppress(*REFUSED):
        assert cut_fields(cut_of_fields(fields)) == fields


@given(described=descriptions(), data=st.data())
def test_a_description_with_something_else_in_one_of_its_places_is_another_or_refused(
    described: Described, data: st.DataObject
) -> None:
    listed = listed_described(described)
    listed[data.draw(st.integers(0, len(listed) - 1))] = data.draw(ANYTHING)
    with suppress(*REFUSED):
        assert listed_described(described_of_list(listed)) == listed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 10_000,
        '{"version":1,"service":"rto"}',
        '{"version":true,"service":"uu","log":"0000000000000001","entry":1}',
        '{"version":1,"service":"uu","log":"000000000000000A","entry":1}',
        '{"version":1,"service":"uu","log":"0000000000000001","entry":1,"more":1}',
        '{"version":1,"service":"uu","log":"0000000000000001","entry":-1}',
        '{"version":1,"service":"rso","seqs":{"1":1},"view":null}',
        '{"version":1,"service":"rto","timestamp":"ffffffffffffffff","sender":"0000000000000001","view":null}',
        '{"version":1,"service":"rto","timestamp":"0000000000000001","sender":"0000000000000001","view":"1-2-3"}',
        '{"version":1,"service":"uu","log":"0000000000000001","entry":' + "9" * 5_000 + "}",
    ],
)
def test_what_is_not_an_offset_says_so(text: str) -> None:
    with pytest.raises(RangeMalformed, match="; fetch it again"):
        cut_of_text(text)


def test_another_version_is_named() -> None:
    with pytest.raises(LogFormat, match="a cut of version 7, and this version of intergroup reads version 1"):
        cut_of_text('{"version":7}')
    with pytest.raises(LogFormat, match="version 2"):
        cut_of_list([2, "whatever"])
    with pytest.raises(LogFormat, match="is described in version 9"):
        described_of_list([9])


def test_parts_of_two_services_are_no_description() -> None:
    chain = [None, None, 0, 0, 0]
    order, source = listed_cut(OrderCut(1, MemberId(1))), listed_cut(SourceCut({MemberId(1): 4}))
    for listed in (
        [1, order, source, [], [], 0, chain, []],
        [1, order, order, [], [], 0, None, []],
        [1, source, source, [], [], 0, chain, []],
        [1, order, order, [], [], 0, chain, [[1, chain]]],
        [1, order, order, [], [[1, "behind"]], 0, chain, []],
    ):
        with pytest.raises(RangeMalformed):
            described_of_list(listed)
