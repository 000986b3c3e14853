"""A streaming query dies and comes back: every row is in one batch, and a batch that is read again is the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.agents import status_of, until
from tests.integration.groups import a_group_name
from tests.integration.sites import Sites, sites, stop_agent
from tests.spark.drivers import Job
from tests.spark.numbered import Numbered, numbered
from tests.spark.query import COLUMNS, Sink
from tests.spark.restarts import Restarts, check_rows

SEEDS = (2, 3, 1)
"""Between them the driver, the agent, both and a worker are killed."""


@pytest.fixture(scope="module")
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made


@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_is_read_once_and_in_one_order_whatever_is_killed(there: Sites, tmp_path: Path, seed: int) -> None:
    Restarts(there, tmp_path / "query", seed).run()


def run(spark: SparkSession, job: Job, home: Path) -> None:
    """All that there is now, from the checkpoint on; a query that has ended leaves nobody in the group."""
    rows = spark.readStream.format("intergroup").options(**job.options, agent=str(home)).load().select(*COLUMNS)
    query = (
        rows.writeStream.foreachBatch(Sink(job.batches).write)
        .option("checkpointLocation", str(job.directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)


def nothing(home: Path) -> None:
    """The site has its logs still."""


@pytest.mark.parametrize("lose", [nothing, shutil.rmtree], ids=["logs kept", "site lost"])
def test_what_was_sent_while_a_query_and_its_agent_were_gone_is_read_when_it_is_back(
    there: Sites, tmp_path: Path, spark: SparkSession, lose: Callable[[Path], None]
) -> None:
    group, home = a_group_name(), there.home(lose)
    job = Job(directory=tmp_path / "query", options={"group": group, "interface": "lo", "startingOffsets": "earliest"})
    with numbered(group, [there.home("a"), there.home("b")]) as senders:
        send_some(senders)
        run(spark, job, home)
        before = len(job.rows())
        assert before
        until(lambda: not status_of(home)["streams"], lambda: status_of(home))
        stop_agent(home)
        lose(home)
        send_some(senders)
        senders[0].send_last()
        run(spark, job, home)
        assert len(job.rows()) > before
        check_rows(job.rows(), group, there.home("a"), senders, earliest=True)


def send_some(senders: list[Numbered]) -> None:
    for turn in range(20):
        sender = senders[turn % len(senders)]
        sender.send_more(turn)
