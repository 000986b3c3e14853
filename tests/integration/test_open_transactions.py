"""Transactions that are staged and not decided: what logs keep of them, and what sites know that come meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from intergroup_core.client.staging import plain_rows
from intergroup_core.client.transacting import TransactionClient
from intergroup_core.errors import LogError
from intergroup_core.log.reader import LogReader
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.transaction.codec import listed
from intergroup_core.transaction.transactions import Verdict
from tests.integration.agents import QUICK, logs_of, status_of, until
from tests.integration.groups import a_group_name
from tests.integration.sites import Sites, sites
from tests.integration.test_agent_transactions import Cluster
from tests.integration.transactions import Writer, a_client, propose, remembered, visible

SMALL = replace(QUICK, log=replace(QUICK.log, segment_bytes=65_536, retention_bytes=262_144))
PLAIN = [b"x" * 1_000] * 400
"""More than the limit, with the next ones."""
TRIES = 20


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


def first_entry(home: Path) -> int:
    (stream,) = status_of(home)["streams"]
    found: int = stream["log"]["first"]
    return found


def send_plain(client: TransactionClient) -> None:
    client.stage(None, plain_rows(PLAIN))
    client.staged("delivered", 10.0)


def staged_in(home: Path, attempt: int) -> int:
    """Rows of an attempt that a site's log has."""
    (log,) = logs_of(home)
    for _ in range(TRIES):
        with suppress(LogError):  # the agent removes files meanwhile
            reader = LogReader(FileDisk(log))
            chunks = (entry.chunk() for entry in reader.entries(reader.first) if entry.header.records)
            messages = (message for chunk in chunks for message in chunk.messages())
            return sum(len(each.records()) for each in messages if (label := each.label()) and label.attempt == attempt)
    raise AssertionError(f"{log} cannot be read")


def test_what_open_transactions_staged_stays_in_the_log_until_they_are_over(there: Sites) -> None:
    home = there.home()
    with closing(a_client(a_group_name(), home, "anna", SMALL)) as client:
        check_what_is_kept(client, home)


def check_what_is_kept(client: TransactionClient, home: Path) -> None:
    send_plain(client)
    writer, forgotten = Writer(client, "query"), Writer(client, "forgotten")
    rows = [b"%d" % number for number in range(500)]
    staged = writer.stage(0, rows, ack="delivered")
    for _ in range(4):
        send_plain(client)
    until(lambda: first_entry(home) > 0)
    before = first_entry(home)
    assert staged_in(home, staged.attempt) == 500
    assert writer.commit(0, staged)
    assert visible(home) == [rows]

    # One that nobody commits holds the log for as long as it may take, in the time of the group.
    left = forgotten.stage(0, [b"nobody's"], ack="delivered", timeout_s=2)
    for _ in range(4):
        send_plain(client)
    until(lambda: first_entry(home) > before)
    assert staged_in(home, left.attempt) == 1

    def is_freed() -> bool:
        send_plain(client)
        return staged_in(home, left.attempt) == 0

    until(is_freed)


def test_sites_that_come_later_know_what_was_staged_and_proposed_and_see_the_decision(there: Sites) -> None:
    with closing(Cluster(there, "anna")) as cluster:
        check_late_joiners(cluster)


def check_late_joiners(cluster: Cluster) -> None:
    there = cluster.there
    writer, other = Writer(cluster.clients["anna"], "query"), Writer(cluster.clients["anna"], "other")
    assert writer.commit(0, writer.stage(0, [b"before"]))
    staged, kept = writer.stage(1, [b"staged before anybody came"]), other.stage(5, [b"open"])

    cluster.open("bert")
    proposal = writer.proposal(1, staged)
    assert asyncio.run(propose(cluster.group, proposal, leaves=True)).verdict is Verdict.TAKEN

    newcomer = Writer(cluster.open("carl"), "query", writer.run)
    for name in ("anna", "bert", "carl"):
        assert cluster.clients[name].committed("query") == 0
    # Whoever comes may decide it, also where its own log does not have what it is about.
    assert not newcomer.commit(1, staged)
    for name in ("anna", "bert", "carl"):
        until(lambda name=name: cluster.clients[name].committed("query") == 1)
    known = [listed(remembered(there.home(name)).transactions) for name in ("anna", "bert", "carl")]
    assert known[0] == known[1] == known[2]
    assert other.commit(5, kept)
    assert newcomer.commit(2, newcomer.stage(2, [b"by the newcomer"]))
    cluster.see([[b"before"], [b"staged before anybody came"], [b"open"], [b"by the newcomer"]], "anna")
