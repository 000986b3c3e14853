"""What clients say to an agent of transactions: rows in messages that the group takes."""

from __future__ import annotations

import numpy as np
import pytest

from intergroup_core.client.staging import plain_rows, stage_bodies
from intergroup_core.config import Config
from intergroup_core.errors import MessageTooLarge
from intergroup_core.wire.records import Rows


def sizes_of(rows: Rows, config: Config) -> list[tuple[int, int]]:
    """Bytes and rows of each message."""
    bodies = list(stage_bodies(1, "prices", None, rows, config))
    return [(len(content), count) for _, messages in bodies for content, count in messages]


@pytest.mark.parametrize("columns", [1, 3])
def test_many_tiny_rows_go_in_messages_that_the_group_takes(columns: int) -> None:
    config = Config.from_mapping({"group": {"max_message_bytes": 4_000}})
    values = plain_rows([b"x"] * 5_000).values
    rows = Rows(values) if columns == 1 else Rows(values, values, np.zeros(5_000, dtype=bool), values)
    sizes = sizes_of(rows, config)
    assert sum(count for _, count in sizes) == 5_000
    assert max(size for size, _ in sizes) <= 4_000 + 100
    assert len(sizes) > 1


def test_a_row_that_is_too_large_is_named_before_anything_goes() -> None:
    config = Config.from_mapping({"group": {"max_message_bytes": 4_000}})
    with pytest.raises(MessageTooLarge, match="row 2 has 4001 bytes; group prices takes at most 4000"):
        next(stage_bodies(1, "prices", None, plain_rows([b"", b"x" * 10, b"x" * 4_001]), config))
