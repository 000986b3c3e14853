"""What plans reads of a group asks its site's agent for, and what a task fetches that is at another site."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from intergroup_core.client.member import ClientMember
from intergroup_core.client.planning import PlanningClient
from intergroup_core.client.range_client import fetch_range
from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import Service
from intergroup_core.log.chain import describe
from intergroup_core.log.cut import Cut, OrderCut
from intergroup_core.log.stream import StreamReader
from intergroup_core.runtime.stream_store import StreamStore
from tests.integration.agents import until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name, loopback
from tests.integration.sites import Sites, sites, stop_agent


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


def a_sender(group: str, home: Path, delivery: str = "rto", name: str | None = None) -> closing[ClientMember]:
    sender = ClientMember(group, delivery=delivery, sender=True, name=name, config=loopback(), home=home, reads=False)
    sender.joined(PATIENCE_SECONDS)
    return closing(sender)


def a_planner(group: str, home: Path, service: Service = Service.RTO) -> PlanningClient:
    return PlanningClient(group, service, loopback(), home, timeout=PATIENCE_SECONDS)


def head_of(planner: PlanningClient, other_than: Cut | None = None, level: str = "stable") -> Cut:
    until(lambda: planner.head(level, PATIENCE_SECONDS).cut not in (None, other_than))
    cut = planner.head(level, PATIENCE_SECONDS).cut
    assert cut is not None
    return cut


def logs_at(planner: PlanningClient) -> StreamReader:
    return StreamReader(StreamStore(planner.logs).parts(planner.group, planner.service))


def test_a_head_that_is_waited_for_is_told_as_soon_as_it_moves(there: Sites) -> None:
    group = a_group_name()
    with a_sender(group, there.home("a")) as sender, a_planner(group, there.home("b")) as planner:
        known = head_of(planner)
        began = time.monotonic()
        assert planner.head("stable", PATIENCE_SECONDS, known=known, wait=0.05).cut == known
        assert time.monotonic() - began >= 0.05
        sender.send_many([b"news"], "delivered")
        head = planner.head("stable", PATIENCE_SECONDS, known=known, wait=PATIENCE_SECONDS)
        assert isinstance(head.cut, OrderCut)
        assert isinstance(known, OrderCut)
        assert known.timestamp < head.cut.timestamp <= head.upto
        assert time.monotonic() - began < PATIENCE_SECONDS


def test_a_reader_goes_on_where_a_named_sender_of_its_site_begins_the_group_anew(there: Sites) -> None:
    """Nobody else has anything of the group: what that sender begins alone continues the site's log."""
    group, home = a_group_name(), there.home("a")
    with a_sender(group, home, name="first") as sender:
        sender.send_many([b"one"], "delivered")
    stop_agent(home)  # so that it has left
    with a_planner(group, home) as planner:
        earliest = planner.earliest(PATIENCE_SECONDS)
        assert earliest is not None
        with pytest.raises(TimeoutError):
            planner.complete(earliest, 1.0)  # nobody sends, and there is no end
        read_upto = planner.reached
        assert isinstance(read_upto, OrderCut)
        with a_sender(group, home, name="second") as sender:
            sender.send_many([b"two"], "delivered")
            head = head_of(planner)
            planner.complete(read_upto, PATIENCE_SECONDS)
            assert logs_at(planner).ranges(earliest, head)


def test_who_comes_back_when_nothing_was_sent_has_everything(there: Sites) -> None:
    group = a_group_name()
    with a_sender(group, there.home("a")) as sender:
        with a_planner(group, there.home("b")) as planner:
            before = head_of(planner)
            sender.send_many([b"one", b"two"], "delivered")
            read_upto = head_of(planner, other_than=before)
        for _ in range(3):
            with a_planner(group, there.home("b")) as planner:
                head_of(planner)
                planner.complete(read_upto, PATIENCE_SECONDS / 3)
                assert logs_at(planner).ranges(before, read_upto)


def test_what_a_site_missed_is_there_once_its_history_is_complete(there: Sites) -> None:
    group = a_group_name()
    with a_sender(group, there.home("a")) as sender:
        with a_planner(group, there.home("b")) as planner:
            begin = head_of(planner)
        sender.send_many([b"%d" % number for number in range(100)], "delivered")
        with a_planner(group, there.home("b")) as planner:
            end = head_of(planner)
            planner.complete(begin, PATIENCE_SECONDS)
            # The sender's site says that it holds the log, and then come the records, bundled.
            assert describe(logs_at(planner), begin, end).messages == 2


def test_a_range_is_fetched_from_a_keeper_and_is_just_what_was_planned(there: Sites, tmp_path: Path) -> None:
    group = a_group_name()
    with a_sender(group, there.home("a")) as sender, a_planner(group, there.home("b")) as planner:
        begin = head_of(planner)
        sender.send_many([b"x" * 1_000] * 1_000, "delivered")
        end = head_of(planner, other_than=begin)
        planned = describe(logs_at(planner), begin, end)
        own, *others = planner.keepers(PATIENCE_SECONDS)
        assert others
        for number, keeper in enumerate((own, *others)):
            fetched = fetch_range(keeper, group, Service.RTO, planned, tmp_path / str(number), timeout=PATIENCE_SECONDS)
            assert describe(fetched, begin, end) == planned


def test_a_keeper_that_is_gone_is_named(there: Sites, tmp_path: Path) -> None:
    group = a_group_name()
    with a_sender(group, there.home("a")) as sender, a_planner(group, there.home("b")) as planner:
        begin = head_of(planner)
        sender.send_many([b"x"], "delivered")
        end = head_of(planner, other_than=begin)
        planned = describe(logs_at(planner), begin, end)
        (own, *_) = planner.keepers(PATIENCE_SECONDS)
    there.stop()
    with pytest.raises(RangeUnavailable, match=str(own.port)):
        fetch_range(own, group, Service.RTO, planned, tmp_path / "fetched", timeout=PATIENCE_SECONDS)


def test_a_site_that_was_ended_and_is_back_is_found_where_it_was(there: Sites, tmp_path: Path) -> None:
    group = a_group_name()
    with a_planner(group, there.home("b")) as planner:
        with a_sender(group, there.home("a")) as sender:
            sender.send_many([b"one", b"two"], "delivered")
        earliest = planner.earliest(PATIENCE_SECONDS)
        assert earliest is not None

        def records() -> int:
            pieces = logs_at(planner).pieces(earliest, head_of(planner))
            return sum(piece.entry.header.records for piece in pieces)

        until(lambda: records() == 2)
        described = describe(logs_at(planner), earliest, head_of(planner))
        holder = planner.keepers(PATIENCE_SECONDS)[0]  # this site itself comes first
    stop_agent(there.home("b"))
    with pytest.raises(RangeUnavailable):
        fetch_range(holder, group, Service.RTO, described, tmp_path / "gone", PATIENCE_SECONDS)
    with a_planner(group, there.home("b")):
        fetched = fetch_range(holder, group, Service.RTO, described, tmp_path / "back", PATIENCE_SECONDS)
        assert sum(segment.index.totals.records for segment in fetched.segments) == 2
