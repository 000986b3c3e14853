"""What acknowledgments and commits survive, and what they need not: killed agents, lost disks, a network that parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

import intergroup_core as ig
from intergroup_core.benchmarks.testbed import why_no_namespaces
from intergroup_core.client.staging import plain_rows
from intergroup_core.client.transacting import TransactionClient
from intergroup_core.errors import AckUnreached, IntergroupError
from tests.integration.agents import until
from tests.integration.groups import a_group_name
from tests.integration.host_members import ON_HOSTS, joined_on_host, until_value
from tests.integration.host_sites import HostSites, host_sites
from tests.integration.transactions import Writer, a_client, visible

_MISSING = why_no_namespaces()
pytestmark = pytest.mark.skipif(_MISSING is not None, reason=str(_MISSING))
SITES = ("anna", "bert", "carl")
SHORT_SECONDS, LONG_SECONDS = 4.0, 20.0
TO_ALL, TO_TWO, TO_ONE = ("k:2", "all"), ("k:1", "majority"), ("delivered",)
"""Levels that are reached while three sites hear each other, two of them, and one."""


def a_group_at(sites: HostSites) -> tuple[str, dict[str, ig.BlockingMember]]:
    """Members that send, one at each site, which know that all of them hold the log."""
    group = a_group_name()
    members = {name: joined_on_host(group, sites.home(name), name=name) for name in SITES}
    for name, member in members.items():
        member.send(name.encode(), ack="delivered")
    sites.until_all_hold(group)
    return group, members


def close_all(members: Sequence[ig.BlockingMember]) -> None:
    for member in members:
        with suppress(ig.IntergroupError):  # its agent was killed
            member.close()


def read_at(sites: HostSites, group: str, name: str) -> set[str]:
    """The levels of which a reader finds what was sent, that begins from the earliest at a site."""
    with closing(joined_on_host(group, sites.home(name), name=name, start="earliest")) as reader:
        reader.send(b"end", ack="delivered")
        values = [event.value for event in until_value(reader, b"end") if isinstance(event, ig.Message)]
    found = [value.decode() for value in values if value.decode() not in (*SITES, "end")]
    assert len(found) == len(set(found)), found
    return set(found)


@pytest.fixture(scope="module")
def all_sites() -> Iterator[HostSites]:
    with host_sites(*SITES) as made:
        yield made


@pytest.fixture
def sites(all_sites: HostSites) -> HostSites:
    all_sites.restore()
    return all_sites


@pytest.fixture
def there(sites: HostSites) -> Iterator[Committers]:
    with closing(Committers(sites)) as made:
        yield made


class Committers:
    """A client at each of three sites, which know that all of them hold the log."""

    def __init__(self, sites: HostSites) -> None:
        self.sites = sites
        self.group = a_group_name()
        self.clients = {name: self.open(name) for name in SITES}
        for name, client in self.clients.items():
            client.stage(None, plain_rows([name.encode()]))
            client.staged("delivered", 10.0)
        sites.until_all_hold(self.group)

    def open(self, name: str) -> TransactionClient:
        return a_client(self.group, self.sites.home(name), name, ON_HOSTS)

    def writer(self, name: str, run: str | None = None) -> Writer:
        return Writer(self.clients[name], "query", run)

    def see(self, wanted: list[bytes], *names: str) -> None:
        """Until these sites' logs show just these transactions, of a row each."""
        rows = [[row] for row in wanted]
        for name in names:
            home = self.sites.home(name)
            until(lambda home=home: self._seen(home) == rows, lambda home=home: (self._seen(home), rows))

    def _seen(self, home: Path) -> list[list[bytes]]:
        return visible(home, self.group)

    def close(self) -> None:
        for client in self.clients.values():
            client.close()


