"""Who reads what is committed sees the rows of a transaction where it was decided, all of them and once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intergroup_core.errors import ConfigError, DataLost
from intergroup_core.ids import COUNTER_BITS, EPOCH_US, Service
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.reader import LogReader
from intergroup_core.runtime.disk import FileDisk
from pyspark_intergroup import committed_slicing
from pyspark_intergroup.limits import Limits
from pyspark_intergroup.slice import AnySlice, LogSlice, SliceBundle
from pyspark_intergroup.slicing import SliceSizes
from tests.builders import A, B
from tests.log_builders import a_chunk, an_install
from tests.sizes import sized
from tests.unit.connector.replay_logs import a_stored_log, read_options, replayed, rows_in
from tests.unit.connector.transacted import Agent, History, Seen, SitePlanner, parted, some_history, stored


@contextmanager
def a_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="intergroup-test-") as path:
        yield Path(path)


def seen(rows: Iterable[dict[str, Any]]) -> list[Seen]:
    return [
        Seen(row["value"], row["txn"], row["lamport"], _microseconds(row["sent_timestamp"]), row["position"])
        for row in rows
        if row["kind"] == "data"
    ]


def expected_of(history: History) -> list[Seen]:
    return [each._replace(sent=(each.sent >> COUNTER_BITS) + EPOCH_US) for each in history.expected]


def _microseconds(moment: Any) -> int:
    return round(moment.timestamp() * 1_000_000)


def read(path: Path, slices: Iterable[AnySlice], **options: str) -> list[Seen]:
    return seen(rows_in(read_options(path, **options), slices))


@settings(max_examples=sized(4, 40), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    rows=st.sampled_from((1, 3, 10, 1_000)),
    partitions=st.sampled_from((1, 3)),
    restarts=st.booleans(),
)
def test_however_batches_are_limited_their_rows_are_the_same(
    seed: int, rows: int, partitions: int, restarts: bool
) -> None:
    history = some_history(Random(seed), 60)
    with a_directory() as path:
        disk = stored(path / "log", history.deliveries)
        planner, found = SitePlanner([disk]), list[Seen]()
        at, stop = planner.whole
        while at != stop:
            end = planner.end(at, stop, Limits(rows=rows))
            assert isinstance(end, OrderCut)
            assert end != at, "a batch always progresses"
            found += read(path, planner.slices(at, end, SliceSizes(least=partitions)))
            planner, at = SitePlanner([disk]) if restarts else planner, end
        assert found == expected_of(history)
        places = [each.position for each in found]
        assert places == sorted(set(places))
        assert seen(replayed(path)) == found
        assert [row.value for row in seen(replayed(path, isolation="uncommitted"))] == history.uncommitted


@settings(max_examples=sized(4, 40), deadline=None)
@given(seed=st.integers(0, 2**32), data=st.data())
def test_wherever_a_range_is_cut_and_whatever_logs_it_lies_in_its_rows_are_the_same(
    seed: int, data: st.DataObject
) -> None:
    history = some_history(Random(seed), 50)
    with a_directory() as path:
        at = data.draw(st.integers(1, len(history.deliveries)))
        disks = parted(path, history.deliveries, at)
        planner = SitePlanner(disks)
        start, stop = planner.whole
        places = [moment.cut for moment in planner._moments(start, stop) if isinstance(moment.cut, OrderCut)]
        chosen = data.draw(st.lists(st.sampled_from(places), unique=True))
        cuts = [start, *sorted(chosen, key=lambda cut: (cut.timestamp, cut.sender))]
        found: list[Seen] = []
        for begin, end in zip(cuts, [*cuts[1:], stop], strict=True):
            found += read(path, SitePlanner(disks).slices(begin, end, SliceSizes()))
        assert found == expected_of(history)


def a_large_history(messages: int) -> History:
    """One transaction of many messages with others' rows among them, and its decision."""
    history = History()
    for number in range(messages):
        history.stage(7, b"%d" % number)
        if number % 50 == 0:
            history.plain(b"meanwhile", sender=B)
    history.flush()
    history.decide(history.propose(7), 7)
    history.plain(b"afterwards")
    history.flush()
    return history


