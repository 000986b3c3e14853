"""Moments as microseconds since 1970, which is what Spark and Arrow count."""

from __future__ import annotations

from datetime import UTC, datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros_of(moment: datetime) -> int:
    """Exact; a moment without an offset is taken as UTC."""
    elapsed = (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment) - _EPOCH
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds


def iso_micros(text: str) -> int:
    """Of ISO 8601; raises ValueError for anything else."""
    return micros_of(datetime.fromisoformat(text))
