"""A transaction far larger than a batch may be: whole, once, in as many partitions as were asked for."""

from __future__ import annotations

import numpy as np

from tests.integration.sites import sites
from tests.spark.large_transaction import MOST_ROWS, PARTITIONS, read_late

ROWS = 1_600_000
"""Enough for as many partitions: what came together is not divided."""


def test_a_site_that_came_when_rows_were_staged_gets_them_in_one_batch() -> None:
    with sites() as there:
        read = read_late(there, ROWS)
    assert np.array_equal(np.sort(read.numbers), np.arange(ROWS))
    assert max(read.batches) >= ROWS
    assert sum(rows > MOST_ROWS for rows in read.batches) == 1
    assert read.partitions >= PARTITIONS
