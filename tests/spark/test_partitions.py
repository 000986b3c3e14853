"""The network parts in the middle of a batch, between the driver's site and executors': the planned rows, or an error.

Only what belongs to the group is cut, so that Spark itself goes on and tries tasks again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import intergroup_core as ig
from intergroup_core.api.blocking import BlockingMember
from intergroup_core.benchmarks.testbed import why_no_namespaces
from intergroup_core.client.channel import Kind
from intergroup_core.client.connection import Connection
from intergroup_core.ids import Service
from intergroup_core.log.arrow import ArrowRows
from intergroup_core.log.reader import LogReader
from intergroup_core.runtime.disk import FileDisk
from tests.integration.agents import logs_of
from tests.integration.groups import PATIENCE_SECONDS, a_group_name
from tests.integration.host_members import agent_on, joined_on_host, until_value, until_view
from tests.integration.hosts import WITHOUT_FILTER, hosts
from tests.integration.sites import Sites
from tests.spark.clusters import DRIVER, WORKERS, a_cluster, address, cluster_settings
from tests.spark.drivers import Job, a_driver
from tests.spark.held import a_gate
from tests.spark.numbered import as_row

ISLAND, MAINLAND = WORKERS
"""Executors: one that is cut off, and one on the driver's side."""
BERT, ANNA = 3, 4
"""Senders: one on either side."""
MANY = 20
"""Records, each in a message of its own: enough for two slices."""
FETCH_SECONDS = 2
SETTINGS = {
    "spark.task.maxFailures": "2",
    # A task that failed at one site is tried at the other.
    "spark.excludeOnFailure.taskAndStage.enabled": "true",
}
OPTIONS = {
    "interface": "e0",
    "startingOffsets": "earliest",
    "minPartitions": "2",
    "minRowsPerTrigger": str(MANY),
    "maxTriggerDelay": "5s",
    "fetchTimeout": f"{FETCH_SECONDS}s",
}
MISSING = why_no_namespaces() or WITHOUT_FILTER


def agent_ports(home: Path, group: str) -> dict[str, int]:
    """Where sites give others what they hold of a group, by their addresses."""
    with Connection.to_agent(home, start=False) as connection:
        keepers = connection.request(Kind.KEEPERS, [group, Service.RTO.value], PATIENCE_SECONDS)
    return {host: port for _, host, port, _ in keepers}


def values_in(logs: list[Path]) -> set[bytes | None]:
    return {
        value
        for log in logs
        for batch in ArrowRows(LogReader(FileDisk(log)), ("value",)).batches()
        for value in batch.column("value").to_pylist()
    }


def check_sentence(error: str, group: str, holders: Mapping[str, int]) -> None:
    """One, which says whose rows were not to be had, where they were looked for, and for how long."""
    (sentence,) = [line for line in error.splitlines() if line.startswith("intergroup_core.errors.")]
    assert f"RangeUnavailable: no site gave group {group} from " in sentence
    assert f" within {FETCH_SECONDS} s " in sentence
    for host, port in holders.items():
        assert f"({host}:{port}) cannot be reached" in sentence


def send(member: BlockingMember, word: str) -> None:
    for number in range(MANY):
        member.send(f"{word} {number}".encode(), ack="delivered")


def last_of(word: str) -> bytes:
    return f"{word} {MANY - 1}".encode()


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
@pytest.mark.usefixtures("java")
def test_a_batch_has_the_rows_that_were_planned_or_none_wherever_its_tasks_are_tried(
    there: Sites, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    group = a_group_name()
    with hosts(5) as testbed, ExitStack() as stack:
        gate = stack.enter_context(a_gate(there.home("gate")))
        master = stack.enter_context(a_cluster(there, testbed, tmp_path))
        for host in (ANNA, BERT):
            stack.enter_context(agent_on(testbed, host, there.home(host)))
        anna = stack.enter_context(joined_on_host(group, there.home(ANNA), name="anna"))
        bert = stack.enter_context(joined_on_host(group, there.home(BERT), name="bert"))
        seen = until_view(anna, "anna", "bert")
        until_view(bert, "anna", "bert")
        send(anna, "first")

        fetching = Job(
            directory=tmp_path / "query",
            options=OPTIONS | {"group": group, "executors": "fetch"},
            master=master,
            config=cluster_settings(address(DRIVER)) | SETTINGS,
            gate=gate.path,
            fails=True,
        )
        joining = replace(fetching, options=OPTIONS | {"group": group, "executors": "join"}, fails=False)
        driver = stack.enter_context(
            a_driver(fetching, there.home(DRIVER), within=testbed.within(DRIVER), also=[joining])
        )
        executors = there.home(ISLAND), there.home(MAINLAND)

        # Nobody who holds the slices can be reached.
        tasks = gate.one_of_each(*executors)
        holders = agent_ports(there.home(ANNA), group)
        assert holders.keys() == {address(host) for host in (DRIVER, ANNA, BERT)}
        testbed.part([DRIVER, ANNA, BERT], WORKERS, only_group=holders)
        cut = time.monotonic()
        for task in tasks:
            task.go()
        for task in gate.one_of_each(*executors):
            task.go()
        driver.until("failed")
        record_property("seconds_from_the_cut_to_the_end_of_the_query", round(time.monotonic() - cut, 1))
        check_sentence(json.loads(driver.told("failed")), group, holders)
        assert fetching.rows() == []

        # They can again, and the query goes on from its checkpoint; its executors join from now on.
        testbed.join()
        for task in gate.one_of_each(*executors):
            task.go()
        driver.until("has first")

        # A batch is planned; the driver and the islands go different ways, meet again, and then its tasks are run.
        send(anna, "common")
        on_island, on_mainland = gate.one_of_each(*executors)
        testbed.part([DRIVER, MAINLAND, ANNA], [ISLAND, BERT], only_group=agent_ports(there.home(ANNA), group))
        seen += until_view(anna, "anna")
        until_view(bert, "bert")
        send(anna, "mainland")
        send(bert, "island")
        testbed.join()
        met = until_view(anna, "anna", "bert")
        # On a machine that stands still for seconds, another view may come after the one in which they met.
        assert [event for event in met if isinstance(event, ig.ViewChange) and event.branches]
        seen += met
        on_island.kill()
        on_mainland.go()
        again = gate.next()
        assert again.home == there.home(MAINLAND)
        again.go()
        driver.until("has common")

        # The next is what only the driver's side has: the island's own log has something else in that place.
        for task in gate.one_of_each(*executors):
            task.go()
        gate.open()
        send(bert, "together")
        seen += until_value(anna, last_of("together"))
        driver.until(f"has {last_of('together').decode()}")
        assert joining.rows() == [as_row(event) for event in seen]
        held = values_in(logs_of(there.home(ISLAND)))
        assert last_of("island") in held
        assert not [value for value in held if value is not None and value.startswith(b"mainland")]
