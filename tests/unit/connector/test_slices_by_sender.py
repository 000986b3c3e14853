"""Ranges of `rso` among tasks: the same rows whoever reads them, and of views and gaps one of each."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intergroup_core.ids import MemberId, Service
from intergroup_core.log.arrow import ArrowRows
from intergroup_core.log.cut import Cut, SourceCut
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.stream import StreamReader
from intergroup_core.sim.disk import SimDisk
from pyspark_intergroup.slice import LogSlice
from pyspark_intergroup.slicing import Slicer, SliceSizes
from tests.builders import GROUP, START, A, B, C
from tests.log_builders import Row, a_chunk, a_gap, a_history, an_install
from tests.unit.connector.replay_logs import a_stored_log, read_options, replayed, rows_in
from tests.unit.log.stream_parts import a_part, fetched
from tests.unit.log.test_transfer import cuts_of

RECORD = b"r" * 1_000
OLD, NEW = an_install(A, B, C), an_install(A, B, C, start=START + 100)


def of_all(seq: int, timestamp: int) -> list[Delivered]:
    """A message of each sender."""
    return [a_chunk(RECORD, source=each, seq=seq, timestamp=timestamp + at) for at, each in enumerate((A, B, C))]


def slices_of(reader: StreamReader, start: Cut, stop: Cut, least: int = 1) -> list[LogSlice]:
    return Slicer(GROUP, Service.RSO, (), SliceSizes(least=least)).slices(reader, start, stop)


def rows_of(wanted: LogSlice, disks: list[SimDisk], directory: Path) -> list[Row]:
    """What a task makes of its slice on a machine with these logs."""
    parts = [stored(disk, directory / str(number)) for number, disk in enumerate(disks)]
    return rows_in(read_options(directory), [replace(wanted, parts=tuple(str(part) for part in parts))])


def stored(disk: SimDisk, directory: Path) -> Path:
    directory.mkdir(parents=True)
    for name in disk.names():
        (directory / name).write_bytes(disk.map(name, 0, disk.size(name)))
    return directory


@pytest.mark.parametrize("wanted", [1, 2, 3])
def test_a_gap_is_one_row_of_however_many_senders_it_skipped_something(tmp_path: Path, wanted: int) -> None:
    history = [OLD, *of_all(1, START + 10), a_gap(), NEW, *of_all(5, START + 110)]
    path = a_stored_log(tmp_path / "log", history, service=Service.RSO)

    rows = replayed(path, minPartitions=str(wanted), failOnDataLoss="false")

    assert sorted(row["kind"] for row in rows) == ["data"] * 6 + ["gap", "view"]


def test_a_gap_is_a_row_also_where_only_a_view_says_that_something_was_skipped(tmp_path: Path) -> None:
    """Of carl, who said nothing since; the slices are of others' messages."""
    later = an_install(A, B, start=START + 200, before=((C, 3),))
    history = [
        OLD,
        *of_all(1, START + 10),
        a_gap(),
        NEW,
        *of_all(5, START + 110)[:2],
        later,
        *of_all(6, START + 210)[:2],
    ]
    disk = a_part(history, 1, Service.RSO)
    start, stop = SourceCut({A: 5, B: 5, C: 1}, NEW.view.id), SourceCut({A: 6, B: 6}, later.view.id)

    slices = slices_of(StreamReader([disk]), start, stop, least=2)

    rows = [rows_of(each, [disk], tmp_path / str(number)) for number, each in enumerate(slices)]
    assert [[row["kind"] for row in each] for each in rows] == [["gap", "view", "data"], ["data"]]


def test_a_gap_that_two_logs_have_is_one_row(tmp_path: Path) -> None:
    source = StreamReader(
        [a_part([OLD, *of_all(1, START + 10), a_gap(), NEW, *of_all(5, START + 110)], 1, Service.RSO)]
    )
    start, middle, stop = (
        SourceCut(dict.fromkeys((A, B, C), seq), view.view.id) for seq, view in ((0, OLD), (1, NEW), (5, NEW))
    )
    disks = [fetched(source, start, middle, 2), fetched(source, middle, stop, 3)]

    (wanted,) = slices_of(StreamReader(disks), start, stop)

    kinds = [row["kind"] for row in rows_of(wanted, disks, tmp_path)]
    assert kinds == ["data"] * 3 + ["gap", "view"] + ["data"] * 3


