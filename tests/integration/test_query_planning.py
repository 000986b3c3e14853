"""How a query plans its batches, with real agents and without Spark's JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from intergroup_core.client.directories import site_directories
from intergroup_core.client.lock import SiteLock
from intergroup_core.client.member import ClientMember
from intergroup_core.client.starting import IDLE_S
from intergroup_core.errors import DataLost
from intergroup_core.ids import MemberId
from intergroup_core.log.cut import OrderCut, SourceCut
from pyspark_intergroup import group_planner
from pyspark_intergroup.limits import Limits
from pyspark_intergroup.offsets import Offsets
from pyspark_intergroup.options import ReadOptions
from pyspark_intergroup.planner import Planner
from pyspark_intergroup.rows import RowReader
from pyspark_intergroup.schema import default_schema
from pyspark_intergroup.slice import LostSlice
from tests.integration.agents import until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name, loopback
from tests.integration.sites import Sites, sites

NO_LIMITS = Limits()


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a group in which nobody sends, or not everybody any more, a planner waits for what does not come."""
    monkeypatch.setattr(group_planner, "JOIN_SECONDS", 1.5)


IMPATIENT = """
from intergroup_core.agent import __main__, history
history.MOST_LOOKS = 2
__main__.main({home!r}, {idle_s}, {ready}, "")
"""


def start_impatient_agent(home: Path) -> None:
    """One that asks others only twice for a cut that nobody has; tests end it as they end any other."""
    here, there = os.pipe()
    command = IMPATIENT.format(home=str(home), idle_s=IDLE_S, ready=there)
    subprocess.run([sys.executable, "-c", command], stdout=subprocess.DEVNULL, pass_fds=(there,), check=True)
    os.close(there)
    with os.fdopen(here) as said:
        assert said.read() == "ready"


def a_sender(group: str, home: Path, delivery: str = "rto", name: str | None = None) -> closing[ClientMember]:
    sender = ClientMember(group, delivery=delivery, sender=True, name=name, config=loopback(), home=home, reads=False)
    sender.joined(PATIENCE_SECONDS)
    return closing(sender)


class Query:
    """Plans batches and reads them, as Spark would have it done."""

    def __init__(self, home: Path, group: str, **options: str) -> None:
        self.options = ReadOptions.of(
            {"group": group, "interface": "lo", "agent": str(home), **options}, streaming=True
        )
        self.planner = Planner(self.options)
        self.reader = RowReader(self.options, default_schema(self.options.columns))
        self.at = self.planner.initial()

    def batch(self, limits: Limits = NO_LIMITS) -> list[dict[str, Any]]:
        """The next one that has something."""
        end = self.at

        def moved() -> bool:
            nonlocal end
            end = self.planner.end(self.at, limits, target=None, wait=0.1)
            return end != self.at

        until(moved)
        rows = self.rows(self.at, end)
        self.planner.commit(end)
        self.at = end
        return rows

    def rows(self, begin: Offsets, end: Offsets) -> list[dict[str, Any]]:
        slices = self.planner.slices(begin, end)
        return [row for each in slices for batch in self.reader.read(each) for row in batch.to_pylist()]

    def values(self, count: int, limits: Limits = NO_LIMITS) -> list[bytes]:
        found: list[bytes] = []
        while len(found) < count:
            found += [row["value"] for row in self.batch(limits) if row["kind"] == "data"]
        return found


@contextmanager
def a_query(home: Path, group: str, **options: str) -> Iterator[Query]:
    query = Query(home, group, **options)
    try:
        yield query
    finally:
        query.planner.close()


def numbered(first: int, stop: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, stop)]


@pytest.mark.parametrize("delivery", ["rto", "rso", "uu"])
def test_what_is_sent_is_planned_and_read_once_and_in_order(there: Sites, delivery: str) -> None:
    group = a_group_name()
    service = "rso" if delivery == "rso" else "rto"
    with (
        a_sender(group, there.home("a"), service) as sender,
        a_query(there.home("b"), group, delivery=delivery) as query,
    ):
        for part in range(3):
            sender.send_many(numbered(100 * part, 100 * part + 100), "sent")
            assert query.values(100) == numbered(100 * part, 100 * part + 100)