def test_a_large_transaction_is_read_by_several_tasks_in_one_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = a_large_history(5_000)
    disk = stored(tmp_path / "log", history.deliveries, segment=200_000)
    monkeypatch.setattr(committed_slicing, "SLICE_BYTES", 5_000 * 700 // 4)
    batches = list(SitePlanner([disk]).batches(Limits(rows=20)))
    of_it = [[each for each in batch if isinstance(each, LogSlice) and each.shown] for batch in batches]
    (whole,) = [slices for slices in of_it if slices]
    assert 4 <= len(whole) <= 6
    assert [each.shown.ordinal for each in whole if each.shown] == sorted(
        {each.shown.ordinal for each in whole if each.shown}
    )
    found = [read(tmp_path, batch) for batch in batches]
    assert [row for batch in found for row in batch] == expected_of(history)
    (with_it,) = [batch for batch in found if any(row.txn for row in batch)]
    assert sum(row.txn is not None for row in with_it) == 5_000


def test_many_small_transactions_are_one_task(tmp_path: Path) -> None:
    history = History()
    for version in range(40):
        history.stage(1 + version, b"%d" % version, version=version)
        history.decide(history.propose(1 + version, version=version), 1 + version, version=version)
    history.flush()
    disk = stored(tmp_path / "log", history.deliveries)
    planner = SitePlanner([disk])
    (bundle,) = planner.slices(*planner.whole, SliceSizes())
    assert isinstance(bundle, SliceBundle)
    assert len(bundle.slices) == 41  # and the view
    assert bundle.rows == 41
    assert read(tmp_path, [bundle]) == expected_of(history)


def test_a_batch_of_nothing_but_a_decision_has_the_rows(tmp_path: Path) -> None:
    history = History()
    history.stage(7, b"staged")
    proposal = history.propose(7)
    history.flush()
    before = len(history.deliveries)
    history.decide(proposal, 7)
    history.flush()
    (tmp_path / "early").mkdir()
    early = SitePlanner([stored(tmp_path / "early" / "log", history.deliveries[:before])])
    planner = SitePlanner([stored(tmp_path / "log", history.deliveries)])
    start, stop = early.whole[1], planner.whole[1]
    assert planner.end(start, stop, Limits(rows=1)) == stop
    assert planner.rows(start, stop, 10) == 1
    assert read(tmp_path, planner.slices(start, stop, SliceSizes())) == expected_of(history)


def test_what_is_undecided_or_lost_against_another_attempt_is_not_there(tmp_path: Path) -> None:
    history = History()
    history.stage(1, b"twice")
    history.stage(2, b"twice", sender=B)
    history.stage(3, b"never", app="other")
    history.propose(3, app="other")
    history.decide(history.propose(2), 2)
    history.flush()
    stored(tmp_path / "log", history.deliveries)
    rows = replayed(tmp_path)
    assert [(row["value"], row["txn"]) for row in rows if row["kind"] == "data"] == [(b"twice", "query/0")]
    (row,) = [row for row in rows if row["kind"] == "data"]
    assert (row["sender"], row["timestamp"] > row["sent_timestamp"]) == ("bert", True)
    everything = replayed(tmp_path, isolation="uncommitted")
    shown = [(row["value"], row["txn"]) for row in everything if row["kind"] == "data"]
    assert shown == [(b"twice", "query/0"), (b"twice", "query/0"), (b"never", "other/0")]


def a_site_that_came_later(tmp_path: Path, *, keeps: bool) -> tuple[History, SitePlanner, list[FileDisk]]:
    """Rows were staged before its log begins, and decided in it; another site has all, or nobody has."""
    history = History()
    history.stage(7, b"one")
    history.plain(b"before")
    history.stage(7, b"two", sender=B)
    proposal = history.propose(7)
    history.flush()
    before = len(history.deliveries)
    history.decide(proposal, 7)
    history.plain(b"after")
    history.flush()
    everything = parted(tmp_path / "all", history.deliveries, before)
    (tmp_path / "here").mkdir()
    here = [everything[1]]
    whole = stored(tmp_path / "there", history.deliveries) if keeps else None
    planner = SitePlanner(here, fail_on_data_loss=False, agent=Agent(tmp_path / "here", here, whole))
    return history, planner, here


def test_rows_that_only_another_site_has_are_fetched(tmp_path: Path) -> None:
    history, planner, here = a_site_that_came_later(tmp_path, keeps=True)
    start, stop = planner.whole
    found = read(tmp_path, planner.slices(start, stop, SliceSizes()))
    assert found == [row for row in expected_of(history) if row.value != b"before"]
    assert len(here) > 1, "and stay here"
    again = SitePlanner(here)
    assert read(tmp_path, again.slices(start, stop, SliceSizes())) == found


def test_rows_that_nobody_has_are_an_error_or_a_gap(tmp_path: Path) -> None:
    history, planner, here = a_site_that_came_later(tmp_path, keeps=False)
    start, stop = planner.whole
    rows = rows_in(read_options(tmp_path), planner.slices(start, stop, SliceSizes()))
    assert [(row["kind"], row["value"]) for row in rows] == [("gap", None), ("data", b"after")]
    assert [row["position"] for row in rows] == sorted(row["position"] for row in rows)
    back = stored(tmp_path / "back", history.deliveries)
    again = SitePlanner(here, fail_on_data_loss=False, agent=Agent(tmp_path / "here", here, back))
    assert rows_in(read_options(tmp_path), again.slices(start, stop, SliceSizes())) == rows, "whoever is back by then"
    strict = SitePlanner(here, agent=Agent(tmp_path, here))
    with pytest.raises(DataLost, match=r"transaction that was decided at .* its rows are not to be had.*elsewhere"):
        strict.slices(start, stop, SliceSizes())


def test_earliest_is_behind_transactions_whose_first_rows_are_gone(tmp_path: Path) -> None:
    history = History()
    history.stage(7, b"let go of")
    history.flush()
    let_go = len(history.deliveries)
    history.plain(b"between")
    history.stage(7, b"left")
    history.stage(8, b"whole", app="other", sender=B)
    history.decide(history.propose(7), 7)
    history.plain(b"after")
    history.decide(history.propose(8, app="other"), 8, app="other")
    history.flush()
    kept = parted(tmp_path / "all", history.deliveries, let_go)[1]
    rows = replayed(Path(kept.where))
    assert [row["value"] for row in rows if row["kind"] == "data"] == [b"after", b"whole"]


def test_what_is_staged_and_may_be_committed_yet_is_kept(tmp_path: Path) -> None:
    history = History()
    history.plain(b"done with")
    history.flush()
    history.stage(7, b"staged")
    history.flush()
    open_from = len(history.deliveries) - 1
    history.plain(b"done with too")
    history.flush()
    undecided = len(history.deliveries)
    history.decide(history.propose(7), 7)
    history.flush()
    disks = [stored(tmp_path / "log", history.deliveries, segment=1 << 20)]
    agent = Agent(tmp_path, disks)
    planner = SitePlanner(disks, agent=agent)
    start, stop = planner.whole
    cuts = [moment.cut for moment in planner._moments(start, stop)]
    reader = LogReader(disks[0])
    for cut in cuts:
        planner.commit(cut, "nightly")
    places = [reader.place_of(cut).entry for cut in cuts if isinstance(cut, OrderCut)]
    assert agent.held == [place if place <= open_from or place > undecided + 1 else open_from for place in places]
    assert [reader.place_of(cut).entry for cut in agent.committed if isinstance(cut, OrderCut)] == agent.held


def test_only_one_order_has_something_to_commit_in(tmp_path: Path) -> None:
    a_stored_log(tmp_path / "log", [an_install(A), a_chunk(b"x")], service=Service.RSO)
    with pytest.raises(ConfigError, match="by rso, which has no order that a transaction could commit in"):
        replayed(tmp_path, isolation="committed")
    assert len(replayed(tmp_path)) == 1


def test_senders_and_columns_are_chosen_among_committed_rows_too(tmp_path: Path) -> None:
    history = History()
    history.stage(1, b"a")
    history.stage(2, b"b", sender=B)
    history.plain(b"c", sender=B)
    history.decide(history.propose(1, 2), 1, 2)
    history.flush()
    stored(tmp_path / "log", history.deliveries)
    rows = replayed(tmp_path, senders="bert", columns="value,txn,position,kind", kinds="data")
    assert [(row["value"], row["txn"]) for row in rows] == [(b"c", None), (b"b", "query/0")]
    (_, _, ordinal, _) = rows[1]["position"].split("-")
    assert int(ordinal, 16) == 1
