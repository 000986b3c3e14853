"""A site's agent as its clients see it: started on demand, shared, killed, and followed by another."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import intergroup_core as ig
from intergroup_core.client.channel import VERSION, Kind, encode
from intergroup_core.client.connection import Connection
from intergroup_core.client.directories import site_directories
from intergroup_core.client.lock import SiteLock
from intergroup_core.errors import AgentUnavailable
from tests.integration.agents import QUICK, logs_of, opened, read_until, read_values, records_in, status_of, until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name, loopback
from tests.integration.sites import Sites, sites


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


def test_what_one_site_sends_another_reads_and_both_keep(there: Sites) -> None:
    group = a_group_name()
    with opened(group, there.home("a"), sender=True, name="anna") as anna, opened(group, there.home("b")) as bert:
        bert.joined(PATIENCE_SECONDS)
        values = [b"%d" % number for number in range(500)]
        anna.send_many(values, ack="delivered")
        assert read_values(bert, 500) == values
        assert read_values(anna, 500) == values
        assert [peer.name for peer in bert.members().senders] == ["anna"]
    for site in "ab":
        (log,) = logs_of(there.home(site))
        assert records_in(log) == 500


def test_those_at_one_site_share_its_member(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    with opened(group, home, sender=True) as one, opened(group, home) as two, opened(group, home, sender=True) as three:
        assert one.name == two.name == three.name
        one.send(b"first", ack="delivered")
        three.send(b"second")
        assert read_values(one, 2) == read_values(two, 2) == [b"first", b"second"]
        (stream,) = status_of(home)["streams"]
        assert (stream["group"], stream["clients"], len(stream["readers"])) == (group, 3, 3)
        assert len(one.members().senders) == 1


def test_a_second_name_at_a_site_is_a_member_of_its_own_until_its_client_goes(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    with opened(group, home, sender=True, name="anna") as anna:
        with opened(group, home, sender=True, name="bert") as bert:
            bert.send(b"from bert", ack="delivered")
            events = read_until(anna, lambda event: isinstance(event, ig.Message))
            assert (events[-1].sender, events[-1].value) == ("bert", b"from bert")
        gone = read_until(anna, lambda event: isinstance(event, ig.ViewChange) and bool(event.departed))[-1]
        assert [(each.name, each.reason) for each in gone.departed] == [("bert", "left")]


def test_a_reader_that_comes_later_begins_with_the_view_in_force(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    with opened(group, home, sender=True, name="anna") as anna:
        anna.send(b"before", ack="delivered")
        with opened(group, home) as late:
            first = late.read(timeout=PATIENCE_SECONDS)
            assert isinstance(first, ig.ViewChange)
            assert [peer.name for peer in first.members] == ["anna"]
            anna.send(b"after")
            assert read_values(late, 1) == [b"after"]


@pytest.mark.parametrize("delivery", ["uu", "rso"])
def test_other_services_have_logs_of_their_own(there: Sites, delivery: str) -> None:
    group = a_group_name()
    with (
        opened(group, there.home("a"), delivery=delivery) as reader,
        opened(group, there.home("b"), sender=True) as desk,
    ):
        if delivery == "rso":
            reader.joined(PATIENCE_SECONDS)
        desk.send_many([b"x", b"y"], ack="delivered")
        assert sorted(read_values(reader, 2)) == [b"x", b"y"]
        (stream,) = status_of(there.home("a"))["streams"]
        assert stream["delivery"] == delivery
        if delivery == "uu":
            with pytest.raises(ig.ConfigError, match="promises nothing"):
                reader.send(b"z", ack="delivered")


def test_other_settings_for_a_group_that_is_open_are_refused(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    other = loopback(membership={"bootstrap_wait_ms": 61, "linger_ms": 60})
    with (
        opened(group, home, sender=True),
        pytest.raises(ig.ConfigError, match=r"membership\.bootstrap_wait_ms \(250 and 61\)"),
    ):
        opened(group, home, config=other)


def test_too_large_a_record_is_refused_and_nothing_of_its_list_is_sent(there: Sites) -> None:
    with opened(a_group_name(), there.home(), sender=True) as desk:
        with pytest.raises(ig.MessageTooLarge):
            desk.send_many([b"fits", bytes(9_000_000)])
        desk.send(b"next", ack="delivered")
        assert read_values(desk, 1) == [b"next"]


# Clients and agents that go without a word


CLIENT = """
import sys, time
import intergroup_core as ig
config = ig.Config.from_toml(sys.argv[3])
member = ig.open(sys.argv[1], sender=True, name="ghost", home=sys.argv[2], config=config)
member.send(b"boo", ack="delivered")
print("there", flush=True)
sys.stdin.read()
"""
TOML = '[network]\ninterface = "lo"\n[membership]\nbootstrap_wait_ms = 250\nlinger_ms = 60\n'


def a_client(group: str, home: Path) -> subprocess.Popen[str]:
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, group, str(home), TOML],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "there\n"
    return client


def ended(client: subprocess.Popen[str]) -> int:
    client.communicate(timeout=PATIENCE_SECONDS)
    return client.returncode


def test_a_killed_client_is_forgotten_and_its_member_leaves(there: Sites) -> None:
    group = a_group_name()
    with opened(group, there.home("a"), sender=True, name="anna") as anna:
        client = a_client(group, there.home("b"))
        read_until(anna, lambda event: isinstance(event, ig.Message) and event.sender == "ghost")
        client.kill()
        assert ended(client) == -signal.SIGKILL
        gone = read_until(anna, lambda event: isinstance(event, ig.ViewChange) and bool(event.departed))[-1]
        assert [(each.name, each.reason) for each in gone.departed] == [("ghost", "left")]
        until(lambda: status_of(there.home("b"))["clients"] == [])
        assert status_of(there.home("b"))["streams"] == []


def test_when_the_agent_is_killed_its_clients_are_told_and_the_next_one_starts_another(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    member = opened(group, home, sender=True, name="anna")
    member.send_many([b"kept"] * 100, ack="delivered")
    assert len(read_values(member, 100)) == 100
    pid = status_of(home)["pid"]
    failures: list[BaseException] = []

    def wait_for_more() -> None:
        try:
            member.read(timeout=PATIENCE_SECONDS)
        except AgentUnavailable as error:
            failures.append(error)

    reader = threading.Thread(target=wait_for_more)
    reader.start()
    os.kill(pid, signal.SIGKILL)
    reader.join(PATIENCE_SECONDS)
    assert [str(failure) for failure in failures] == [
        "this site's agent has gone; what it had delivered is in its log: join again, and another is started"
    ]
    with pytest.raises(AgentUnavailable, match="join again"):
        member.send(b"lost")
    with pytest.raises(AgentUnavailable):
        member.close()
    (old,) = logs_of(home)
    assert records_in(old) == 100
    with opened(group, home, sender=True, name="anna") as again:
        again.send(b"on we go", ack="delivered")
        assert read_values(again, 1) == [b"on we go"]
        assert status_of(home)["pid"] != pid


def test_a_client_and_its_agent_killed_together_leave_nothing_in_the_way(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    client = a_client(group, home)
    os.kill(status_of(home)["pid"], signal.SIGKILL)
    client.kill()
    ended(client)
    with opened(group, home, sender=True) as next_one:
        next_one.send(b"still here", ack="delivered")
        assert read_values(next_one, 1) == [b"still here"]


def test_a_client_that_reaches_an_agent_as_it_dies_goes_to_the_next(there: Sites) -> None:
    directories = site_directories(there.home())
    directories.make()
    with socket.socket(socket.AF_UNIX) as dying:
        dying.bind(str(directories.socket))
        dying.listen()

        def die() -> None:
            connection, _ = dying.accept()
            dying.close()
            connection.close()

        death = threading.Thread(target=die)
        death.start()
        with Connection.to_agent(there.home()) as connection:
            assert connection.request(Kind.STATUS)["site"] == str(there.home())
        death.join(PATIENCE_SECONDS)


def test_who_comes_while_the_agent_leaves_its_groups_waits_for_the_next(there: Sites) -> None:
    directories = site_directories(there.home())
    directories.make()
    found: list[int] = []

    def come() -> None:
        with Connection.to_agent(there.home()) as connection:
            found.append(connection.request(Kind.STATUS)["pid"])

    client = threading.Thread(target=come)
    with SiteLock(directories.lock):  # as an agent has it that listens no more
        client.start()
        until(lambda: directories.output.exists() and "waits until process" in directories.output.read_text())
    client.join(PATIENCE_SECONDS)
    assert found == [status_of(there.home())["pid"]]


def test_many_clients_that_come_at_once_share_one_agent(there: Sites) -> None:
    home = there.home()
    program = (
        "import sys; from intergroup_core.client.connection import Connection; from intergroup_core.client.channel "
    )
    program += "import Kind; print(Connection.to_agent(sys.argv[1]).request(Kind.STATUS)['pid'])"
    clients = [
        subprocess.Popen([sys.executable, "-c", program, str(home)], stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    pids = {client.communicate(timeout=PATIENCE_SECONDS)[0] for client in clients}
    assert pids == {f"{status_of(home)['pid']}\n"}


def test_an_agent_that_nobody_uses_ends_and_its_log_stays(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    config = ig.Config.from_mapping(QUICK.to_mapping() | {"agent": {"idle_s": 0.2, "linger_s": 0.0}})
    with opened(group, home, sender=True, config=config) as desk:
        desk.send(b"for later", ack="delivered")
    until(lambda: not site_directories(home).socket.exists())
    (log,) = logs_of(home)
    assert records_in(log) == 1


def test_a_member_lingers_for_the_next_client(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    config = ig.Config.from_mapping(QUICK.to_mapping() | {"agent": {"idle_s": 600.0, "linger_s": 60.0}})
    with opened(group, home, sender=True, config=config) as one:
        first = one.id
    with opened(group, home, sender=True, config=config) as two:
        assert two.id == first


# What may come through the socket


def test_the_socket_is_for_its_user_only_and_takes_no_nonsense(there: Sites) -> None:
    home = there.home()
    with Connection.to_agent(home):
        path = site_directories(home).socket
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        hello = encode(Kind.HELLO, 1, [VERSION, os.getpid()])
        for nonsense in (
            b"\xff" * 100,
            b"\x05\x00\x00\x00hello",
            encode(Kind.OPEN, 1, {"group": "g"}),
            hello + encode(Kind.OPEN, 2, {"group": 7}),
            hello + encode(Kind.SEND, 2, [9, b"123", b"", "taken"]),
            hello + encode(Kind.NEXT, 2, [5, 5]),
            hello + encode(Kind.ANSWER, 2, None),
            hello + encode(Kind.CLOSE, 2, "x"),
        ):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(str(path))
                stranger.sendall(nonsense)
                stranger.shutdown(socket.SHUT_WR)
                while stranger.recv(65_536):
                    pass
        assert status_of(home)["streams"] == []


def test_a_client_of_another_version_is_told_what_to_do(there: Sites) -> None:
    said = "speaks version 1 of the local channel, the client 99"
    with Connection.to_agent(there.home()) as connection, pytest.raises(ig.ConfigError, match=said):
        connection.request(Kind.HELLO, [99, 1])


def test_a_forked_process_is_told_to_open_its_own(there: Sites) -> None:
    home = there.home()
    program = (
        "import os, sys\n"
        "from intergroup_core.client.channel import Kind\n"
        "from intergroup_core.client.connection import Connection\n"
        "from intergroup_core.errors import LocalProtocolError\n"
        "connection = Connection.to_agent(sys.argv[1])\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        "        connection.request(Kind.STATUS)\n"
        "    except LocalProtocolError as error:\n"
        "        print('open one here' in str(error), flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print(bool(connection.request(Kind.STATUS)['pid']))\n"
        "print([name for name in ('asyncio', 'pyarrow', 'typer', 'rich') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(home)], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    assert done.stdout == "True\nTrue\n[]\n"