def test_in_rso_offsets_do_not_name_those_who_came_and_went(there: Sites) -> None:
    group = a_group_name()
    with (
        a_sender(group, there.home("a"), "rso", name="host") as host,
        a_query(there.home("b"), group, delivery="rso") as query,
    ):
        got: list[bytes] = []
        for number in range(4):
            with a_sender(group, there.home("a"), "rso", name=f"guest-{number}") as guest:
                guest.send_many(numbered(10 * number, 10 * number + 5), "delivered")
                host.send_many(numbered(10 * number + 5, 10 * number + 10), "delivered")
                got += query.values(10)

        def named() -> int:
            query.batch() if query.planner.latest() != query.at else []
            cut = query.at[group]
            assert isinstance(cut, SourceCut)
            return len(cut.seqs)

        until(lambda: named() <= 1)
        host.send_many(numbered(40, 45), "delivered")
        got += query.values(5)
        assert sorted(got, key=int) == numbered(0, 45)


def test_a_limit_of_rows_is_kept_but_for_what_must_not_be_parted(there: Sites) -> None:
    group = a_group_name()
    with a_sender(group, there.home("a")) as sender, a_query(there.home("b"), group) as query:
        for number in range(20):
            sender.send_many(numbered(10 * number, 10 * number + 10), "delivered")
        read: list[bytes] = []
        while len(read) < 200:
            rows = query.batch(Limits(rows=25))
            read += [row["value"] for row in rows if row["kind"] == "data"]
            assert len(rows) <= 25 or len({row["timestamp"] for row in rows}) == 1
        assert read == numbered(0, 200)


def test_a_batch_never_ends_between_rows_of_one_time(there: Sites) -> None:
    group = a_group_name()
    with (
        a_sender(group, there.home("a")) as one,
        a_sender(group, there.home("c")) as other,
        a_query(there.home("b"), group) as query,
    ):
        threads = [threading.Thread(target=send_often, args=(sender,)) for sender in (one, other)]
        for thread in threads:
            thread.start()
        last: datetime | None = None
        read = 0
        while read < 2_000:
            rows = query.batch(Limits(rows=40))
            if not rows:
                continue  # what a site says of its log is no row
            times = [row["timestamp"] for row in rows]
            assert times == sorted(times)
            assert last is None or times[0] > last
            last = times[-1]
            read += sum(row["kind"] == "data" for row in rows)
        for thread in threads:
            thread.join()


def send_often(sender: ClientMember) -> None:
    for _ in range(200):
        sender.send_many(numbered(0, 5))


def test_several_groups_end_their_batches_at_one_time(there: Sites) -> None:
    groups = [a_group_name(), a_group_name()]
    with (
        a_sender(groups[0], there.home("a")) as one,
        a_sender(groups[1], there.home("a")) as other,
        a_query(there.home("b"), ",".join(groups)) as query,
    ):
        for number in range(20):
            one.send_many(numbered(number, number + 1), "delivered")
            other.send_many(numbered(number, number + 1), "delivered")
        last: datetime | None = None
        read: dict[str, list[bytes]] = {group: [] for group in groups}
        while sum(map(len, read.values())) < 40:
            rows = query.batch(Limits(rows=6))
            if not rows:
                continue  # what a site says of its log is no row
            times = [row["timestamp"] for row in rows]
            assert last is None or min(times) > last
            last = max(times)
            for row in rows:
                if row["kind"] == "data":
                    read[row["group_name"]].append(row["value"])
        assert read == dict.fromkeys(groups, numbered(0, 20))


def test_a_query_goes_on_when_its_agent_was_killed(there: Sites) -> None:
    group = a_group_name()
    with a_sender(group, there.home("a")) as sender, a_query(there.home("b"), group) as query:
        sender.send_many(numbered(0, 10), "delivered")
        assert query.values(10) == numbered(0, 10)
        began = query.at
        holder = SiteLock(site_directories(there.home("b")).lock).holder()
        assert holder is not None
        os.kill(holder, signal.SIGKILL)
        sender.send_many(numbered(10, 20), "delivered")
        assert query.values(10) == numbered(10, 20)
        sender.send_many(numbered(20, 30), "delivered")
        assert query.values(10) == numbered(20, 30)
        again = [row["value"] for row in query.rows(began, query.at) if row["kind"] == "data"]
        assert again == numbered(10, 30)


