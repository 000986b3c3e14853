"""Durations, sizes and moments in options."""

from __future__ import annotations

import pytest

from intergroup_core.errors import ConfigError
from pyspark_intergroup.points import AtTime
from tests.unit.connector.reads import a_stream


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30.0), ("1.5", 1.5), ("30s", 30.0), ("5m", 300.0), ("2 min", 120.0), ("24H", 86_400.0), ("250us", 0.00025)],
)
def test_durations(text: str, seconds: float) -> None:
    assert a_stream(fetchTimeout=text).fetch_timeout_s == seconds


@pytest.mark.parametrize("text", ["0", "-1", "5 weeks", "m", "1e3", "inf", "nan", "9" * 18, "1..2", "٣s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^fetchTimeout is .*; it must be a duration, such as 500ms, 30s, 5m, 24h or"
    ):
        a_stream(fetchTimeout=text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("1048576", 1 << 20), ("64m", 64 << 20), ("1g", 1 << 30), ("1.5KB", 1_536), ("2 t", 2 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert a_stream(maxBytesPerTrigger=text).max_bytes_per_trigger == size


@pytest.mark.parametrize("text", ["0", "-5", "0.3b", "5x", "g", "9" * 18 + "g"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^maxBytesPerTrigger is .*; it must be a number of bytes from 1 on, such as 64m"
    ):
        a_stream(maxBytesPerTrigger=text)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0", 0),
        ("1700000000123", 1_700_000_000_123_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000_000),
        ("2023-11-14 22:13:20.000001", 1_700_000_000_000_001),
        ("2023-11-15T00:13:20+02:00", 1_700_000_000_000_000),
        ("2023-11-14", 1_699_920_000_000_000),
        ("9999-12-31T23:59:59.999999", 253_402_300_799_999_999),
    ],
)
def test_moments(text: str, micros: int) -> None:
    assert a_stream(startingTimestamp=text).starting == AtTime(micros)


@pytest.mark.parametrize(
    "text", ["yesterday", "-5", "1969-12-31T23:59:59Z", "9" * 15, "9" * 5_000, "0001-01-01T00:00+23:59", "1.5"]
)
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^startingTimestamp is .*; it must be milliseconds since 1970 or ISO 8601"):
        a_stream(startingTimestamp=text)
