"""Transactions through agents: all rows of the attempts that count, or none, at every site's log."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import replace

import pytest

import intergroup_core as ig
from intergroup_core.client.staging import plain_rows
from intergroup_core.client.transacting import TransactionClient
from intergroup_core.config import Config
from intergroup_core.errors import (
    AckUnreached,
    ConfigError,
    IntergroupError,
    LocalProtocolError,
    MessageTooLarge,
    TransactionVoid,
)
from tests.integration.agents import QUICK, opened, status_of, until
from tests.integration.groups import a_group_name
from tests.integration.sites import Sites, sites
from tests.integration.transactions import Writer, a_client, visible

MANY = 20
"""Ten times as many as may have proposed something at a time."""


class Cluster:
    """Sites that hold the log of one group, each with a client that writes."""

    def __init__(self, there: Sites, *names: str, config: Config = QUICK) -> None:
        self.group = a_group_name()
        self.there = there
        self._config = config
        self.clients = {name: a_client(self.group, there.home(name), name, config) for name in names}
        for name, client in self.clients.items():
            client.stage(None, plain_rows([name.encode()]))
            client.staged("delivered", 10.0)
        for name in names:
            until(lambda name=name: self.holders(name) == sorted(names), lambda name=name: self.holders(name))

    def holders(self, name: str) -> list[str]:
        (group,) = status_of(self.there.home(name))["streams"]
        found: list[str] = group["holders"]
        return found

    def kill(self, *names: str) -> None:
        for name in names:
            os.kill(status_of(self.there.home(name))["pid"], signal.SIGKILL)
            self.clients.pop(name).close()

    def states(self, *names: str) -> list[str]:
        return [stream["state"] for name in names for stream in status_of(self.there.home(name))["streams"]]

    def open(self, name: str) -> TransactionClient:
        self.clients[name] = a_client(self.group, self.there.home(name), name, self._config)
        return self.clients[name]

    def close(self) -> None:
        for client in self.clients.values():
            client.close()

    def see(self, wanted: list[list[bytes]], *names: str) -> None:
        """Until these sites' logs show just these transactions."""
        for name in names:
            home = self.there.home(name)
            until(lambda home=home: visible(home) == wanted, lambda home=home: (visible(home), wanted))


Made = Callable[..., Cluster]


@pytest.fixture
def made() -> Iterator[Made]:
    with sites() as there, ExitStack() as stack:

        def make(*names: str, config: Config = QUICK) -> Cluster:
            return stack.enter_context(closing(Cluster(there, *names, config=config)))

        yield make


def test_a_transaction_is_visible_at_every_site_and_what_was_not_committed_nowhere(made: Made) -> None:
    cluster = made("anna", "bert", "carl")
    one, other = Writer(cluster.clients["anna"], "query"), Writer(cluster.clients["bert"], "another")
    staged = one.stage(0, [b"a1", b"a2"])
    lost = one.stage(0, [b"from an attempt that lost"])
    other.stage(0, [b"never committed"])
    assert staged.attempt != lost.attempt
    assert one.commit(0, staged)
    cluster.see([[b"a1", b"a2"]], "anna", "bert", "carl")


def test_what_several_sites_staged_becomes_visible_at_once(made: Made) -> None:
    cluster = made("anna", "bert", "carl")
    writers = {name: Writer(client, "query", "run") for name, client in cluster.clients.items()}
    staged = [writer.stage(7, [name.encode() * 2]) for name, writer in writers.items()]
    assert writers["carl"].commit(7, *staged)
    cluster.see([[b"annaanna", b"bertbert", b"carlcarl"]], "anna", "bert", "carl")
    assert cluster.clients["carl"].committed("query") == 7


def test_a_version_is_committed_once_whoever_tries_again(made: Made) -> None:
    cluster = made("anna", "bert")
    first = Writer(cluster.clients["anna"], "query")
    assert first.commit(3, first.stage(3, [b"first"]))
    again = Writer(cluster.clients["bert"], "query")
    assert not again.commit(3, again.stage(3, [b"again"]))
    assert not first.commit(2)
    assert again.commit(4, again.stage(4, [b"next"]))
    cluster.see([[b"first"], [b"next"]], "anna", "bert")


def test_many_applications_that_commit_at_once_all_get_through(made: Made) -> None:
    cluster = made("anna", "bert", "carl")
    homes = [cluster.there.home(name) for name in ("anna", "bert", "carl")]

    def commit(number: int) -> bool:
        with closing(a_client(cluster.group, homes[number % 3], None)) as client:
            writer = Writer(client, f"app {number}")
            return writer.commit(0, writer.stage(0, [b"%d" % number]), seconds=30.0)

    with ThreadPoolExecutor(MANY) as pool:
        assert all(pool.map(commit, range(MANY)))
    for home in homes:
        until(lambda home=home: sorted(visible(home)) == sorted([b"%d" % number] for number in range(MANY)))


def test_a_run_that_others_took_over_from_is_void(made: Made) -> None:
    cluster = made("anna", "bert")
    old = Writer(cluster.clients["anna"], "query")
    staged = old.stage(1, [b"old"])
    new = Writer(cluster.clients["bert"], "query")
    new_staged = new.stage(1, [b"new"])
    with pytest.raises(TransactionVoid, match="newer run"):
        old.commit(1, staged)
    assert new.commit(1, new_staged)
    cluster.see([[b"new"]], "anna", "bert")