@pytest.mark.parametrize("least", [1, 3])
def test_rows_that_a_task_fetched_are_those_of_the_log_that_was_planned(tmp_path: Path, least: int) -> None:
    """Also of one who is gone where the range ends: they have its name, and the view in which they came."""
    views = [an_install(A, B, start=START + 200), an_install(A, start=START + 300), an_install(A, start=START + 400)]
    disk = a_part([OLD, *of_all(1, START + 10), *views], 1, Service.RSO)
    reader = StreamReader([disk])
    stop = SourceCut(dict.fromkeys((A, B, C), 1), views[-1].view.id)

    slices = slices_of(reader, SourceCut(view=OLD.view.id), stop, least)

    assert len(slices) == least
    for number, wanted in enumerate(slices):
        elsewhere = fetched(reader, wanted.described.start, wanted.described.stop, 9)
        rows = [
            rows_of(wanted, [each], tmp_path / str(number) / name)
            for name, each in (("own", disk), ("other", elsewhere))
        ]
        assert rows[0] == rows[1]
        assert {row["sender"] for row in rows[0] if row["kind"] == "data"} <= {"anna", "bert", "carl"}


@pytest.mark.parametrize("said", [1, 3])
def test_slices_end_where_the_range_does_whatever_views_in_it_say(tmp_path: Path, said: int) -> None:
    """They may say that one left with a message of its own, or what a repair kept. What was fetched ends where it was
    asked to."""
    without = an_install(A, start=START + 200, before=((A, 2), (B, said), (C, said)))
    keeper = StreamReader([a_part([OLD, *of_all(1, START + 10), *of_all(2, START + 20), without], 1, Service.RSO)])
    start, stop = SourceCut(view=OLD.view.id), SourceCut(dict.fromkeys((A, B, C), 2), without.view.id)
    disk = fetched(keeper, start, stop, 2)

    slices = slices_of(StreamReader([disk]), start, stop, least=3)

    rows = [row for at, each in enumerate(slices) for row in rows_of(each, [disk], tmp_path / str(at))]
    assert len(slices) == 3
    assert sorted(row["seq"] for row in rows if row["kind"] == "data") == [1, 1, 1, 2, 2, 2]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99_999))
def test_rows_are_the_same_in_however_many_slices_and_wherever_they_are_read(seed: int) -> None:
    rng = Random(seed)
    history = a_history(rng, 24, Service.RSO)
    keeper = StreamReader([a_part(history, 1, Service.RSO, SourceCut())])
    cuts = cuts_of(keeper.parts[0])
    bounds = sorted(rng.sample(range(len(cuts)), 3))
    spans = [(max(0, low - rng.choice((0, 2))), high) for low, high in itertools.pairwise(bounds)]
    reader = StreamReader([fetched(keeper, cuts[low], cuts[high], 2 + low) for low, high in spans])
    start, stop = (cuts[at] for at in sorted(rng.choices(range(bounds[0], bounds[-1] + 1), k=2)))
    whole = [repr(row) for row in rows_between(reader, start, stop)]
    for least in (1, 3):
        found: list[str] = []
        for wanted in slices_of(reader, start, stop, least):
            begin, end = wanted.described.start, wanted.described.stop
            rows = rows_between(reader, begin, end, data_only=wanted.data_only)
            elsewhere = StreamReader([fetched(reader, begin, end, 99)])
            assert rows_between(elsewhere, begin, end, data_only=wanted.data_only) == rows, f"seed {seed}"
            found += [repr(row) for row in rows]
        assert sorted(found) == sorted(whole), f"seed {seed}"


def rows_between(reader: StreamReader, start: Cut, stop: Cut, *, data_only: bool = False) -> list[Row]:
    told: set[MemberId] = set()
    batches = (
        batch
        for found in reader.ranges(start, stop)
        for batch in ArrowRows(found.reader, told=told).batches(found.start, found.stop)
    )
    return [row for batch in batches for row in batch.to_pylist() if row["kind"] == "data" or not data_only]
