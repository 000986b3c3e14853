"""Reads with options."""

from __future__ import annotations

from intergroup_core.ids import MemberId, Timestamp, ViewId
from intergroup_core.log.cut import OrderCut
from pyspark_intergroup.options import ReadOptions

CUT = OrderCut(7, MemberId(9))
VIEW = ViewId(Timestamp(0x0777_8888_9999_AAAA), MemberId(0x0123_4567_89AB_CDEF), 3)


def a_stream(**options: str) -> ReadOptions:
    return ReadOptions.of({"group": "prices"} | options, streaming=True)


def a_batch(**options: str) -> ReadOptions:
    return ReadOptions.of({"group": "prices"} | options, streaming=False)


def a_decoded(*columns: str, streaming: bool = True, **options: str) -> ReadOptions:
    """A read with a schema of a user's own."""
    return ReadOptions.of(
        {"group": "prices"} | options, streaming=streaming, schema_given=True, user_columns=columns or ("price",)
    )