def test_a_majority_goes_on_when_a_site_dies_and_a_minority_does_not(made: Made) -> None:
    cluster = made("anna", "bert", "carl")
    writer = Writer(cluster.clients["anna"], "query")
    assert writer.commit(0, writer.stage(0, [b"all"]))
    cluster.kill("carl")
    assert writer.commit(1, writer.stage(1, [b"two of three"]))
    cluster.see([[b"all"], [b"two of three"]], "anna", "bert")
    staged = writer.stage(2, [b"one of three"])
    cluster.kill("bert")
    with pytest.raises(AckUnreached, match=r"nothing was heard of bert, carl|nothing was heard of bert|carl"):
        writer.commit(2, staged, seconds=3.0)
    assert visible(cluster.there.home("anna")) == [[b"all"], [b"two of three"]]


def test_a_transaction_that_was_staged_goes_on_after_all_were_restarted(made: Made) -> None:
    cluster = made("anna", "bert")
    writer = Writer(cluster.clients["anna"], "query")
    assert writer.commit(0, writer.stage(0, [b"before"]))
    cluster.kill("anna", "bert")
    new = Writer(cluster.open("bert"), "query")
    cluster.open("anna")
    assert not new.commit(0)
    assert new.commit(1, new.stage(1, [b"after"]))
    cluster.see([[b"before"], [b"after"]], "bert")


def test_what_a_site_staged_before_the_others_had_found_it_again_is_fetched_by_them(made: Made) -> None:
    quiet = replace(QUICK, membership=replace(QUICK.membership, silence_ms=1_000.0))
    cluster = made("anna", "bert", "carl", config=quiet)
    writer = Writer(cluster.clients["anna"], "query")

    def alone() -> bool:
        writer.stage(0, [b"to be the one who sends"], ack="delivered")
        return cluster.states("bert", "carl") == ["receiver"] * 2

    until(alone, lambda: cluster.states("bert", "carl"))
    cluster.kill("anna")
    writer = Writer(cluster.open("anna"), "query")
    assert writer.commit(1, writer.stage(1, [b"said to nobody"]))


def test_a_row_that_is_too_large_is_refused_before_any_is_sent(made: Made) -> None:
    cluster = made("anna")
    writer = Writer(cluster.clients["anna"], "query")
    with pytest.raises(MessageTooLarge, match="row 1 has 9000000 bytes"):
        writer.stage(0, [b"small", b"x" * 9_000_000])
    assert writer.client.staged("delivered", 5.0) is None


def test_one_site_alone_commits_by_itself(made: Made) -> None:
    cluster = made("anna")
    writer = Writer(cluster.clients["anna"], "query")
    for version in range(5):
        assert writer.commit(version, writer.stage(version, [b"%d" % version], ack="delivered"))
    cluster.see([[b"%d" % version] for version in range(5)], "anna")


def test_an_agent_that_dies_leaves_nothing_half_visible(made: Made) -> None:
    cluster = made("anna", "bert", "carl")
    writer = Writer(cluster.clients["anna"], "query")
    staged = writer.stage(0, [b"left behind"])
    cluster.kill("anna")
    with pytest.raises(IntergroupError):
        writer.commit(0, staged)
    new = Writer(cluster.clients["bert"], "query")
    assert new.commit(0, new.stage(0, [b"taken over"]))
    cluster.see([[b"taken over"]], "bert", "carl")


def test_records_of_a_block_become_visible_together_or_not_at_all(made: Made) -> None:
    cluster = made("anna", "bert")
    home = cluster.there.home("anna")
    with opened(cluster.group, home, sender=True, name="anna", reads=False) as member:
        with member.transaction() as txn:
            txn.send(b"one")
            txn.send_many([b"two", b"three"])
        assert txn.committed is True
        lost = member.transaction()
        with suppress(RuntimeError), lost:
            lost.send(b"lost")
            raise RuntimeError
        with pytest.raises(LocalProtocolError, match="is over"):
            lost.send(b"too late")
        for value, new in ((b"first", True), (b"again", False)):
            with member.transaction(app="job", version=1) as counted:
                counted.send(value)
            assert counted.committed is new
    cluster.see([[b"one", b"two", b"three"], [b"first"]], "anna", "bert")


def test_the_same_on_an_event_loop(made: Made) -> None:
    cluster = made("anna")
    home = cluster.there.home("anna")

    async def write() -> None:
        async with ig.join(cluster.group, sender=True, name="anna", config=QUICK, home=home, reads=False) as member:
            async with member.transaction() as txn:
                await txn.send(b"one")
            assert txn.committed
            async with member.transaction() as empty:
                pass
            assert empty.committed is False
            with pytest.raises(ConfigError, match="both app and version"):
                member.transaction(app="job")

    asyncio.run(write())
    cluster.see([[b"one"]], "anna")


def test_a_member_without_a_log_has_no_transactions() -> None:
    with (
        ig.open(a_group_name(), sender=True, config=QUICK, in_process=True, reads=False) as member,
        pytest.raises(LocalProtocolError, match="need the site's agent"),
    ):
        member.transaction()