def test_what_was_sent_while_a_query_was_down_arrives(there: Sites) -> None:
    group = a_group_name()
    with a_sender(group, there.home("a")) as sender:
        with a_query(there.home("b"), group) as query:
            sender.send_many(numbered(0, 10), "delivered")
            assert query.values(10) == numbered(0, 10)
            at = query.at
        there.stop_at("b")
        sender.send_many(numbered(10, 20), "delivered")
        with a_query(there.home("b"), group) as query:
            query.at = at
            assert query.values(10) == numbered(10, 20)
        with a_query(there.home("elsewhere"), group) as query:
            query.at = at
            assert query.values(10) == numbered(10, 20)


@pytest.mark.usefixtures("briefly")
def test_a_query_that_begins_where_nobody_is_reads_from_the_first_record_on(there: Sites) -> None:
    group = a_group_name()
    with a_query(there.home("b"), group) as query, a_sender(group, there.home("a")) as sender:
        sender.send_many(numbered(0, 10), "delivered")
        assert query.values(10) == numbered(0, 10)


def test_offsets_that_no_log_knows_are_data_lost_or_a_gap_row(there: Sites) -> None:
    group = a_group_name()
    start_impatient_agent(there.home("b"))
    with a_sender(group, there.home("a")) as sender:
        foreign = Offsets({group: OrderCut(5, MemberId(9))})
        with a_query(there.home("b"), group) as query:
            sender.send_many(numbered(0, 10), "delivered")
            query.values(10)
            with pytest.raises(DataLost, match=group):
                query.planner.slices(foreign, query.at)
        with a_query(there.home("b"), group, failOnDataLoss="false") as query:
            query.at = foreign
            lost, *_ = query.planner.slices(foreign, query.planner.latest())
            assert isinstance(lost, LostSlice)
            rows = query.batch()
            assert rows[0]["kind"] == "gap"
            assert [row["value"] for row in rows if row["kind"] == "data"] == numbered(0, 10)


def test_a_query_begins_at_a_time_or_a_view(there: Sites) -> None:
    group = a_group_name()
    with a_sender(group, there.home("a")) as sender:
        sender.send_many(numbered(0, 10), "delivered")
        with a_query(there.home("b"), group, startingOffsets="earliest") as query:
            rows = query.batch()
        view = next(row["view_id"] for row in rows if row["kind"] == "view")
        until(lambda: datetime.now(UTC) > rows[-1]["timestamp"])
        middle = datetime.now(UTC).isoformat()
        sender.send_many(numbered(10, 20), "delivered")
        with a_query(there.home("b"), group, startingTimestamp=middle) as query:
            assert query.values(10) == numbered(10, 20)
        with a_query(there.home("b"), group, startingView=view) as query:
            rows = query.batch()
            assert rows[0]["view_id"] == view
            assert len(rows) == 21


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize("reader", ["a", "b"])
def test_what_a_group_said_is_replayed_when_nobody_is_in_it_any_more(there: Sites, reader: str) -> None:
    group = a_group_name()
    with a_sender(group, there.home("a")) as sender:
        sender.send_many(numbered(0, 10), "delivered")
    asked = {"group": group, "interface": "lo", "agent": str(there.home(reader))}
    options = ReadOptions.of(asked, streaming=False)
    planner = Planner(options)
    try:
        rows = RowReader(options, default_schema(options.columns))
        slices = planner.slices(planner.initial(), planner.final())
        found = [row for each in slices for batch in rows.read(each) for row in batch.to_pylist()]
    finally:
        planner.close()
    assert [row["value"] for row in found if row["kind"] == "data"] == numbered(0, 10)


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize("service", ["rso", "rto"])
@pytest.mark.parametrize("starting", ["latest", "earliest"])
def test_in_rso_a_query_begins_where_it_is_told_though_somebody_who_sent_before_is_silent(
    there: Sites, service: str, starting: str
) -> None:
    group = a_group_name()
    with a_sender(group, there.home("a"), service) as one, a_sender(group, there.home("c"), service) as other:
        one.send_many(numbered(0, 5), "delivered")
        other.send_many(numbered(5, 10), "delivered")
        with a_query(there.home("b"), group, delivery="rso", startingOffsets=starting) as query:
            one.send_many(numbered(10, 15), "delivered")
            # What was sent before is in logs of the service by which the senders' sites receive, and either will do.
            before = numbered(0, 10) if starting == "earliest" else []
            wanted = [*before, *numbered(10, 15)]
            assert sorted(query.values(len(wanted)), key=int) == wanted
