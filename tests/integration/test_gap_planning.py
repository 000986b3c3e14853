"""A query whose own site skipped something, or has it damaged, with real agents and without Spark's JVM."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import intergroup_core as ig
from intergroup_core.errors import DataLost, IntergroupError
from intergroup_core.ids import Service
from intergroup_core.log.entry import Kind
from intergroup_core.log.manifest import segment_name
from intergroup_core.log.stream import StreamReader
from intergroup_core.runtime.stream_store import StreamStore
from pyspark_intergroup.limits import Limits
from pyspark_intergroup.offsets import Offsets
from pyspark_intergroup.slice import LogSlice
from tests.integration import agents
from tests.integration.agent_crashes import cut_behind
from tests.integration.agents import read_until, status_of, until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name, loopback
from tests.integration.host_members import until_value
from tests.integration.sites import Sites, sites
from tests.integration.test_query_planning import Query, a_query

SKIPPED = [b"unseen %d" % number for number in range(5)]
SOON = {"fetchTimeout": "2s"}


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


@contextmanager
def opened(group: str, home: Path, **options: Any) -> Iterator[ig.BlockingMember]:
    """A member whose agent may be gone before it."""
    member = agents.opened(group, home, config=loopback(), **options)
    try:
        yield member
    finally:
        with suppress(IntergroupError):
            member.close()


@contextmanager
def standing_still(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def a_gap_at_b(there: Sites, group: str) -> Iterator[tuple[Offsets, Offsets]]:
    """Two offsets, before and behind what the member of site b skipped; the keeper at site a has it."""
    with opened(group, there.home("b"), name="bert") as bert:
        with opened(group, there.home("a"), sender=True, name="anna") as anna:
            bert.joined(PATIENCE_SECONDS)
            anna.send(b"before", ack="delivered")
            until_value(bert, b"before")
            os.kill(status_of(there.home("a"))["pid"], signal.SIGKILL)
        with ExitStack() as stack:
            # It would come back by itself, before all of that was sent or after.
            with standing_still(status_of(there.home("b"))["pid"]):
                again = stack.enter_context(opened(group, there.home("a"), sender=True, name="anna", start="earliest"))
                for value in SKIPPED:
                    again.send(value, ack="delivered")
            read_until(bert, lambda event: isinstance(event, ig.Gap))
            read_until(bert, lambda event: isinstance(event, ig.ViewChange))
            again.send(b"after", ack="delivered")
            until_value(bert, b"after")
            again.send(b"later", ack="delivered")
            until_value(bert, b"later")
            whole = until_value(again, b"later")
            before, later = (
                next(event for event in whole if getattr(event, "value", None) == value)
                for value in (b"before", b"later")
            )
            yield Offsets({group: cut_behind(before)}), Offsets({group: cut_behind(later)})


def values(rows: list[dict[str, Any]]) -> list[bytes]:
    return [row["value"] for row in rows if row["kind"] == "data"]


def planned_by(query: Query, begin: Offsets, end: Offsets) -> list[Any]:
    return [each.described for each in query.planner.slices(begin, end) if isinstance(each, LogSlice)]


def test_what_this_site_skipped_comes_from_one_that_has_it_and_stays_when_that_is_gone(there: Sites) -> None:
    group = a_group_name()
    with a_gap_at_b(there, group) as (begin, end), a_query(there.home("b"), group, **SOON) as query:
        rows = query.rows(begin, end)
        assert values(rows) == [*SKIPPED, b"after", b"later"]
        assert {row["kind"] for row in rows} == {"data", "view"}
        assert [row["position"] for row in rows] == sorted(row["position"] for row in rows)
        described = planned_by(query, begin, end)
        # Batches end where their limit has it, in the midst of what was skipped, too.
        query.at = begin
        stepwise: list[bytes] = []
        while len(stepwise) < len(SKIPPED):
            stepwise += values(query.batch(Limits(rows=1)))
        middle = query.at
        there.stop_at("a")
        assert values(query.rows(begin, end)) == [*SKIPPED, b"after", b"later"]
    # Another driver, and the site that had it is gone.
    with a_query(there.home("b"), group, **SOON) as query:
        assert planned_by(query, begin, end) == described
        assert values(query.rows(begin, end)) == [*SKIPPED, b"after", b"later"]
        assert stepwise + values(query.rows(middle, end)) == [*SKIPPED, b"after", b"later"]


def test_what_nobody_has_is_an_error_that_names_who_was_asked(there: Sites) -> None:
    group = a_group_name()
    with a_gap_at_b(there, group) as (begin, end), a_query(there.home("b"), group, **SOON) as query:
        there.stop_at("a")
        with pytest.raises(DataLost, match=r"out of the group: .*asked for up to 2 s, no other site"):
            query.rows(begin, end)
        # One that is there but never had it says so.
        with opened(group, there.home("c")):
            keepers = query.planner._groups[group]._connected().keepers
            until(lambda: len(keepers(PATIENCE_SECONDS)) > 1)
            with pytest.raises(DataLost, match=r"asked for up to 2 s, .*\(127.0.0.1:\d+\): "):
                query.rows(begin, end)
        # It comes back, and so do the rows.
        with opened(group, there.home("a"), sender=True):
            assert values(query.rows(begin, end)) == [*SKIPPED, b"after", b"later"]


def test_a_gap_that_was_given_stays_one_though_the_rows_come_back(there: Sites) -> None:
    group = a_group_name()
    with a_gap_at_b(there, group) as (begin, end):
        there.stop_at("a")
        with a_query(there.home("b"), group, failOnDataLoss="false", **SOON) as query:
            rows = query.rows(begin, end)
            assert values(rows) == [b"after", b"later"]
            assert [row["kind"] for row in rows].count("gap") == 1
            described = planned_by(query, begin, end)
        with (
            opened(group, there.home("a"), sender=True),
            a_query(there.home("b"), group, failOnDataLoss="false", **SOON) as query,
        ):
            assert planned_by(query, begin, end) == described
            assert query.rows(begin, end) == rows


@pytest.mark.parametrize("keeper", [True, False])
def test_what_is_damaged_here_comes_from_another_site(there: Sites, keeper: bool) -> None:
    group = a_group_name()
    sent = [b"%03d" % number for number in range(50)]
    with opened(group, there.home("a"), sender=True, name="anna") as anna:
        with a_query(there.home("b"), group, **SOON) as query:
            for value in sent:
                anna.send(value, ack="delivered")
            begin = query.at
            assert query.values(len(sent)) == sent
            end = query.at
        there.stop_at("b")
        spoil_an_entry(there.home("b"), group)
        if keeper:
            with a_query(there.home("b"), group, **SOON) as query:
                assert values(query.rows(begin, end)) == sent
        there.stop_at("a")
        with a_query(there.home("b"), group, **SOON) as query:
            if keeper:
                assert values(query.rows(begin, end)) == sent
            else:
                with pytest.raises(DataLost, match=r"is damaged at offset \d+.*asked for up to 2 s, no other site"):
                    query.rows(begin, end)


def spoil_an_entry(home: Path, group: str) -> None:
    """One in the midst of a site's log."""
    (log,) = StreamReader(StreamStore(home / "logs").parts(group, Service.RTO)).parts
    entries = [entry for entry in log.entries(log.first) if entry.kind is Kind.DATA]
    chosen = entries[len(entries) // 2]
    file = Path(log.where) / segment_name(log.segments[0].first)
    content = bytearray(file.read_bytes())
    content[chosen.offset + 20] ^= 1
    file.write_bytes(bytes(content))
