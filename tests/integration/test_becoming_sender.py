"""A site's member that did not send, or not for long, sends for a client that comes to do so."""

from __future__ import annotations

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
from tests.integration.agents import QUICK, status_of, until
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
