"""What was sent before a reader came: from its site's own logs, and from the sites that keep them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import intergroup_core as ig
from intergroup_core.api.progress import Progress
from intergroup_core.log.cut_codec import cut_text
from intergroup_core.log.stream import StreamReader
from intergroup_core.runtime.stream_store import StreamStore
from tests.integration.agents import logs_of, opened, read_until, read_values, records_in, status_of, until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name
from tests.integration.sites import Sites, sites


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


def numbered(first: int, stop: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, stop)]


@pytest.mark.parametrize("delivery", ["rto", "rso"])
def test_a_reader_that_starts_when_nobody_is_there_reads_all_from_a_keeper(there: Sites, delivery: str) -> None:
    group = a_group_name()
    with opened(group, there.home("keeper"), sender=True, delivery=delivery, name="desk") as desk:
        desk.send_many(numbered(0, 300), ack="delivered")
    with opened(group, there.home("late"), delivery=delivery, start="earliest") as late:
        assert read_values(late, 300) == numbered(0, 300)
        with opened(group, there.home("keeper"), sender=True, delivery=delivery, name="desk") as desk:
            desk.send_many(numbered(300, 400), ack="delivered")
            assert read_values(late, 100) == numbered(300, 400)


def test_a_site_reads_its_own_older_logs_first(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    for part in range(3):
        with opened(group, home, sender=True, name="desk") as desk:
            desk.send_many(numbered(100 * part, 100 * part + 100), ack="delivered")
    with opened(group, home, sender=True, name="desk", start="earliest") as desk:
        desk.send(b"now", ack="delivered")
        assert read_values(desk, 301) == [*numbered(0, 300), b"now"]


def test_what_a_site_missed_while_it_was_down_it_fetches_when_it_comes_back(there: Sites) -> None:
    group = a_group_name()
    with opened(group, there.home("a"), sender=True, name="anna") as anna:
        with opened(group, there.home("b")) as reader:
            reader.joined(PATIENCE_SECONDS)
            anna.send_many(numbered(0, 100), ack="delivered")
            assert read_values(reader, 100) == numbered(0, 100)
        anna.send_many(numbered(100, 200), ack="delivered")
        with opened(group, there.home("b"), start="earliest") as again:
            anna.send_many(numbered(200, 300), ack="delivered")
            assert read_values(again, 300) == numbered(0, 300)
        assert holes_of(there.home("b"), group) == []


def holes_of(home: Path, group: str) -> list[object]:
    store = StreamStore(home / "logs")
    return list(StreamReader(store.parts(group, ig.Service.RTO)).holes())


def test_a_killed_agent_goes_on_with_its_lineage(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    desk = opened(group, home, sender=True, name="desk")
    desk.send_many(numbered(0, 100), ack="delivered")
    os.kill(status_of(home)["pid"], signal.SIGKILL)
    with pytest.raises(ig.IntergroupError):
        desk.close()
    with opened(group, home, sender=True, name="desk", start="earliest") as again:
        again.send_many(numbered(100, 200), ack="delivered")
        events = read_until(again, lambda event: isinstance(event, ig.Message) and event.value == b"199")
        assert [event.value for event in events if isinstance(event, ig.Message)] == numbered(0, 200)
        assert not [event for event in events if isinstance(event, ig.Gap)]
        positions = [event.position for event in events]
        assert positions == sorted(positions)


def test_a_site_with_an_empty_disk_catches_up_while_the_group_goes_on_sending(there: Sites) -> None:
    group = a_group_name()
    record = bytes(range(256)) * 40
    with opened(group, there.home("a"), sender=True, name="anna") as anna:
        anna.send_many([record] * 2_000, ack="delivered")
        with opened(group, there.home("b"), start="earliest") as late:
            anna.send_many([record] * 200, ack="delivered")
            assert all(value == record for value in read_values(late, 2_200))
    assert sum(records_in(log) for log in logs_of(there.home("b"))) == 2_200


def test_from_the_earliest_the_first_view_comes_first(there: Sites) -> None:
    group = a_group_name()
    with opened(group, there.home("a"), sender=True, name="anna") as anna:
        first = anna.read(timeout=PATIENCE_SECONDS)
        anna.send(b"x", ack="delivered")
        with opened(group, there.home("b"), start="earliest") as late:
            assert late.read(timeout=PATIENCE_SECONDS) == first


def test_readers_at_three_sites_see_the_same_from_the_same_cut(there: Sites) -> None:
    group = a_group_name()
    with opened(group, there.home("a"), sender=True, name="anna") as anna:
        anna.send_many(numbered(0, 50), ack="delivered")
        with opened(group, there.home("b"), sender=True, name="bert") as bert:
            until(lambda: len(bert.members().senders) == 2)
            bert.send_many(numbered(50, 100), ack="delivered")
        anna.send_many(numbered(100, 150), ack="delivered")
        rows = []
        for site in "abc":
            with opened(group, there.home(site), start="earliest", reads=True) as reader:
                rows.append(read_until(reader, lambda event: getattr(event, "value", None) == b"149"))
        assert rows[0] == rows[1] == rows[2]
        assert {event.kind for event in rows[0]} == {"data", "view"}


@pytest.mark.parametrize("delivery", ["rto", "rso"])
def test_a_reader_goes_on_from_a_cut_in_the_log_that_grows(there: Sites, delivery: str) -> None:
    group, home = a_group_name(), there.home()
    with opened(group, home, sender=True, delivery=delivery, name="desk", start="earliest") as desk:
        for number in numbered(0, 30):
            desk.send(number, ack="delivered")
        progress = Progress(ig.Service(delivery))
        for event in read_until(desk, lambda event: getattr(event, "value", None) == b"19"):
            progress.passed(event)
        assert progress.cut is not None
        with opened(group, home, delivery=delivery, start=cut_text(progress.cut), reads=True) as again:
            desk.send(b"30", ack="delivered")
            assert read_values(again, 11) == numbered(20, 31)
