"""How a range is divided among tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_intergroup import slicing
from pyspark_intergroup.slice import LogSlice
from pyspark_intergroup.slicing import SliceSizes
from tests.builders import START, A
from tests.log_builders import a_chunk, an_install
from tests.unit.connector.replay_logs import a_stored_log, read_options, rows_in, slices_of

RECORD = b"r" * 1_000


def ten_messages(directory: Path) -> Path:
    messages = [a_chunk(RECORD, seq=number, timestamp=START + number) for number in range(1, 11)]
    return a_stored_log(directory, [an_install(A), *messages])


@pytest.mark.parametrize("wanted", [2, 3, 5])
def test_as_many_slices_as_are_wanted_and_no_small_one_behind_them(tmp_path: Path, wanted: int) -> None:
    slices = slices_of(ten_messages(tmp_path / "log"), minPartitions=str(wanted))

    assert len(slices) == wanted
    messages = [each.rows for each in slices if isinstance(each, LogSlice)]
    assert max(messages) - min(messages) <= 2  # one of them has the view too


def test_a_range_of_several_full_slices_has_the_same_number_for_each_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slicing, "SLICE_BYTES", 4_500)
    path = ten_messages(tmp_path / "log")

    slices = slices_of(path, minPartitions="2")

    assert len(slices) == 4
    rows = rows_in(read_options(path), slices)
    assert [row["seq"] for row in rows if row["kind"] == "data"] == list(range(1, 11))


def test_rows_of_a_slice_have_their_own_limit(tmp_path: Path) -> None:
    slices = slices_of(ten_messages(tmp_path / "log"), maxRowsPerPartition="3")

    assert [each.rows for each in slices if isinstance(each, LogSlice)] == [3, 3, 3, 2]


def test_one_slice_where_all_fits() -> None:
    assert SliceSizes().most_bytes(1_000) == 1_000
    assert SliceSizes(least=4).most_bytes(1_001) == 251
    assert SliceSizes(least=2).most_bytes(2 * slicing.SLICE_BYTES + 2) == slicing.SLICE_BYTES // 2 + 1
