"""What an agent does when its log cannot keep up with the group, or a reader not with the log."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import intergroup_core as ig
from intergroup_core.benchmarks.testbed import why_no_namespaces
from intergroup_core.ids import Service
from intergroup_core.runtime.stream_store import StreamStore
from tests.integration.agents import logs_of, opened, read_until, read_values, records_in, status_of, until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name, loopback
from tests.integration.sites import Sites, sites, stop_agent

SOON = {"bootstrap_wait_ms": 250, "linger_ms": 60}
NARROW = {"app_queue_bytes": 65_536}
_MISSING = why_no_namespaces()


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


def narrow(slow_reader: str, **log: Any) -> ig.Config:
    """Little room everywhere, so that a megabyte fills it."""
    settings = {"slow_reader": slow_reader, "reader_bytes": 65_536} | log
    return loopback(membership=SOON, network=NARROW, report={"room_bytes": 10_000}, log=settings)


def reader_of(home: Path) -> dict[str, Any]:
    (stream,) = status_of(home)["streams"]
    (reader,) = stream["readers"]
    return reader  # type: ignore[no-any-return]


RECORDS = [bytes([number % 256]) * 10_000 for number in range(300)]


@contextmanager
def a_slow_reader(home: Path, slow_reader: str) -> Iterator[tuple[ig.BlockingMember, ig.BlockingMember]]:
    """One that sends and one that has not begun to read, at one site."""
    group, config = a_group_name(), narrow(slow_reader)
    with (
        opened(group, home, config=config, sender=True, reads=False) as desk,
        opened(group, home, config=config) as slow,
    ):
        yield desk, slow


def test_a_slow_reader_that_spills_holds_nobody_up_and_misses_nothing(there: Sites) -> None:
    with a_slow_reader(there.home(), "spill") as (desk, slow):
        desk.send_many(RECORDS, ack="delivered")
        reader = reader_of(there.home())
        assert reader["slow_reader"] == "spill"
        assert reader["behind_entries"] > 0
        assert read_values(slow, len(RECORDS)) == RECORDS


def test_a_slow_reader_that_blocks_makes_the_senders_wait(there: Sites) -> None:
    with a_slow_reader(there.home(), "block") as (desk, slow):
        sender = threading.Thread(target=lambda: desk.send_many(RECORDS, ack="delivered"))
        sender.start()
        until(lambda: bool(reader_of(there.home())["blocks"]))
        assert sender.is_alive()
        assert read_values(slow, len(RECORDS)) == RECORDS
        sender.join(PATIENCE_SECONDS)
        assert not sender.is_alive()


def test_a_slow_reader_that_may_skip_is_told_where_it_did(there: Sites) -> None:
    with a_slow_reader(there.home(), "gap") as (desk, slow):
        first = slow.read(timeout=PATIENCE_SECONDS)
        assert isinstance(first, ig.ViewChange)
        desk.send_many(RECORDS, ack="delivered")
        read = read_until(slow, lambda event: isinstance(event, ig.Gap))
        assert read[-1].reason == "slow reader"
        again = slow.read(timeout=PATIENCE_SECONDS)
        assert isinstance(again, ig.ViewChange)
        assert again.view_id == first.view_id
        desk.send(b"after the gap")
        assert read_values(slow, 1) == [b"after the gap"]
        seen = sum(isinstance(event, ig.Message) for event in read)
        reader = reader_of(there.home())
        assert reader["skips"] == 1
        assert reader["skipped_bytes"] >= 10_000 * (len(RECORDS) - seen)


@pytest.mark.parametrize("durability", ["memory", "os", "disk"])
def test_what_is_acknowledged_as_delivered_is_in_the_log(there: Sites, durability: str) -> None:
    group, home = a_group_name(), there.home()
    config = loopback(membership=SOON, log={"durability": durability})
    with opened(group, home, sender=True, config=config) as desk:
        for number in range(20):
            desk.send(b"%d" % number, ack="delivered")
            (log,) = logs_of(home)
            assert records_in(log) == number + 1
        assert read_values(desk, 20) == [b"%d" % number for number in range(20)]


def test_what_nobody_reads_any_more_goes_when_there_is_too_much_of_it(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    log = {"segment_bytes": 65_536, "retention_bytes": 300_000}
    config = loopback(membership=SOON, log=log)
    with opened(group, home, sender=True, config=config, reads=False) as desk:
        for _ in range(3):
            desk.send_many(RECORDS[:100], ack="delivered")

        def cut_back() -> bool:
            (stream,) = status_of(home)["streams"]
            found = stream["log"]
            return found["first"] > 0 and found["bytes"] < 1_500_000

        until(cut_back)


def test_what_a_connected_reader_has_not_read_stays_and_holds_up_the_senders(there: Sites) -> None:
    group, home = a_group_name(), there.home()
    log = {"segment_bytes": 65_536, "retention_bytes": 300_000}
    config = loopback(membership=SOON, log=log, network=NARROW)
    records = RECORDS * 2
    with opened(group, home, sender=True, config=config) as desk:
        sender = threading.Thread(target=lambda: [desk.send(record) for record in records])
        sender.start()

        def held_up() -> bool:
            (stream,) = status_of(home)["streams"]
            return stream["log"]["refusal"] == "readers hold more than the log may have"

        until(held_up)
        (stream,) = status_of(home)["streams"]
        assert stream["log"]["first"] == 0
        assert read_values(desk, len(records)) == records
        sender.join(PATIENCE_SECONDS)
        with pytest.raises(TimeoutError):
            desk.read(timeout=0.01)  # who asks for more has read what came before
        until(lambda: not held_up())


@contextmanager
def small_disk(home: Path, size: int) -> Iterator[None]:
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(home)], check=True)
    try:
        yield
    finally:
        stop_agent(home)  # once the disk is gone nobody would find its socket
        subprocess.run(["umount", "--lazy", str(home)], check=True)


@pytest.mark.skipif(_MISSING is not None, reason=f"no file system can be mounted here: {_MISSING}")
def test_a_full_disk_holds_up_the_senders_and_nothing_is_lost_when_there_is_room_again(there: Sites) -> None:
    group = a_group_name()
    config = loopback(membership=SOON, network=NARROW)
    full, other = there.home("full"), there.home("other")
    with small_disk(full, 5_000_000):
        ballast = full / "ballast"
        ballast.write_bytes(bytes(4_000_000))
        with opened(group, full, config=config) as reader, opened(group, other, config=config, sender=True) as desk:
            reader.joined(PATIENCE_SECONDS)
            sender = threading.Thread(target=lambda: desk.send_many(RECORDS, ack="delivered"))
            sender.start()

            def refused() -> bool:
                (stream,) = status_of(full)["streams"]
                return "no room to append" in (stream["log"]["refusal"] or "")

            until(refused)
            assert sender.is_alive()
            ballast.unlink()
            assert read_values(reader, len(RECORDS)) == RECORDS
            sender.join(PATIENCE_SECONDS)
            assert not sender.is_alive()
            assert not refused()
        (log,) = logs_of(full)
        assert records_in(log) == len(RECORDS)


def test_a_log_lies_where_its_first_reader_wants_it_and_others_find_it_there(there: Sites, tmp_path: Path) -> None:
    group, elsewhere = a_group_name(), loopback(membership=SOON, log={"directory": str(tmp_path / "large")})
    with opened(group, there.home(), config=elsewhere, sender=True) as desk:
        desk.send(b"one", ack="delivered")
        with opened(group, there.home(), config=loopback(membership=SOON)) as other:
            desk.send(b"two", ack="delivered")
            assert read_values(other, 1) == [b"two"]
    stop_agent(there.home())
    assert list((tmp_path / "large").rglob("*.segment"))
    (part,) = StreamStore(there.home() / "logs").parts(group, Service.RTO)
    assert records_in(Path(part.where)) == 2
    not_there = loopback(membership=SOON, log={"directory": str(tmp_path / "other")})
    with pytest.raises(ig.ConfigError, match=r"not in .*other/.*; leave the directory out"):
        opened(group, there.home(), config=not_there)
