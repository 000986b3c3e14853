"""The sparse index: it points close enough, and tells when it is damaged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.ids import Timestamp, ViewId
from intergroup_core.log.entry import EntryHeader, Kind
from intergroup_core.log.index import POINT_BYTES, IndexBuilder, SegmentIndex, unpacked_index
from tests.builders import A, B

FIRST = 40


def a_segment(entries: list[tuple[int, int, int]]) -> tuple[SegmentIndex, list[EntryHeader], list[int]]:
    """Data entries as (source, payload bytes, timestamp step); their headers and offsets."""
    builder = IndexBuilder(FIRST, highest=10)
    headers: list[EntryHeader] = []
    offsets: list[int] = []
    seqs: dict[int, int] = {}
    timestamp = 10
    for number, (source, size, step) in enumerate(entries):
        timestamp += step
        seq = seqs.get(source, 1)
        seqs[source] = seq + 3
        blank = dict.fromkeys(EntryHeader._fields, 0)
        header = EntryHeader(
            **blank
            | {
                "kind": int(Kind.DATA),
                "entry": FIRST + number,
                "payload_bytes": size,
                "source": source,
                "first_seq": seq,
                "last_seq": seq + 2,
                "first_timestamp": timestamp,
                "last_timestamp": timestamp,
                "messages": 1,
                "records": 4,
            }
        )
        offsets.append(builder.size)
        builder.add(header, builder.size)
        headers.append(header)
    return builder.index(), headers, offsets


segments = st.lists(
    st.tuples(st.sampled_from((A, B)), st.sampled_from((8, 800, POINT_BYTES // 3, POINT_BYTES)), st.integers(0, 5)),
    min_size=1,
    max_size=40,
)


@given(segments)
def test_points_are_before_what_is_looked_for_and_not_far(entries: list[tuple[int, int, int]]) -> None:
    index, headers, offsets = a_segment(entries)
    for header, offset in zip(headers, offsets, strict=True):
        found = index.point_of_entry(header.entry)
        assert found <= offset
        assert offset - found < 2 * POINT_BYTES
        entry = index.point_of_message(header.source, header.last_seq)
        assert entry is not None
        assert entry <= header.entry
        between = [each for each in headers if entry < each.entry < header.entry and each.source == header.source]
        assert sum(each.size for each in between) < POINT_BYTES
        start, _ = index.point_of_timestamp(header.first_timestamp)
        assert all(each.last_timestamp < header.first_timestamp for each in headers if each.entry < start)
    assert index.point_of_message(A, headers[-1].last_seq + 10_000) is None
    assert index.point_of_message(12345, 1) is None


@given(segments, st.integers(0, 10_000), st.integers(0, 7))
def test_an_index_is_read_as_written_or_not_at_all(entries: list[tuple[int, int, int]], offset: int, bit: int) -> None:
    index, headers, _ = a_segment(entries)
    packed = index.packed()
    read = unpacked_index(packed)
    assert read is not None
    assert read.packed() == packed
    assert (read.totals.entries, read.totals.records) == (len(headers), 4 * len(headers))
    damaged = bytearray(packed)
    damaged[offset % len(packed)] ^= 1 << bit
    assert unpacked_index(bytes(damaged)) is None
    assert unpacked_index(packed[:-3]) is None
    assert unpacked_index(b"") is None


def test_views_are_listed_with_their_ids() -> None:
    builder = IndexBuilder(0)
    blank = EntryHeader(**dict.fromkeys(EntryHeader._fields, 0))
    view = ViewId(Timestamp(5), A, 3)
    builder.add(blank._replace(kind=Kind.VIEW, flags=1), 0, view)
    builder.add(blank._replace(kind=Kind.GAP, entry=1), 200)
    builder.add(blank._replace(kind=Kind.VIEW, entry=2), 400, view)
    index = unpacked_index(builder.index().packed())
    assert index is not None
    assert index.view_places() == [(0, 0, view, False), (400, 2, view, True)]
    assert index.gaps.tolist() == [(200, 1)]
