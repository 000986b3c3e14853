"""What a stream reader plans and reads when agents, logs and senders come and go."""

from __future__ import annotations

import shutil

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pyspark_intergroup import standstill
from tests.integration.agents import status_of
from tests.integration.groups import a_group_name
from tests.integration.sites import Sites, stop_agent
from tests.spark.numbered import numbered
from tests.spark.restarts import kill_agent
from tests.spark.stepping import stepping, values


@pytest.mark.parametrize("delivery", ["rto", "rso"])
def test_a_batch_is_planned_again_on_a_home_that_is_new(there: Sites, delivery: str) -> None:
    group = a_group_name()
    with numbered(group, [there.home("a")], delivery) as (sender,):
        with stepping(group, there.home("q"), startingOffsets="earliest", delivery=delivery) as query:
            query.until_has(sender.send_more()[-1])
            last = sender.send_more()[-1]
            start, end = query.batch()
            rows = query.rows(start, end)
            rest = query.until_has(last) if last not in values(rows) else []
        stop_agent(there.home("q"))
        shutil.rmtree(there.home("q"))
        missed = sender.send_more()
        with stepping(group, there.home("q"), end, delivery=delivery) as query:
            assert query.rows(start, end) == rows
            assert values(query.until_has(missed[-1])) == [*values(rest), *missed]


def test_all_that_was_sent_before_an_available_now_trigger_is_read_by_it(there: Sites) -> None:
    group = a_group_name()
    with numbered(group, [there.home("a"), there.home("b")]) as senders:
        with stepping(group, there.home("q"), startingOffsets="earliest") as query:
            query.until_has(senders[0].send_more()[-1])
            offset = query.offset
        for turn in range(3):
            end_agent = kill_agent if turn % 2 else stop_agent
            end_agent(there.home("q"))
            sent = [sender.send_more() for sender in senders]
            with stepping(group, there.home("q"), offset) as query:
                rows = query.available_now()
                offset = query.offset
            assert sorted(values(rows)) == sorted(record for each in sent for record in each), turn


def test_when_everybody_is_gone_a_batch_is_planned_again_from_the_logs_here(there: Sites) -> None:
    group = a_group_name()
    home = there.home("q")
    with numbered(group, [there.home("a")]) as (sender,), stepping(group, home, startingOffsets="earliest") as query:
        query.until_has(sender.send_more()[-1])
        sender.send_more()
        start, end = query.batch()
        rows = query.rows(start, end)
    for each in ("q", "a"):
        stop_agent(there.home(each))
    with stepping(group, there.home("q"), end) as query:
        assert query.rows(start, end) == rows
        # That the sender has left may be in the log, or the reader's site had left before.
        assert values(query.available_now()) == []


def test_when_everybody_is_gone_a_new_query_reads_what_is_kept(there: Sites) -> None:
    group = a_group_name()
    home = there.home("q")
    with numbered(group, [there.home("a")]) as (sender,), stepping(group, home, startingOffsets="earliest") as query:
        sent = sender.send_more()
        assert values(query.until_has(sent[-1])) == sent
    for each in ("q", "a"):
        stop_agent(there.home(each))
    with stepping(group, there.home("q"), startingOffsets="earliest") as query:
        assert values(query.available_now()) == sent


@pytest.mark.parametrize("starting", ["earliest", "latest"])
def test_a_query_of_a_group_in_which_nobody_sends_yet_misses_nothing(there: Sites, starting: str) -> None:
    group = a_group_name()
    with stepping(group, there.home("q"), startingOffsets=starting) as query:
        assert query.reader.latestOffset(query.offset, ReadAllAvailable()) == query.offset
        with numbered(group, [there.home("a")]) as (sender,):
            sent = sender.send_more()
            assert values(query.until_has(sent[-1])) == sent