def test_one_of_two_drivers_on_both_sides_of_a_partition_commits_and_all_agree_afterwards(there: Committers) -> None:
    first = there.writer("anna")
    assert first.commit(0, first.stage(0, [b"all"]))
    there.sites.part(["anna", "bert"], ["carl"])
    many, few = there.writer("anna"), there.writer("carl")

    def commit(writer: Writer, ack: str) -> bool | IntergroupError:
        try:
            return writer.commit(1, writer.stage(1, [ack.encode()], ack=ack), seconds=SHORT_SECONDS)
        except AckUnreached as error:
            return error

    with ThreadPoolExecutor() as pool:
        made, refused = pool.map(commit, (many, few), ("majority", "delivered"))
    assert made is True
    assert "nothing was heard of anna, bert" in str(refused)

    there.sites.join()
    again = there.writer("carl")
    assert again.commit(1, again.stage(1, [b"again"], ack="delivered"), seconds=LONG_SECONDS) is False
    assert again.commit(2, again.stage(2, [b"together"]), seconds=LONG_SECONDS) is True
    there.see([b"all", b"majority", b"together"], "anna", "bert")
    there.see([b"all", b"together"], "carl")  # what the others sent alone is in their logs
    assert [client.committed("query") for client in there.clients.values()] == [2, 2, 2]

    # One is cut off right before it proposes: only its own site hears of that, until it comes back.
    staged = again.stage(3, [b"cut off"])
    there.sites.part(["anna", "bert"], ["carl"])
    with ThreadPoolExecutor() as pool:
        coming_back = pool.submit(again.commit, 3, staged, seconds=LONG_SECONDS)
        there.clients["anna"].stage(None, plain_rows([b"without carl"]))
        there.clients["anna"].staged("all", LONG_SECONDS)
        there.sites.join()
        assert coming_back.result() is True
    there.sites.lose("carl")
    there.see([b"all", b"majority", b"together", b"cut off"], "anna", "bert")


def test_what_was_acknowledged_survives_what_its_level_says(sites: HostSites) -> None:
    group, members = a_group_at(sites)
    anna = members["anna"]
    for level in TO_ALL:
        anna.send(level.encode(), ack=level)
    sites.part(["anna", "bert"], ["carl"])
    for level in TO_TWO:
        anna.send(level.encode(), ack=level)
    sites.part(["anna"], ["bert"], ["carl"])
    for level in TO_ONE:
        anna.send(level.encode(), ack=level)
    anna.send(b"sent", ack="sent")
    sites.kill(*SITES)
    close_all([*members.values()])

    # Each comes back by itself: as if all others were lost with their disks.
    sites.start(*SITES)
    with ThreadPoolExecutor() as pool:
        found = dict(zip(SITES, pool.map(lambda name: read_at(sites, group, name), SITES), strict=True))
    assert found["anna"] - {"sent"} == {*TO_ALL, *TO_TWO, *TO_ONE}
    assert found["bert"] == {*TO_ALL, *TO_TWO}
    assert found["carl"] == {*TO_ALL}

    # Who comes back without its disk reads what another site has.
    sites.lose("anna")
    sites.restore()
    with closing(joined_on_host(group, sites.home("bert"), name="bert")) as bert:
        assert read_at(sites, group, "anna") == {*TO_ALL, *TO_TWO}

        # What left a site is with the others, unless the network loses it.
        anna = joined_on_host(group, sites.home("anna"), name="anna")
        anna.send(b"sent", ack="sent")
        sites.kill("anna")
        until_value(bert, b"sent")
        close_all([anna])


def test_a_commit_survives_the_loss_of_a_site_before_it_and_of_another_after_it(there: Committers) -> None:
    bert = there.writer("bert", "run")
    of_one_lost = there.writer("anna", "run").stage(0, [b"staged at anna"])
    there.sites.lose("anna")
    assert bert.commit(0, of_one_lost)
    assert bert.commit(1, bert.stage(1, [b"after that"]))
    there.sites.lose("bert")
    there.see([b"staged at anna", b"after that"], "carl")

    last = there.writer("carl", "run")
    with pytest.raises(AckUnreached, match="nothing was heard of anna, bert"):
        last.commit(2, last.stage(2, [b"alone"], ack="delivered"), seconds=SHORT_SECONDS)
    assert there.clients["carl"].committed("query") == 1
    there.see([b"staged at anna", b"after that"], "carl")
