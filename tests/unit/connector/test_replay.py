"""Logs that lie in directories, replayed: of one site or of several, whole or in part, with what is missing."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from intergroup_core.errors import ConfigError, DataLost, DivergedBranches, LogDamaged, RangeUnavailable
from intergroup_core.ids import COUNTER_BITS, EPOCH_US, Service, format_member
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.cut_codec import cut_text
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.manifest import segment_name
from intergroup_core.log.writer import open_log
from intergroup_core.runtime.disk import FileDisk
from pyspark_intergroup.slice import LogSlice, LostSlice
from tests.builders import GROUP, START, A, B, C
from tests.log_builders import Row, a_chunk, a_gap, a_history, an_install, live_rows, messages_alike
from tests.unit.connector.replay_logs import a_stored_log, read_options, replayed, rows_in, slices_of

STEP = 10 << COUNTER_BITS
"""Ten microseconds."""


def numbered(first: int, stop: int) -> list[Delivered]:
    """Messages of one sender, ten microseconds apart."""
    return [a_chunk(b"%d" % number, seq=number, timestamp=START + number * STEP) for number in range(first, stop)]


def values(rows: list[dict[str, object]]) -> list[object]:
    return [row["value"] for row in rows if row["kind"] == "data"]


def moment_iso(number: int) -> str:
    """The time of a numbered message."""
    microseconds = ((START + number * STEP) >> COUNTER_BITS) + EPOCH_US
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)).isoformat()


@pytest.mark.parametrize("seed", range(5))
def test_a_log_is_replayed_as_it_was_delivered(tmp_path: Path, seed: int) -> None:
    history = a_history(Random(seed), 60)
    a_stored_log(tmp_path / "log", history)
    assert replayed(tmp_path, failOnDataLoss="false", isolation="uncommitted") == live_rows(history)
    assert replayed(tmp_path, failOnDataLoss="false") == not_staged(history)


def not_staged(history: list[Delivered]) -> list[Row]:
    return [row for row in live_rows(history) if row["txn"] is None]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cut", [{"minPartitions": "7"}, {"maxRowsPerPartition": "3"}])
def test_however_it_is_cut_into_slices_the_rows_are_the_same(tmp_path: Path, seed: int, cut: dict[str, str]) -> None:
    history = a_history(Random(seed), 60)
    a_stored_log(tmp_path / "log", history)
    assert len(slices_of(tmp_path, failOnDataLoss="false", **cut)) > 3
    assert replayed(tmp_path, failOnDataLoss="false", **cut) == not_staged(history)


def test_logs_of_rto_are_replayed_by_rso_too_where_they_say_where_their_senders_stood(tmp_path: Path) -> None:
    first = an_install(A, B, before=((A, 0), (B, 0)))
    more = [a_chunk(b"of bert %d" % seq, source=B, seq=seq, timestamp=START + seq * STEP + 1) for seq in range(1, 20)]
    life = sorted([*numbered(1, 20), *more], key=lambda chunk: chunk.first_timestamp)  # type: ignore[union-attr]
    end = OrderCut(START + 9 * STEP + 1, B, first.view.id)
    a_stored_log(tmp_path / "a", [first, *life[:18]], log=1)
    a_stored_log(tmp_path / "b", life[18:], log=2, after=end)
    rows = replayed(tmp_path, delivery="rso", minPartitions="2")
    assert sorted(map(str, values(rows))) == sorted(map(str, values(replayed(tmp_path))))
    for sender in (A, B):
        seqs = [row["seq"] for row in rows if row["sender_id"] == format_member(sender)]
        assert seqs == list(range(1, 20))
    a_stored_log(tmp_path / "silent" / "a", [an_install(A, B), *life])
    with pytest.raises(ConfigError, match="do not say where their senders stood"):
        slices_of(tmp_path / "silent", delivery="rso")


def test_in_rso_senders_are_slices_and_each_is_in_its_order(tmp_path: Path) -> None:
    deliveries: list[Delivered] = [an_install(A, B)]
    for number in range(1, 30):
        source = (A, B)[number % 2]
        deliveries.append(a_chunk(b"%d" % number, source=source, seq=number, timestamp=START + number))
    deliveries.append(an_install(A, B, C, start=START + 100, seq=2))
    a_stored_log(tmp_path / "log", deliveries, service=Service.RSO)
    assert len(slices_of(tmp_path, minPartitions="2")) == 2
    rows = replayed(tmp_path, minPartitions="2")
    assert [row["kind"] for row in rows].count("view") == 1
    for sender in ("anna", "bert"):
        mine = [row["seq"] for row in rows if row["sender"] == sender]
        assert mine == sorted(mine)
    assert sorted(map(int, values(rows))) == list(range(1, 30))


def test_logs_of_several_sites_are_one_replay_without_duplicates(tmp_path: Path) -> None:
    first = an_install(A, B)
    later = an_install(A, B, C, start=START + 50 * STEP, seq=2)
    early, late = numbered(1, 40), [later, *numbered(60, 80)]
    a_stored_log(tmp_path / "one", [first, *early, *numbered(40, 50)], log=1)
    a_stored_log(tmp_path / "other", [first, *early, *numbered(40, 50), *late], log=2)
    a_stored_log(tmp_path / "third", [later, *numbered(60, 70)], log=3, after=OrderCut(later.view.id.start - 1, C))
    rows = replayed(tmp_path)
    assert values(rows) == [b"%d" % number for number in itertools.chain(range(1, 50), range(60, 80))]
    assert [row["view_id"] for row in rows if row["kind"] == "view"] == [str(first.view.id), str(later.view.id)]


def test_branches_of_a_partition_are_named_and_one_can_be_picked(tmp_path: Path) -> None:
    first = an_install(A, B)
    ours, theirs = an_install(A, start=START + 20 * STEP, seq=2), an_install(B, start=START + 21 * STEP, seq=2)
    a_stored_log(tmp_path / "ours", [first, *numbered(1, 20), ours, *numbered(30, 40)], log=1)
    away = [a_chunk(b"away", source=B, seq=1, timestamp=START + 35 * STEP)]
    a_stored_log(tmp_path / "theirs", [first, *numbered(1, 20), theirs, *away], log=2)
    with pytest.raises(DivergedBranches) as raised:
        replayed(tmp_path)
    assert str(ours.view.id) in str(raised.value)
    assert str(theirs.view.id) in str(raised.value)
    assert values(replayed(tmp_path, branch=str(theirs.view.id)))[-1] == b"away"
    assert values(replayed(tmp_path, branch=str(ours.view.id)))[-1] == b"39"
    with pytest.raises(DivergedBranches, match="no log"):
        replayed(tmp_path, branch=str(an_install(C, seq=9).view.id))


def test_a_hole_is_an_error_or_a_gap_row(tmp_path: Path) -> None:
    view = an_install(A, B)
    last = OrderCut(START + 29 * STEP, A, view.view.id)
    a_stored_log(tmp_path / "early", [view, *numbered(1, 10)], log=1)
    late = tmp_path / "late"
    a_stored_log(late, [view, *numbered(30, 40)], log=2, after=last)
    with pytest.raises(DataLost, match=GROUP):
        replayed(tmp_path)
    slices = slices_of(tmp_path, failOnDataLoss="false")
    assert [type(each) for each in slices] == [LogSlice, LostSlice, LogSlice]
    rows = replayed(tmp_path, failOnDataLoss="false")
    assert [row["kind"] for row in rows].count("gap") == 1
    assert values(rows)[:9] == [b"%d" % number for number in range(1, 10)]
    assert values(rows)[-1] == b"39"


def test_a_gap_in_a_log_is_an_error_or_a_row(tmp_path: Path) -> None:
    view, again = an_install(A, B), an_install(A, B, start=START + 30 * STEP, seq=2)
    a_stored_log(tmp_path / "log", [view, *numbered(1, 10), a_gap("a long pause"), again, *numbered(40, 50)])
    with pytest.raises(DataLost, match="a long pause"):
        replayed(tmp_path)
    kinds = [row["kind"] for row in replayed(tmp_path, failOnDataLoss="false")]
    assert kinds == ["view", *["data"] * 9, "gap", "view", *["data"] * 10]


def test_a_replay_begins_and_ends_where_it_is_told(tmp_path: Path) -> None:
    view, later = an_install(A, B), an_install(A, B, C, start=START + 50 * STEP, seq=2)
    a_stored_log(tmp_path / "log", [view, *numbered(1, 40), later, *numbered(60, 80)])
    span = {"startingTimestamp": moment_iso(10), "endingTimestamp": moment_iso(20)}
    assert values(replayed(tmp_path, **span)) == [b"%d" % number for number in range(10, 20)]
    rows = replayed(tmp_path, startingView=str(later.view.id))
    assert rows[0]["view_id"] == str(later.view.id)
    assert len(rows) == 21
    cut = cut_text(OrderCut(START + 15 * STEP, A, view.view.id))
    assert values(replayed(tmp_path, startingOffsets=f'{{"{GROUP}": {cut}}}'))[0] == b"16"
    assert values(replayed(tmp_path, endingOffsets=f'{{"{GROUP}": {cut}}}'))[-1] == b"15"


def test_what_is_not_wanted_is_left_out(tmp_path: Path) -> None:
    deliveries = [an_install(A, B), a_chunk(b"a", source=A), a_chunk(b"b", source=B, timestamp=START + 2)]
    a_stored_log(tmp_path / "log", deliveries)
    assert [row["kind"] for row in replayed(tmp_path, includeViews="false")] == ["data", "data"]
    assert values(replayed(tmp_path, senders="bert")) == [b"b"]
    assert values(replayed(tmp_path, kinds="view")) == []
    (row,) = replayed(tmp_path, columns="value,sender", kinds="data", senders="anna")
    assert row == {"value": b"a", "sender": "anna"}


def test_a_slice_is_read_only_from_a_log_that_holds_just_that(tmp_path: Path) -> None:
    log = a_stored_log(tmp_path / "log", [an_install(A, B), *numbered(1, 10)])
    asked = read_options(tmp_path)
    (planned,) = slices_of(tmp_path)
    assert len(rows_in(asked, [planned])) == 10
    for file in log.iterdir():
        file.unlink()
    other = [an_install(A, B), *numbered(1, 9), a_chunk(b"other", seq=9, timestamp=START + 9 * STEP)]
    a_stored_log(log, other)
    with pytest.raises(RangeUnavailable, match=GROUP):
        rows_in(asked, [planned])


def test_a_damaged_log_is_reported_with_file_and_offset(tmp_path: Path) -> None:
    log = a_stored_log(tmp_path / "log", [an_install(A, B), messages_alike(50, records=3)])
    segment = log / segment_name(0)
    content = bytearray(segment.read_bytes())
    content[-100] ^= 1
    segment.write_bytes(bytes(content))
    with pytest.raises(LogDamaged, match=f"{segment} is damaged at offset"):
        replayed(tmp_path)


def spoil_end(log: Path, lost: int) -> Path:
    """Let the last bytes of a log be something else."""
    segment = log / segment_name(0)
    segment.write_bytes(segment.read_bytes()[:-lost] + b"\x5a" * lost)
    return segment


@pytest.mark.parametrize("service", [Service.RTO, Service.RSO, Service.UU])
def test_a_log_whose_end_is_garbage_does_not_pass_for_a_shorter_one(tmp_path: Path, service: Service) -> None:
    log = a_stored_log(tmp_path / "log", [an_install(A, B), *numbered(1, 10)], service=service)
    segment = spoil_end(log, 300)
    with pytest.raises(LogDamaged, match=f"{segment} is damaged at offset"):
        replayed(tmp_path)


@pytest.mark.parametrize("recovered", [False, True])
@pytest.mark.parametrize("service", [Service.RTO, Service.RSO])
def test_what_is_left_of_a_log_whose_end_is_garbage_ends_with_a_gap_row(
    tmp_path: Path, service: Service, recovered: bool
) -> None:
    log = a_stored_log(tmp_path / "log", [an_install(A, B), *numbered(1, 10)], service=service)
    spoil_end(log, 300)
    if recovered:
        disk = FileDisk.locked(log)
        open_log(disk).close()
        disk.close()
    with pytest.raises(LogDamaged, match="is damaged at offset"):
        replayed(tmp_path)
    rows = replayed(tmp_path, failOnDataLoss="false")
    assert values(rows) == [b"%d" % number for number in range(1, 1 + len(values(rows)))]
    assert 0 < len(values(rows)) < 9
    assert [row["kind"] for row in rows][-2:] == ["data", "gap"]
    if service is Service.RTO:
        assert [row["position"] for row in rows] == sorted(row["position"] for row in rows)


def test_a_log_of_which_nothing_can_be_read_is_an_error_in_any_case(tmp_path: Path) -> None:
    log = a_stored_log(tmp_path / "log", [an_install(A, B), *numbered(1, 10)])
    spoil_end(log, (log / segment_name(0)).stat().st_size)
    with pytest.raises(LogDamaged, match="is damaged at offset 0"):
        replayed(tmp_path, failOnDataLoss="false")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"group": "elsewhere"}, "no log of group elsewhere"),
        ({"delivery": "rso"}, "by rso"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, options: dict[str, str], complaint: str) -> None:
    a_stored_log(tmp_path / "log", [an_install(A, B)])
    with pytest.raises(ConfigError, match=complaint):
        replayed(tmp_path, **options)


def test_a_path_without_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no log in it"):
        replayed(tmp_path)
    with pytest.raises(ConfigError, match="no such directory"):
        replayed(tmp_path / "nowhere")


def test_logs_by_several_services_must_be_told_apart(tmp_path: Path) -> None:
    a_stored_log(tmp_path / "one", [an_install(A, B), a_chunk()])
    a_stored_log(tmp_path / "other", [an_install(A, B), a_chunk()], log=2, service=Service.RSO)
    with pytest.raises(ConfigError, match="rso and rto"):
        replayed(tmp_path)
    assert values(replayed(tmp_path, delivery="rso")) == [b"record"]
