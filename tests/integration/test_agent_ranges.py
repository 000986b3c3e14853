"""Ranges across a partition, a merge and a gap: read the same wherever they are held, refused where nobody has them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

import intergroup_core as ig
from intergroup_core.api.blocking import BlockingMember
from intergroup_core.benchmarks.testbed import why_no_namespaces
from intergroup_core.errors import IntergroupError, RangeUnavailable
from intergroup_core.log.chain import describe, serves
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.cut_codec import cut_text
from tests.integration.agent_crashes import as_row, cut_behind, stream_at
from tests.integration.agents import opened, read_until, status_of
from tests.integration.groups import PATIENCE_SECONDS, a_group_name
from tests.integration.host_members import agent_on, joined_on_host, until_value, until_view
from tests.integration.hosts import hosts
from tests.integration.sites import Sites, sites, stop_agent

_MISSING = why_no_namespaces()


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


def rows(events: list[Any]) -> list[tuple[Any, ...]]:
    """Data, views and gaps, without what a member says of itself in them."""
    return [as_row(event) if isinstance(event, ig.Message) else (event.kind, event.position) for event in events]


def behind(value: bytes, events: list[Any]) -> OrderCut:
    return cut_behind(next(event for event in events if getattr(event, "value", None) == value))


def after(value: bytes, events: list[Any]) -> list[tuple[Any, ...]]:
    at = next(at for at, event in enumerate(events) if getattr(event, "value", None) == value)
    return rows(events[at + 1 :])


@pytest.mark.skipif(_MISSING is not None, reason=str(_MISSING))
def test_what_each_side_of_a_partition_had_is_read_the_same_on_the_other_once_they_met(there: Sites) -> None:
    group = a_group_name()
    with hosts(3) as testbed, ExitStack() as stack:
        homes = [there.home(number) for number in range(3)]
        for number, home in enumerate(homes):
            stack.enter_context(agent_on(testbed, number, home))
        anna = joined_on_host(group, homes[0], name="anna")
        bert = joined_on_host(group, homes[1], name="bert")
        carl = joined_on_host(group, homes[2])
        seen: dict[str, list[Any]] = {"anna": until_view(anna, "anna", "bert")}
        seen["bert"], seen["carl"] = until_view(bert, "anna", "bert"), until_view(carl, "anna", "bert")
        anna.send(b"common", ack="delivered")
        for name, each in (("anna", anna), ("bert", bert), ("carl", carl)):
            seen[name] += until_value(each, b"common")

        testbed.part([0], [1, 2])
        seen["anna"] += until_view(anna, "anna")
        seen["bert"] += until_view(bert, "bert")
        seen["carl"] += until_view(carl, "bert")  # one that has not seen it yet may go on with either side
        for number in range(20):
            anna.send(b"island %d" % number, ack="delivered")
            bert.send(b"mainland %d" % number, ack="delivered")
        testbed.join()
        seen["anna"] += until_view(anna, "anna", "bert")
        assert seen["anna"][-1].branches
        bert.send(b"together", ack="delivered")
        for name, each in (("anna", anna), ("bert", bert), ("carl", carl)):
            seen[name] += until_value(each, b"together")

        # Who was on one side has one stream, across the partition and the merge; what is said of a range tells it
        # from the other side's.
        assert after(b"common", seen["bert"]) == after(b"common", seen["carl"])
        cuts = behind(b"common", seen["anna"]), behind(b"together", seen["anna"])
        streams = [stream_at(home, group) for home in homes]
        told = [describe(stream, *cuts) for stream in streams]
        assert told[1] == told[2] != told[0]
        assert [serves(stream, told[0]) for stream in streams] == [True, False, False]

        # From a cut that only the other side has.
        start = behind(b"island 5", seen["anna"])
        with joined_on_host(group, homes[1], start=start) as reader:
            from_island = until_value(reader, b"together")
        assert rows(from_island)[1:] == after(b"island 5", seen["anna"])
        anna.close()
        stop_agent(homes[0])
        with joined_on_host(group, homes[2], start=start) as reader:
            assert until_value(reader, b"together") == from_island  # the first has gone, the second kept it

        # What was before that, nobody who can be reached has.
        lost = behind(b"island 2", seen["anna"])
        with joined_on_host(group, homes[2], start=lost) as reader, pytest.raises(RangeUnavailable):
            read_while_sending(reader, bert)
        bert.close()
        carl.close()


def read_while_sending(reader: BlockingMember, sender: BlockingMember) -> None:
    """Others are asked again whenever something comes, and after some times no more."""
    while True:
        sender.send(b"tick", ack="delivered")
        with suppress(TimeoutError):
            reader.read(timeout=0.2)


def test_a_range_across_a_gap_says_so_where_it_is_and_is_whole_where_there_was_none(there: Sites) -> None:
    group = a_group_name()
    with opened(group, there.home("b"), name="bert") as bert:
        anna = opened(group, there.home("a"), sender=True, name="anna")
        bert.joined(PATIENCE_SECONDS)
        anna.send(b"before", ack="delivered")
        until_value(anna, b"before")
        seen = until_value(bert, b"before")
        os.kill(status_of(there.home("a"))["pid"], signal.SIGKILL)
        with suppress(IntergroupError):
            anna.close()
        with opened(group, there.home("a"), sender=True, name="anna", start="earliest") as again:
            for number in range(5):
                again.send(b"unseen %d" % number, ack="delivered")
            seen += read_until(bert, lambda event: isinstance(event, ig.Gap))
            seen += until_view(bert, "anna")
            again.send(b"after", ack="delivered")
            seen += until_value(bert, b"after")
            whole = until_value(again, b"after")

            cuts = behind(b"before", whole), behind(b"after", whole)
            with_gap = describe(stream_at(there.home("b"), group), *cuts)
            assert [reason for _, reason in with_gap.gaps] == ["all senders of the view are gone"]
            # What a site says of itself is ordered as well; on a busy machine the last of it comes behind the gap.
            records = sum(isinstance(event, ig.Message) for event in seen) - 1
            assert records <= with_gap.messages <= records + 2
            # Six records, and before them what its site remembers, and the word that it holds the log.
            assert describe(stream_at(there.home("a"), group), *cuts).messages == 8

            # From a cut in what was skipped: the site that has it gives it.
            start = behind(b"unseen 2", whole)
            with opened(group, there.home("b"), start=cut_text(start)) as reader:
                assert rows(until_value(reader, b"after"))[1:] == after(b"unseen 2", whole)
        # What was read across the gap is there, and is the same, whatever was fetched since.
        assert describe(stream_at(there.home("b"), group), *cuts) == with_gap
