"""Readers by `rso` of groups whose senders keep logs by `rto` only, which is what a group mostly is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import intergroup_core as ig
from intergroup_core.api.progress import Progress
from intergroup_core.log.cut_codec import cut_text
from tests.integration.agents import opened, read_until, read_values
from tests.integration.groups import a_group_name
from tests.integration.sites import Sites, sites, stop_agent


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


def numbered(first: int, stop: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, stop)]


def test_a_reader_that_starts_later_and_was_down_gets_all_that_was_sent(there: Sites) -> None:
    group = a_group_name()
    with opened(group, there.home("a"), sender=True, name="anna") as anna:
        anna.send_many(numbered(0, 100), ack="delivered")
        with opened(group, there.home("q"), delivery="rso", start="earliest") as reader:
            anna.send_many(numbered(100, 200), ack="delivered")
            progress = Progress(ig.Service.RSO)
            for event in read_until(reader, lambda event: getattr(event, "value", None) == b"199"):
                progress.passed(event)
        stop_agent(there.home("q"))
        anna.send_many(numbered(200, 300), ack="delivered")
        with opened(group, there.home("q"), delivery="rso", start=cut_text(progress.cut)) as reader:
            assert read_values(reader, 100) == numbered(200, 300)
            anna.send_many(numbered(300, 310), ack="delivered")
            assert read_values(reader, 10) == numbered(300, 310)


def test_what_a_site_sent_itself_by_rto_it_reads_by_rso_also_when_everybody_is_gone(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    with opened(group, home, sender=True, name="desk") as desk:
        desk.send_many(numbered(0, 50), ack="delivered")
        with opened(group, home, delivery="rso", start="earliest") as reader:
            assert read_values(reader, 50) == numbered(0, 50)
    stop_agent(home)
    with (
        opened(group, there.home("elsewhere"), delivery="rso", start="earliest") as reader,
        opened(group, home, sender=True, name="desk") as desk,  # its logs are there with it
    ):
        desk.send_many(numbered(50, 60), ack="delivered")
        assert read_values(reader, 60) == numbered(0, 60)


def test_a_keeper_of_several_lives_gives_all_of_each_sender(there: Sites) -> None:
    group = a_group_name()
    with opened(group, there.home("a"), sender=True, name="anna") as anna:
        for life in range(3):
            with opened(group, there.home("b"), sender=True, name="bert") as bert:
                anna.send_many(numbered(100 * life, 100 * life + 50), ack="delivered")
                bert.send(b"bert %d" % life, ack="all")
            stop_agent(there.home("b"))
            anna.send_many(numbered(100 * life + 50, 100 * life + 100), ack="delivered")
    # Who was there all the time is gone: what the other one missed it has fetched, by its own service.
    with opened(group, there.home("b"), start="earliest") as bert:
        read_until(bert, lambda event: getattr(event, "value", None) == b"299")
        stop_agent(there.home("a"))
        with opened(group, there.home("q"), delivery="rso", start="earliest") as reader:
            events = read_until(reader, lambda event: getattr(event, "value", None) == b"299")
    assert not any(isinstance(event, ig.Gap) for event in events)
    own = [event.value for event in events if isinstance(event, ig.Message) and event.sender == "anna"]
    assert own == numbered(0, 300)
    assert [event.value for event in events if getattr(event, "sender", "") == "bert"] == [
        b"bert %d" % life for life in range(3)
    ]
