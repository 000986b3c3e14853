"""Executors that are not the driver: in two JVMs of one machine, and on hosts of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from intergroup_core.benchmarks.testbed import why_no_namespaces
from intergroup_core.config import Config, NetworkConfig
from tests.integration.agents import logs_of, opened
from tests.integration.groups import a_group_name
from tests.integration.host_members import joined_on_host, until_value
from tests.integration.hosts import Hosts, hosts
from tests.integration.processes import INTERGROUP
from tests.integration.sites import Sites
from tests.spark.clusters import DRIVER, WORKERS, a_cluster, address, cluster_settings
from tests.spark.drivers import Driver, Job, Row, a_driver, spark_environment
from tests.spark.numbered import LAST, as_row, numbered, read_all, up_to_last

SCHEMA = "kind string, sender_id string, seq long, record int, position string, lamport long, view_id string, "
SCHEMA += "value string, members array<string>"
SENDERS = (3, 4)
DEFAULTS = Config(network=NetworkConfig(interface="e0"))
"""As `intergroup send` has them: all who use a site's member have the same."""
MISSING = why_no_namespaces()


def check_equal(spark: SparkSession, rows: list[Row], wanted: list[Row]) -> None:
    assert_df_equality(spark.createDataFrame(rows, SCHEMA), spark.createDataFrame(wanted, SCHEMA))


def test_two_executors_read_what_was_sent_in_order_with_its_views(
    there: Sites, tmp_path: Path, spark: SparkSession
) -> None:
    group = a_group_name()
    options = {"group": group, "interface": "lo", "startingOffsets": "earliest", "minPartitions": "4"}
    jobs = [
        Job(
            directory=tmp_path / executors,
            options=options | {"executors": executors},
            master="local-cluster[2,1,1024]",
            config=cluster_settings("127.0.0.1"),
        )
        for executors in ("auto", "fetch")
    ]
    with numbered(group, [there.home("a"), there.home("b")]) as senders:
        for turn in range(20):
            sender = senders[turn % 2]
            sender.send_more(turn)
        with opened(group, there.home("c"), sender=True, name="passing") as passing:
            passing.send(b"passing:0", ack="delivered")
        senders[0].send_last()
        with a_driver(jobs[0], there.home("q"), available_now=True, also=jobs[1:]) as driver:
            driver.until("ended")
        for job in jobs:
            rows = job.rows()
            assert {row["kind"] for row in rows} == {"data", "view"}
            check_equal(spark, up_to_last(rows), read_all(group, there.home("a")))


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
@pytest.mark.usefixtures("java")
def test_executors_on_other_hosts_join_the_group_or_fetch_and_read_the_same(there: Sites, tmp_path: Path) -> None:
    jobs = [
        Job(
            directory=tmp_path / executors,
            options={
                "group": a_group_name(),
                "interface": "e0",
                "startingOffsets": "earliest",
                "minPartitions": "4",
                "executors": executors,
            },
            config=cluster_settings(address(DRIVER)),
            last=LAST.decode(),
        )
        for executors in ("join", "fetch")
    ]
    with hosts(5) as testbed, a_cluster(there, testbed, tmp_path) as master:
        for job in jobs:
            job.master = master
        with a_driver(jobs[0], there.home(DRIVER), within=testbed.within(DRIVER), also=jobs[1:]) as driver:
            for number, job in enumerate(jobs):
                check_job(job, number, driver, there, testbed)


def check_job(job: Job, number: int, driver: Driver, there: Sites, testbed: Hosts) -> None:
    """Send while the driver runs its query with that number, and compare what it read with what others see."""
    group = job.options["group"]
    with ExitStack() as stack:
        senders = [stack.enter_context(a_sender(group, host, there, testbed)) for host in SENDERS]
        batches = driver.count("has")
        sent = [say(sender, f"s{number}:", 200) for number, sender in enumerate(senders)]
        driver.until("has", batches + 1)
        sent += [say(sender, f"t{number}:", 200) for number, sender in enumerate(senders)]
        driver.until("has", driver.count("has") + 1)
        sent += [say(senders[0], LAST.decode(), 1, numbers=False)]
        driver.until(f"has {LAST.decode()}", number + 1)
        with joined_on_host(group, there.home(SENDERS[0]), start="earliest", config=DEFAULTS) as reader:
            seen = until_value(reader, LAST)
    rows = up_to_last(job.rows())
    assert rows == [as_row(event) for event in seen]
    values = [row["value"] for row in rows if row["kind"] == "data"]
    for records in sent:
        assert [value for value in values if value in set(records)] == records
    assert len(values) == sum(map(len, sent))
    joined = [any(group in str(log) for log in logs_of(there.home(host))) for host in WORKERS]
    assert any(joined) if job.options["executors"] == "join" else not any(joined)


@contextmanager
def a_sender(group: str, host: int, there: Sites, testbed: Hosts) -> Iterator[subprocess.Popen[str]]:
    """Somebody at a terminal of a host, who ends by saying nothing more."""
    sender = subprocess.Popen(
        [*testbed.within(host), INTERGROUP, "send", group, "--interface", "e0"],
        stdin=subprocess.PIPE,
        env=spark_environment(there.home(host)),
        text=True,
        bufsize=1,
    )
    try:
        yield sender
    finally:
        sender.communicate()


def say(sender: subprocess.Popen[str], prefix: str, count: int, *, numbers: bool = True) -> list[str]:
    records = [f"{prefix}{number}" if numbers else prefix for number in range(count)]
    assert sender.stdin is not None
    sender.stdin.write("".join(f"{record}\n" for record in records))
    sender.stdin.flush()
    return records
