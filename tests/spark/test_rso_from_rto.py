"""Queries by `rso` of groups whose senders keep logs by `rto` only."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark_intergroup.source import InterGroupSource
from tests.integration.groups import a_group_name
from tests.integration.sites import Sites, stop_agent
from tests.spark.numbered import numbered
from tests.spark.stepping import stepping, values


def of(name: str, records: list[str]) -> list[str]:
    return [record for record in records if record.startswith(name)]


def test_a_query_gets_what_was_sent_before_it_and_while_it_was_down(there: Sites) -> None:
    group = a_group_name()
    with numbered(group, [there.home("a"), there.home("b")]) as senders:
        sent = [[*sender.send_more(), *sender.send_more()] for sender in senders]
        with stepping(group, there.home("q"), startingOffsets="earliest", delivery="rso") as query:
            rows: list[str] = []
            while not all(each[-1] in rows for each in sent):
                rows += values(query.rows(*query.batch()))
            for sender, each in zip(senders, sent, strict=True):
                assert of(sender.name, rows) == each
            more = [sender.send_more() for sender in senders]
            start, end = query.batch()
            seen = query.rows(start, end)
            offset = query.offset
        # The next driver is on another machine, and what it plans again it gets from the senders.
        stop_agent(there.home("q"))
        shutil.rmtree(there.home("q"))
        missed = [sender.send_more() for sender in senders]
        with stepping(group, there.home("new"), offset, delivery="rso") as query:
            assert sorted(values(query.rows(start, end))) == sorted(values(seen))
            rest = values(query.available_now())
        for sender, before, after in zip(senders, more, missed, strict=True):
            assert of(sender.name, [*values(seen), *rest]) == [*before, *after]


def test_a_batch_read_replays_it_also_when_the_sender_is_gone(there: Sites) -> None:
    group = a_group_name()
    with numbered(group, [there.home("a")]) as (sender,):
        sent = [*sender.send_more(), *sender.send_more()]
        assert replayed(group, there.home("q")) == sent
    assert replayed(group, there.home("new")) == sent


def replayed(group: str, home: Path) -> list[str]:
    source = InterGroupSource({"group": group, "interface": "lo", "agent": str(home), "delivery": "rso"})
    reader = source.reader(source.schema())
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    return [row["value"].decode() for row in rows if row["kind"] == "data"]
