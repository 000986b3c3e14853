"""Where a task gets its slice when logs differ, sites are gone, or come back: these rows or none."""

from __future__ import annotations

import dataclasses
import shutil
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from intergroup_core.client.fetching import Keeper
from intergroup_core.client.planning import PlanningClient
from intergroup_core.client.range_client import fetch_range
from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import Service
from intergroup_core.log.arrow import ArrowRows
from intergroup_core.log.cut import Cut
from intergroup_core.log.reader import LogReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.runtime.stream_store import StreamStore
from pyspark_intergroup import serving
from pyspark_intergroup.serving import SliceServer
from pyspark_intergroup.slice import LogSlice
from pyspark_intergroup.slicing import Slicer, SliceSizes
from tests.integration.agents import until
from tests.integration.groups import PATIENCE_SECONDS, a_group_name, loopback
from tests.integration.sites import Sites, stop_agent
from tests.spark.numbered import numbered

SOON_SECONDS = 2.0


class Planned:
    """A group of a sender's site and the planner's, and a slice of ten records in it."""

    def __init__(self, there: Sites, stack: ExitStack, service: Service = Service.RTO) -> None:
        self.group = a_group_name()
        self.home = there.home("planner")
        (self.sender,) = stack.enter_context(numbered(self.group, [there.home("sender")]))
        self.client = stack.enter_context(
            PlanningClient(self.group, service, loopback(), self.home, timeout=PATIENCE_SECONDS)
        )
        start = self.head()
        self.records = [f"{self.sender.name}:{number}" for number in range(10)]
        self.sender.send(self.records)
        until(lambda: self.head() != start)
        reader = StreamReader(StreamStore(self.client.logs).parts(self.group, service))
        slicer = Slicer(self.group, service, self.client.keepers(PATIENCE_SECONDS), SliceSizes())
        (self.slice,) = slicer.slices(reader, start, self.head())

    def head(self) -> Cut:
        until(lambda: self.client.head("stable", PATIENCE_SECONDS).cut is not None)
        cut = self.client.head("stable", PATIENCE_SECONDS).cut
        assert cut is not None
        return cut


@pytest.fixture
def planned(there: Sites) -> Iterator[Planned]:
    with ExitStack() as stack:
        yield Planned(there, stack)


def elsewhere(planned: LogSlice) -> LogSlice:
    """As a task has it whose machine is another than the planner's."""
    return dataclasses.replace(planned, parts=("/nowhere",))


def read(wanted: LogSlice, executors: str = "fetch", timeout_s: float = SOON_SECONDS) -> list[str]:
    with SliceServer(loopback(), executors, timeout_s).ranges(wanted) as ranges:
        return [
            value.decode()
            for found in ranges
            for batch in ArrowRows(found.reader, ("value",)).batches(found.start, found.stop)
            for value in batch.column("value").to_pylist()
            if value is not None
        ]


def test_the_planners_own_log_is_read_where_it_lies(planned: Planned) -> None:
    assert read(dataclasses.replace(planned.slice, holders=())) == planned.records


def test_a_slice_is_fetched_from_any_site_that_holds_it(planned: Planned) -> None:
    assert len(planned.slice.holders) == 2
    for holder in planned.slice.holders:
        assert read(dataclasses.replace(elsewhere(planned.slice), holders=(holder,))) == planned.records


def test_an_executor_that_joins_has_what_came_before_it_from_others(
    planned: Planned, there: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERGROUP_HOME", str(there.home("executor")))
    assert read(elsewhere(planned.slice), "join", PATIENCE_SECONDS) == planned.records


def test_a_slice_of_rso_is_read_from_the_log_of_rto_of_the_executors_site_or_fetched_from_there(
    there: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        planned = Planned(there, stack, Service.RSO)
        _, other = planned.slice.holders
        assert read(dataclasses.replace(elsewhere(planned.slice), holders=(other,))) == planned.records
        monkeypatch.setenv("INTERGROUP_HOME", str(there.home("sender")))
        assert read(dataclasses.replace(elsewhere(planned.slice), holders=()), "join") == planned.records
        described = planned.slice.described
        (chain,) = described.sources.values()
        sources = dict.fromkeys(described.sources, dataclasses.replace(chain, digest=1))
        wanted = dataclasses.replace(planned.slice, described=dataclasses.replace(described, sources=sources))
        with pytest.raises(RangeUnavailable):
            read(elsewhere(wanted), "join", 0.1)


def test_a_log_that_holds_something_else_is_not_used(planned: Planned) -> None:
    described = planned.slice.described
    assert described.whole is not None
    other = dataclasses.replace(described, whole=dataclasses.replace(described.whole, digest=1))
    with pytest.raises(RangeUnavailable, match=f"{planned.slice.holders[0].port}.*{planned.slice.holders[1].port}"):
        read(dataclasses.replace(planned.slice, described=other))


def test_a_log_here_that_lost_something_leaves_the_slice_to_others(planned: Planned, tmp_path: Path) -> None:
    (part,) = {Path(part) for part in planned.slice.parts}
    torn = tmp_path / "torn"
    shutil.copytree(part, torn)
    for segment in torn.glob("*.seg*"):
        content = segment.read_bytes()
        segment.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))
    assert read(dataclasses.replace(planned.slice, parts=(str(torn),))) == planned.records


def test_holders_that_are_gone_are_named_within_the_time_that_was_given(planned: Planned, there: Sites) -> None:
    there.stop()
    with pytest.raises(RangeUnavailable) as told:
        read(elsewhere(planned.slice))
    for holder in planned.slice.holders:
        assert f"{holder.host}:{holder.port}" in str(told.value)
    assert f"{SOON_SECONDS:g} s" in str(told.value)


def test_a_holder_that_is_silent_leaves_time_for_the_others(planned: Planned) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        silent = Keeper("silent", "127.0.0.1", nobody.getsockname()[1], b"")
        asked = dataclasses.replace(elsewhere(planned.slice), holders=(silent, *planned.slice.holders))
        assert read(asked, timeout_s=2 * SOON_SECONDS) == planned.records


def test_a_holder_that_comes_back_is_used(planned: Planned, there: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERGROUP_HOME", str(there.home("executor")))
    failed = threading.Event()

    def watched(*arguments: Any) -> LogReader:
        try:
            return fetch_range(*arguments)
        except RangeUnavailable:
            failed.set()
            raise

    monkeypatch.setattr(serving, "fetch_range", watched)
    for home in ("planner", "sender"):
        stop_agent(there.home(home))
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read, elsewhere(planned.slice), "auto", PATIENCE_SECONDS)
        assert failed.wait(PATIENCE_SECONDS)
        with numbered(planned.group, [there.home("sender")]):
            assert reading.result(PATIENCE_SECONDS) == planned.records
