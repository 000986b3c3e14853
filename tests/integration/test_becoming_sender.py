"""A site's member that did not send, or not for long, sends for a client that comes to do so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from intergroup_core.client.planning import PlanningClient
from intergroup_core.client.staging import plain_rows
from intergroup_core.client.transacting import TransactionClient
from intergroup_core.config import Config
from intergroup_core.ids import Service
from intergroup_core.log.reader import LogReader
from intergroup_core.runtime.disk import FileDisk
from tests.integration.agents import QUICK, logs_of, status_of, until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name
from tests.integration.sites import Sites, sites
from tests.integration.transactions import Writer, visible


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


def a_client(group: str, home: Path, config: Config = QUICK) -> closing[TransactionClient]:
    """Without a name of its own: it sends through the site's member."""
    return closing(TransactionClient(group, config, home, timeout=PATIENCE_SECONDS))


def departures(home: Path) -> list[str]:
    """Why members left the group, by a site's log."""
    reader = LogReader(FileDisk(logs_of(home)[0]))
    views = [next(iter(reader.entries(number, number + 1))).install() for number in reader.view_entries()]
    return [gone.reason for view in views for gone in view.departed]


def test_a_member_that_was_opened_to_read_sends_for_the_next_client(there: Sites) -> None:
    group, home = a_group_name(), there.home("site")
    with (
        PlanningClient(group, Service.RTO, QUICK, home, timeout=PATIENCE_SECONDS),
        a_client(group, home) as client,
    ):
        writer = Writer(client, "app")
        assert writer.commit(0, writer.stage(0, [b"1"]))
        assert visible(home) == [[b"1"]]


def test_a_sender_that_was_silent_for_too_long_sends_for_the_next_client(there: Sites) -> None:
    group, home = a_group_name(), there.home("site")
    quiet = replace(QUICK, membership=replace(QUICK.membership, silence_ms=300.0))

    def state() -> str:
        (stream,) = status_of(home)["streams"]
        return str(stream["state"])

    with a_client(group, there.home("other")) as other:  # the last sender stays one
        other.stage(None, plain_rows([b"hello"]))
        with PlanningClient(group, Service.RTO, quiet, home, timeout=PATIENCE_SECONDS):
            for version in range(2):
                with a_client(group, home, quiet) as client:
                    writer = Writer(client, "app", "run")
                    assert writer.commit(version, writer.stage(version, [b"%d" % version]))
                until(lambda: state() == "receiver", state)
            assert visible(home) == [[b"0"], [b"1"]]


def test_a_sender_that_is_kept_ready_stays_one_however_silent_its_clients_are(there: Sites) -> None:
    group, home = a_group_name(), there.home("site")
    silence_ms, linger_s = 100.0, 1.5
    ready = replace(
        QUICK,
        membership=replace(QUICK.membership, silence_ms=silence_ms),
        agent=replace(QUICK.agent, linger_s=linger_s),
    )

    def state() -> str:
        (stream,) = status_of(home)["streams"]
        return str(stream["state"])

    with a_client(group, there.home("other")) as other:  # the last sender would stay in any case
        other.stage(None, plain_rows([b"hello"]))
        with PlanningClient(group, Service.RTO, ready, home, timeout=PATIENCE_SECONDS):
            for version in range(3):
                with a_client(group, home, ready) as client:
                    writer = Writer(client, "app", "run")
                    assert writer.commit(version, writer.stage(version, [b"%d" % version]))
                    time.sleep(3 * silence_ms / 1_000)  # the silence that is not to matter
                time.sleep(3 * silence_ms / 1_000)
                assert state() == "sender"
            assert visible(home) == [[b"0"], [b"1"], [b"2"]]
            assert departures(home) == []
            until(lambda: state() == "receiver", state)
            assert departures(home) == ["silence"]