def test_offsets_never_go_back_after_the_agent_began_anew(there: Sites) -> None:
    group = a_group_name()
    home = there.home("q")
    with numbered(group, [there.home("a")]) as (sender,), stepping(group, home, startingOffsets="earliest") as query:
        query.until_has(sender.send_more()[-1])
        for _ in range(3):
            kill_agent(there.home("q"))
            before = query.offset
            for _ in range(5):
                offset = query.reader.latestOffset(before, ReadAllAvailable())
                cuts = [each["groups"][group]["timestamp"] for each in (before, offset)]
                assert cuts == sorted(cuts)
            sent = sender.send_more()
            assert values(query.until_has(sent[-1])) == sent


def test_in_rso_what_a_sender_sent_that_is_gone_by_now_is_read_too(there: Sites) -> None:
    group = a_group_name()
    with numbered(group, [there.home("a"), there.home("b")], "rso") as (stays, goes):
        with stepping(group, there.home("q"), startingOffsets="earliest", delivery="rso") as query:
            first = [*stays.send_more(), *goes.send_more()]
            rows = query.until_has(goes.sent[-1])
            rows += query.until_has(stays.sent[-1]) if stays.sent[-1] not in values(rows) else []
            assert sorted(values(rows)) == sorted(first)
            offset = query.offset
        stop_agent(there.home("q"))
        more = goes.send_more()
        goes.close()
        more += stays.send_more()
        with stepping(group, there.home("q"), offset, delivery="rso") as query:
            assert sorted(values(query.available_now())) == sorted(more)


@pytest.mark.parametrize("delivery", ["rto", "rso"])
def test_what_was_acknowledged_to_a_sender_is_there_for_who_comes_after(there: Sites, delivery: str) -> None:
    group = a_group_name()
    with numbered(group, [there.home("a"), there.home("b")], delivery) as senders:
        options = {"startingOffsets": "earliest", "delivery": delivery}
        with stepping(group, there.home("q"), **options) as query:
            query.until_has(senders[0].send_more()[-1])
            for turn in range(10):
                sent = senders[turn % 2].send_more(1)
                assert values(query.available_now()) == sent, turn


@pytest.mark.parametrize("level", ["k:2", "majority"])
@pytest.mark.parametrize("delivery", ["rto", "rso"])
def test_a_reader_may_want_so_many_sites_to_have_its_rows(
    there: Sites, delivery: str, level: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(standstill, "PATIENCE_SECONDS", 1.0)
    group = a_group_name()
    options = {"startingOffsets": "earliest", "delivery": delivery}
    with numbered(group, [there.home("a"), there.home("b")], delivery) as senders:
        sent = [record for sender in senders for record in sender.send_more()]
        with stepping(group, there.home("q"), readLevel=level, **options) as query:
            rows = query.until_has(sent[-1])
            assert sorted(values(rows)) == sorted(sent)
            sent = senders[0].send_more()
            assert values(query.until_has(sent[-1])) == sent
            sent = senders[1].send_more()
            assert values(query.available_now()) == sent
        with stepping(group, there.home("q"), query.offset, readLevel="k:3", **options) as query:
            assert values(query.available_now()) == []  # it is in the group now
            senders[0].send_more()
            assert values(query.available_now()) == []  # there are two such sites, which is said
            assert "3 log-holding sites besides this one must have what comes next, and there are 2" in caplog.text


@pytest.mark.parametrize("delivery", ["rto", "rso"])
def test_what_is_committed_is_not_held_any_more(there: Sites, delivery: str) -> None:
    group, home = a_group_name(), there.home("q")
    with (
        numbered(group, [there.home("a")], delivery) as (sender,),
        stepping(group, home, startingOffsets="earliest", delivery=delivery) as query,
    ):
        query.until_has(sender.send_more()[-1])
        for _ in range(2):
            query.until_has(sender.send_more()[-1])
            (stream,) = status_of(home)["streams"]
            assert [reader["behind_entries"] for reader in stream["readers"]] > [0]
            query.reader.commit(query.offset)
            (stream,) = status_of(home)["streams"]
            assert [reader["behind_entries"] for reader in stream["readers"]] == [0]
