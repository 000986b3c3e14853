"""Acknowledgments that count the sites which hold a group's log, and readers that wait for them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest

import intergroup_core as ig
from intergroup_core.benchmarks.testbed import why_no_namespaces
from intergroup_core.client.member import ClientMember
from intergroup_core.config import Config
from intergroup_core.log.cut import OrderCut
from intergroup_core.runtime.home import HOME_VARIABLE
from tests.integration.agents import QUICK, opened, status_of, until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name
from tests.integration.host_members import ON_HOSTS, agent_on, joined_on_host
from tests.integration.hosts import hosts
from tests.integration.processes import INTERGROUP
from tests.integration.sites import Sites, sites

SHORT_SECONDS = 1.5
_MISSING = why_no_namespaces()


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


def with_time(seconds: float) -> Config:
    return replace(QUICK, agent=replace(QUICK.agent, ack_timeout_s=seconds))


class Group:
    """A site that sends and others that hold its log, all known to each other."""

    def __init__(self, there: Sites, *names: str, seconds: float = PATIENCE_SECONDS) -> None:
        self.name = a_group_name()
        self.there = there
        self.config = with_time(seconds)
        self.members: dict[str, ig.BlockingMember] = {}
        for name in names:
            self.join(name)
        for name, member in self.members.items():
            member.send(name.encode(), ack="delivered")
        for name in names:
            until(lambda name=name: self.holders(name) == sorted(names), lambda name=name: self.holders(name))

    def join(self, name: str) -> ig.BlockingMember:
        member = opened(self.name, self.there.home(name), sender=True, name=name, config=self.config)
        member.joined(PATIENCE_SECONDS)
        self.members[name] = member
        return member

    def holders(self, name: str) -> list[str]:
        return holders_at(self.there.home(name))

    def pid(self, name: str) -> int:
        found: int = status_of(self.there.home(name))["pid"]
        return found

    def kill(self, *names: str) -> None:
        for name in names:
            os.kill(self.pid(name), signal.SIGKILL)
            with pytest.raises(ig.IntergroupError):
                self.members[name].send(b"nobody is there", ack="delivered")
            self._end(self.members.pop(name))

    @staticmethod
    def _end(member: ig.BlockingMember) -> None:
        with suppress(ig.IntergroupError):  # its agent may have been killed
            member.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members.values():
            self._end(member)


def intergroup(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [INTERGROUP, *arguments, "--interface", "lo"],
        env=os.environ | {HOME_VARIABLE: str(home)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("level", ["k:1", "k:2", "majority", "all"])
def test_what_is_sent_is_acknowledged_by_those_who_hold_the_log(there: Sites, level: str) -> None:
    with Group(there, "anna", "bert", "carl") as group:
        group.members["anna"].send_many([b"x" * 100] * 1_000, ack=level)
        group.members["anna"].send(b"and this", ack="taken")
        group.members["anna"].flush(level)


@pytest.mark.parametrize("level", ["majority", "all"])
def test_where_one_site_holds_the_log_it_is_enough(there: Sites, level: str) -> None:
    with Group(there, "anna") as group:
        group.members["anna"].send(b"alone", ack=level)


def test_more_sites_than_there_are_cannot_have_it_and_nobody_waits_for_them(there: Sites) -> None:
    too_many = r"ack=k:2 needs 2 log-holding sites besides this one"
    with Group(there, "anna", "bert") as group, pytest.raises(ig.AckUnreached, match=too_many):
        group.members["anna"].send(b"to more", ack="k:2")


def test_one_of_three_may_die_and_is_named_where_it_is_missed(there: Sites) -> None:
    with Group(there, "anna", "bert", "carl", seconds=SHORT_SECONDS) as group:
        group.kill("carl")
        anna = group.members["anna"]
        until(lambda: _reached(anna, "majority"))
        until(lambda: _reached(anna, "all"))  # as soon as it is out of the group
        with pytest.raises(ig.AckUnreached, match=r"2 of 3 log-holding sites .* nothing was heard of carl;"):
            anna.send(b"to all three", ack="k:2")

        # Until somebody says that it will not come back.
        assert intergroup(there.home("bert"), "holders", group.name, "--remove", "nobody").returncode == 2
        removed = intergroup(there.home("bert"), "holders", group.name, "--remove", "carl")
        assert (removed.returncode, removed.stderr) == (0, "")
        until(lambda: group.holders("anna") == ["anna", "bert"])
        with pytest.raises(ig.AckUnreached, match=r"needs 2 log-holding sites besides this one, and group .* has 1"):
            anna.send(b"to all three", ack="k:2")
        shown = intergroup(there.home("anna"), "holders", group.name).stdout
        assert {line.split()[0] for line in shown.splitlines()} == {"anna", "bert"}


def _reached(member: ig.BlockingMember, level: str) -> bool:
    try:
        member.send(b"again", ack=level)
    except ig.AckUnreached:
        return False
    return True


def test_a_minority_never_has_a_majority_also_after_everybody_was_restarted(there: Sites) -> None:
    with Group(there, "anna", "bert", "carl", seconds=SHORT_SECONDS) as group:
        group.kill("bert", "carl")
        anna = group.members["anna"]
        began = time.monotonic()
        with pytest.raises(ig.AckUnreached, match=r"1 of 3 log-holding sites .* heard of bert, carl;"):
            anna.send(b"to more than one", ack="majority")
        assert time.monotonic() - began < PATIENCE_SECONDS

        group.kill("anna")
        again = group.join("anna")
        with pytest.raises(ig.AckUnreached, match=r"1 of 3 log-holding sites"):
            again.send(b"to more than one", ack="majority")
        group.join("bert")
        until(lambda: _reached(again, "majority"))


def test_who_leaves_in_good_order_is_not_counted_any_more(there: Sites) -> None:
    with Group(there, "anna", "bert", "carl", seconds=SHORT_SECONDS) as group:
        for name in ("bert", "carl"):
            group.members.pop(name).leave()
        until(lambda: group.holders("anna") == ["anna"])
        group.members["anna"].send(b"alone again", ack="majority")


def test_a_reader_at_majority_does_not_wait_for_a_site_that_stands_still(there: Sites) -> None:
    with Group(there, "anna", "bert", "carl", "dora") as group:
        client = ClientMember(
            group.name,
            delivery="rto",
            sender=False,
            name=None,
            config=group.config,
            home=there.home("bert"),
            reads=False,
        )
        with closing(client) as watcher:
            stopped = group.pid("carl")
            os.kill(stopped, signal.SIGSTOP)
            try:
                group.members["anna"].send(b"news", ack="majority")
                local = watcher.head("local")
                assert isinstance(local, OrderCut)
                until(lambda: watcher.head("majority") == watcher.head("k:2") == watcher.head("local"))
                assert watcher.head("k:3") != local
            finally:
                os.kill(stopped, signal.SIGCONT)


def test_bad_levels_are_refused_in_one_sentence(there: Sites) -> None:
    with opened(a_group_name(), there.home("anna"), sender=True, config=QUICK) as member:
        for level in ("k:0", "k:", "k:x", "most", "k:1000"):
            with pytest.raises(ig.ConfigError, match=r"ack is .*; it must be one of taken, sent, delivered, k:N"):
                member.send(b"never", ack=level)


@pytest.mark.skipif(_MISSING is not None, reason=str(_MISSING))
def test_only_the_side_of_a_partition_that_has_a_majority_reaches_it(there: Sites) -> None:
    name, names = a_group_name(), ("anna", "bert", "carl")
    homes = {each: there.home(each) for each in names}
    config = replace(ON_HOSTS, agent=replace(ON_HOSTS.agent, ack_timeout_s=3 * SHORT_SECONDS))
    with hosts(3) as testbed, ExitStack() as stack:
        members = {}
        for number, (each, home) in enumerate(homes.items()):
            stack.enter_context(agent_on(testbed, number, home))
            members[each] = stack.enter_context(closing(joined_on_host(name, home, name=each, config=config)))
        for each, member in members.items():
            member.joined(PATIENCE_SECONDS)
            member.send(each.encode(), ack="delivered")
        for home in homes.values():
            until(lambda home=home: holders_at(home) == list(names), lambda home=home: holders_at(home))
        members["anna"].send(b"to all", ack="k:2")

        testbed.part([0, 1], [2])
        members["anna"].send(b"to most", ack="majority")
        members["anna"].send(b"to those who are left", ack="all")
        with pytest.raises(ig.AckUnreached, match=r"2 of 3 log-holding sites .* heard of carl;"):
            members["anna"].send(b"to all", ack="k:2")
        with pytest.raises(ig.AckUnreached, match=r"1 of 3 log-holding sites .* heard of anna, bert;"):
            members["carl"].send(b"to most", ack="majority")

        testbed.join()
        until(lambda: _reached(members["carl"], "majority"))
        until(lambda: _reached(members["anna"], "k:2"))
        assert [holders_at(home) for home in homes.values()] == [list(names)] * 3


def holders_at(home: Path) -> list[str]:
    (stream,) = status_of(home)["streams"]
    found: list[str] = stream["holders"]
    return found
