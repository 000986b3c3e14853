"""Keepers without clients, named subscriptions, and the head that a reader may plan to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import intergroup_core as ig
from intergroup_core.client.directories import site_directories
from intergroup_core.client.member import ClientMember
from intergroup_core.errors import AgentGone
from intergroup_core.ids import Service
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.reader import LogReader
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.home import HOME_VARIABLE
from intergroup_core.runtime.stream_store import StreamStore
from intergroup_core.runtime.subscription_store import SubscriptionStore
from tests.integration.agents import QUICK, logs_of, opened, read_values, status_of, until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name, loopback
from tests.integration.processes import INTERGROUP
from tests.integration.sites import Sites, sites, stop_agent


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


def intergroup(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [INTERGROUP, *arguments],
        env=os.environ | {HOME_VARIABLE: str(home)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_a_keeper_without_a_client_serves_what_its_senders_cannot_any_more(there: Sites) -> None:
    group, keeper = a_group_name(), there.home("keeper")
    daemon = subprocess.Popen(
        [INTERGROUP, "agent", "--keep", group, "--interface", "lo", "--idle", "0.1"],
        env=os.environ | {HOME_VARIABLE: str(keeper)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert daemon.stderr is not None
    assert "listens" in daemon.stderr.readline()
    with opened(group, there.home("sender"), sender=True, config=loopback()) as desk:
        desk.send_many([b"one", b"two"], ack="delivered")
        until(lambda: status_of(keeper)["streams"][0]["log"]["stop"] >= 2)
    stop_agent(there.home("sender"))
    with opened(group, there.home("reader"), start="earliest") as reader:
        assert read_values(reader, 2) == [b"one", b"two"]
    told = intergroup(keeper, "agent", "--keep", f"{group}-2", "--interface", "lo")
    assert (told.returncode, told.stderr) == (0, "")
    assert {stream["group"] for stream in status_of(keeper)["streams"]} == {group, f"{group}-2"}
    assert daemon.poll() is None, "an agent that keeps a group does not end for want of clients"
    assert intergroup(keeper, "agent", "--stop").returncode == 0
    daemon.communicate(timeout=PATIENCE_SECONDS)
    assert daemon.returncode == 0
    again = intergroup(keeper, "agent", "--stop")
    assert (again.returncode, "no agent runs" in again.stderr) == (3, True)


def test_keepers_have_no_gap_when_the_only_one_who_wrote_is_killed(there: Sites, tmp_path: Path) -> None:
    group, homes = a_group_name(), [there.home("keeper"), there.home("other keeper")]
    silence_ms = 200
    settings = tmp_path / "quiet.toml"
    settings.write_text(f"[membership]\nsilence_ms = {silence_ms}\n[network]\ninterface = 'lo'\n")
    daemons = [
        subprocess.Popen(
            [INTERGROUP, "agent", "--keep", group, "--config", str(settings)],
            env=os.environ | {HOME_VARIABLE: str(home)},
            stderr=subprocess.DEVNULL,
        )
        for home in homes
    ]

    def states() -> list[str]:
        return [stream["state"] for home in homes for stream in status_of(home)["streams"]]

    def kept(home: Path) -> list[bytes]:
        with opened(group, home, start="earliest", config=ig.Config.load(settings)) as reader:
            return read_values(reader, 2)

    until(lambda: all(site_directories(home).socket.exists() for home in homes))
    with suppress(AgentGone), opened(group, there.home("writer"), sender=True, config=loopback()) as desk:
        desk.send(b"before", ack="all")
        time.sleep(5 * silence_ms / 1_000)  # a silence that nobody tells of, since it is not to matter
        assert states() == ["sender"] * 2
        os.kill(status_of(there.home("writer"))["pid"], signal.SIGKILL)
    with opened(group, there.home("writer"), sender=True, config=loopback()) as desk:
        desk.send(b"after", ack="all")
        for home in homes:
            assert kept(home) == [b"before", b"after"]
            assert not any(
                len(segment.index.gaps) for log in logs_of(home) for segment in LogReader(FileDisk(log)).segments
            )
    for home, daemon in zip(homes, daemons, strict=True):
        stop_agent(home)
        assert daemon.wait(PATIENCE_SECONDS) == 0


def test_a_subscription_goes_on_where_its_last_reader_had_come(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    with opened(group, home, sender=True, name="desk") as desk:
        with opened(group, home, subscription="audit") as reader:
            with pytest.raises(ig.LocalProtocolError, match="nothing was read"):
                reader.commit()
            desk.send_many([b"%d" % number for number in range(10)], ack="delivered")
            assert read_values(reader, 10) == [b"%d" % number for number in range(10)]
            reader.commit()
        desk.send_many([b"%d" % number for number in range(10, 20)], ack="delivered")
        with opened(group, home, subscription="audit") as reader:
            assert read_values(reader, 10) == [b"%d" % number for number in range(10, 20)]
        with pytest.raises(ig.LocalProtocolError, match="without a subscription"):
            desk.commit()


def test_in_the_midst_of_a_message_only_what_is_before_it_is_committed(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    with opened(group, home, sender=True, name="desk") as desk:
        with opened(group, home, subscription="audit") as reader:
            desk.send_many([b"a"], ack="delivered")
            desk.send_many([b"b", b"c", b"d"], ack="delivered")
            assert read_values(reader, 2) == [b"a", b"b"]
            reader.commit()
        with opened(group, home, subscription="audit") as reader:
            assert read_values(reader, 3) == [b"b", b"c", b"d"]


def test_what_is_committed_at_one_site_is_known_at_the_others_that_hold_the_stream(there: Sites) -> None:
    group, here, other = a_group_name(), there.home("here"), there.home("other")
    with opened(group, here, sender=True, subscription="audit") as desk, opened(group, other) as holder:
        holder.joined(PATIENCE_SECONDS)
        desk.send(b"x", ack="delivered")
        assert read_values(desk, 1) == [b"x"]
        desk.commit()
        until(lambda: subscriptions_at(other) == subscriptions_at(here) != [])
        (listed,) = subscriptions_at(other)
        assert (listed["group_name"], listed["name"], listed["delivery"]) == (group, "audit", "rto")
        assert intergroup(other, "subscription", "rm", group, "audit").returncode == 0
        until(lambda: subscriptions_at(here) == subscriptions_at(other) == [])
        gone = intergroup(other, "subscription", "rm", group, "audit")
        assert (gone.returncode, "no subscription 'audit'" in gone.stderr) == (2, True)


def subscriptions_at(home: Path) -> list[dict[str, Any]]:
    done = intergroup(home, "subscription", "ls", "--json")
    assert done.returncode == 0
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_head_to_plan_to_is_behind_what_everybody_has(there: Sites) -> None:
    group = a_group_name()
    with opened(group, there.home("a"), sender=True, name="anna") as anna, opened(group, there.home("b")) as bert:
        bert.joined(PATIENCE_SECONDS)
        watcher = ClientMember(
            group, delivery="rto", sender=False, name=None, config=QUICK, home=there.home("b"), reads=False
        )
        anna.send_many([b"x"] * 100, ack="delivered")
        (*_, last) = read_events(bert, 100)
        end = OrderCut(last.lamport, int(last.sender_id, 16), None)  # type: ignore[arg-type]

        def heads() -> list[tuple[int, int]]:
            cuts = [watcher.head(level) for level in ("local", "k:1", "majority", "stable")]
            return [(cut.timestamp, cut.sender) for cut in cuts if isinstance(cut, OrderCut)]

        until(lambda: heads() == [(end.timestamp, end.sender)] * 4)
        with pytest.raises(ig.ConfigError, match="local, k:N, majority, stable"):
            watcher.head("most")
        watcher.leave()


def read_events(member: ig.BlockingMember, records: int) -> list[ig.Message]:
    found: list[ig.Message] = []
    while len(found) < records:
        event = member.read(timeout=PATIENCE_SECONDS)
        if isinstance(event, ig.Message):
            found.append(event)
    return found


def test_parts_of_earlier_days_go_when_there_is_too_much(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    for _ in range(4):
        with opened(group, home, sender=True, reads=False) as desk:
            desk.send_many([bytes(10_000)] * 6, ack="delivered")
    store = StreamStore(home / "logs")
    assert len(store.parts(group, Service.RTO)) == 4
    few = {"segment_bytes": 65_536, "retention_bytes": 100_000}
    config = loopback(membership={"bootstrap_wait_ms": 60, "linger_ms": 60}, log=few)
    with opened(group, home, sender=True, config=config, reads=False):
        until(lambda: len(store.parts(group, Service.RTO)) == 2)


def test_what_all_subscriptions_are_done_with_is_released(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    config = loopback(
        membership={"bootstrap_wait_ms": 60, "linger_ms": 60}, log={"segment_bytes": 65_536, "release": True}
    )
    with opened(group, home, sender=True, config=config, subscription="audit") as desk:
        for _ in range(4):
            desk.send_many([bytes(10_000)] * 10, ack="delivered")
        assert len(read_values(desk, 40)) == 40
        assert status_of(home)["streams"][0]["log"]["first"] == 0
        desk.commit()
        with pytest.raises(TimeoutError):
            desk.read(timeout=0.01)  # who asks for more has read what came before
        until(lambda: bool(status_of(home)["streams"][0]["log"]["first"]))
        assert SubscriptionStore(home / "subscriptions").all()[0].name == "audit"
