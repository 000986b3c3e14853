from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.ids import (
    COUNTER_BITS,
    EPOCH_US,
    MAX_TIMESTAMP,
    NO_TIMESTAMP,
    Instant,
    MemberId,
    Service,
    Timestamp,
    View,
    ViewId,
    format_member,
    group_tag,
    timestamp_at,
    timestamp_span,
    wall_us,
)

IN_2026_NS = 1_780_000_000_123_456_789


def a_view_id(*, start: int = 7, leader: int = 1, leader_seq: int = 0) -> ViewId:
    return ViewId(Timestamp(start), MemberId(leader), leader_seq)


def test_timestamps_count_from_2020() -> None:
    start = datetime(2020, 1, 1, tzinfo=UTC)
    assert round(start.timestamp() * 1_000_000) == EPOCH_US
    assert timestamp_at(EPOCH_US * 1_000) == NO_TIMESTAMP


def test_a_clock_before_2020_gives_the_least_timestamp() -> None:
    assert timestamp_at(0) == NO_TIMESTAMP


def test_a_timestamp_is_the_least_of_its_microsecond() -> None:
    timestamp = timestamp_at(IN_2026_NS)
    assert timestamp % (1 << COUNTER_BITS) == 0
    assert wall_us(timestamp) == IN_2026_NS // 1_000


def test_counting_within_a_microsecond_keeps_the_wall_time() -> None:
    timestamp = timestamp_at(IN_2026_NS)
    last = Timestamp(timestamp + (1 << COUNTER_BITS) - 1)
    assert wall_us(last) == wall_us(timestamp)
    assert wall_us(Timestamp(last + 1)) == wall_us(timestamp) + 1


@given(st.integers(EPOCH_US * 1_000, EPOCH_US * 1_000 + 10**18), st.integers(0, 10**12))
def test_timestamps_follow_the_clock(wall_ns: int, later_ns: int) -> None:
    assert timestamp_at(wall_ns) <= timestamp_at(wall_ns + later_ns)
    assert timestamp_at(wall_ns + later_ns) - timestamp_at(wall_ns) >= timestamp_span(later_ns)


def test_a_timestamp_fits_a_signed_long_until_the_year_2090() -> None:
    year_2090_ns = round(datetime(2090, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000_000
    assert timestamp_at(year_2090_ns) < MAX_TIMESTAMP == (1 << 63) - 1


def test_a_span_is_in_timestamp_units() -> None:
    assert timestamp_span(1_000) == 1 << COUNTER_BITS
    assert timestamp_span(999) == 0


def test_views_order_by_start_then_leader_then_sequence() -> None:
    ordered = [
        a_view_id(start=1, leader=9, leader_seq=9),
        a_view_id(start=2, leader=1, leader_seq=9),
        a_view_id(start=2, leader=2, leader_seq=0),
        a_view_id(start=2, leader=2, leader_seq=1),
    ]
    assert sorted(ordered[place] for place in (2, 0, 3, 1)) == ordered


def test_a_view_tag_is_32_bits_and_tells_near_views_apart() -> None:
    views = [
        a_view_id(start=start, leader=leader, leader_seq=seq) for start in (1, 2) for leader in (1, 2) for seq in (0, 1)
    ]
    tags = {view.tag for view in views}
    assert len(tags) == len(views)
    assert all(0 <= tag < 1 << 32 for tag in tags)


def test_tags_never_change() -> None:
    assert a_view_id(start=0x0123, leader=0xABC, leader_seq=5).tag == 0xBCDB04D6
    assert group_tag("prices") == 0xBA73862F99EC64A8


def test_group_tags_are_64_bits_and_depend_on_the_whole_name() -> None:
    names = ["prices", "price", "Prices", "prices ", "", "prix-é"]
    tags = {group_tag(name) for name in names}
    assert len(tags) == len(names)
    assert all(0 <= tag < 1 << 64 for tag in tags)


def test_ids_print_as_sixteen_hex_digits() -> None:
    assert format_member(MemberId(0xBEEF)) == "000000000000beef"
    assert format_member(MemberId((1 << 64) - 1)) == "f" * 16
    assert str(a_view_id(start=1, leader=2, leader_seq=255)) == "0000000000000001-0000000000000002-ff"


def test_values_cannot_be_changed() -> None:
    view = View(id=a_view_id(), members=(MemberId(1),))
    with pytest.raises(AttributeError):
        view.members = ()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Instant(1, 2).mono = 3  # type: ignore[misc]


def test_services_are_named_as_users_write_them() -> None:
    assert [Service(name) for name in ("uu", "rso", "rto")] == [Service.UU, Service.RSO, Service.RTO]
