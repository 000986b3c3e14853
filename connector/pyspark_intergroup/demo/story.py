"""What happens in the demonstration, from the first sender to the sentence that says what was verified."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from intergroup_core.errors import DemoFailed
from pyspark_intergroup.demo.events import COLUMNS, Record, Seen, Witness, has_gone, seen_in_row
from pyspark_intergroup.demo.java import java_trouble
from pyspark_intergroup.demo.screen import Screen
from pyspark_intergroup.demo.senders import Sender
from pyspark_intergroup.demo.session import local_session, standard_error_to
from pyspark_intergroup.demo.sites import LocalSites
from pyspark_intergroup.demo.verification import Evidence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FIRST = ("paris", "lima", "tokyo")
KILLED = "lima"
LATE = "oslo"
RECORDS_EACH = 10
"""Of every sender in the query's output before the next thing happens."""
PATIENCE_SECONDS = 90.0
"""For any one thing to happen, on a machine that has a lot else to do."""


def run() -> None:
    """The whole of it; DemoFailed where something did not come as promised, with a file that says more."""
    if (trouble := java_trouble()) is not None:
        raise DemoFailed(trouble)
    handle, name = tempfile.mkstemp(prefix="intergroup-demo-", suffix=".log")
    os.close(handle)
    noise = Path(name)
    try:
        with ExitStack() as stack:
            _Story(stack, noise).tell()
    except DemoFailed as failed:
        raise DemoFailed(f"{failed}; what Spark said is in {noise}") from failed
    except Exception as error:
        raise DemoFailed(f"the demonstration broke off ({error!r:.500}); what Spark said is in {noise}") from error
    except BaseException:
        noise.unlink()  # whoever interrupts it does not ask why
        raise
    noise.unlink()


class _Story:
    """One run; whatever it starts is ended with the stack, also when it is interrupted."""

    def __init__(self, stack: ExitStack, noise: Path) -> None:
        self._stack = stack
        self._noise = noise
        self._screen = Screen()
        self._group = f"demo-{os.getpid()}"
        self._sites = stack.enter_context(LocalSites())
        self._senders: dict[str, Sender] = {}
        self._output = Record()
        self._batches = 0

    def tell(self) -> None:
        begun = time.monotonic()
        say, waiting = self._screen.say, self._screen.waiting
        with waiting("Spark starts: its JVM takes some ten seconds"):
            spark = self._spark()
        with waiting(f"{', '.join(FIRST)} join group {self._group} on loopback"):
            for name in FIRST:
                self._join(name)
            witness = Witness(self._group, self._sites.home("witness"))
            self._stack.callback(witness.stop)
        say(f"{', '.join(FIRST)} are in group {self._group}, each at a site of its own; a witness reads at another")
        with waiting("the query starts: its first micro-batch takes some ten seconds"):
            query = self._query(spark)
            self._until(query, "the first views", lambda rows: any(set(FIRST) <= set(row.members) for row in rows))
        for sender in self._senders.values():
            sender.start()
        self._until(query, "records of all", lambda rows: _count(rows, *FIRST) >= RECORDS_EACH)
        say(f"SIGKILL to the agent of {KILLED}, process {self._sites.kill(KILLED)}")
        self._until(query, f"a view without {KILLED}", lambda rows: has_gone(rows, KILLED))
        say(f"{LATE} joins")
        self._join(LATE).start()
        self._until(query, f"records of {LATE}", lambda rows: _count(rows, LATE) >= RECORDS_EACH)
        evidence = self._evidence(query, witness)
        if complaints := evidence.complaints():
            shown = "; ".join(complaints[:3])
            raise DemoFailed(f"NOT verified, {len(complaints)} complaints: {shown}")
        say(evidence.sentence(), "bold green")
        say(f"{time.monotonic() - begun:.0f} s; all that was started is being ended", "dim")

    def _join(self, name: str) -> Sender:
        sender = self._senders[name] = Sender(name, self._group, self._sites.home(name))
        self._stack.callback(sender.leave)
        return sender

    def _spark(self) -> SparkSession:
        with standard_error_to(self._noise):
            spark = local_session("intergroup demo")
        self._stack.callback(spark.stop)
        return spark

    def _query(self, spark: SparkSession) -> StreamingQuery:
        """The one thing that a user would write."""
        events = (
            spark.readStream.format("intergroup")
            .option("group", self._group)
            .option("delivery", "rto")
            .option("startingOffsets", "earliest")
            .option("columns", COLUMNS)
            .option("interface", "lo")
            .option("agent", str(self._sites.home("spark")))
            .load()
        )
        query = (
            events.writeStream.foreachBatch(self._show)
            .option("checkpointLocation", str(self._sites.directory / "checkpoint"))
            .trigger(processingTime="1 second")
            .start()
        )
        self._stack.callback(_stop, query)
        return query

    def _show(self, frame: DataFrame, number: int) -> None:
        if number < self._batches:
            return  # Spark runs a batch again that it does not know to be done
        rows = [seen_in_row(row) for row in frame.orderBy("position").collect()]
        self._batches = number + 1
        if rows:
            self._screen.batch(number, rows)
        self._output.add(rows)

    def _until(self, query: StreamingQuery, what: str, holds: Callable[[list[Seen]], bool]) -> None:
        if self._output.until(holds, PATIENCE_SECONDS, lambda: query.isActive):
            return
        failure: Any = query.exception()
        why = f"the query ended ({str(failure).splitlines()[0]:.300})" if failure else "it took too long"
        raise DemoFailed(f"{what} did not come into the query's output: {why}")

    def _evidence(self, query: StreamingQuery, witness: Witness) -> Evidence:
        """Once the living are done and both readers have all that these were promised."""
        living = {name: sender for name, sender in self._senders.items() if name != KILLED}
        for sender in living.values():
            sender.stop()
        for sender in living.values():
            if sender.failure is not None:
                raise DemoFailed(f"{sender.name} could not send on: {sender.failure}")
        acknowledged = {name: list(sender.acknowledged) for name, sender in living.items()}
        last = {orders[-1] for orders in acknowledged.values() if orders}

        def has_all(rows: list[Seen]) -> bool:
            return last <= {row.value for row in rows}

        self._until(query, "the last records", has_all)
        _stop(query)
        seen = len(self._output.rows)
        if not witness.record.until(lambda rows: len(rows) >= seen, PATIENCE_SECONDS, lambda: witness.alive):
            raise DemoFailed(f"the witness did not read what the query read: {witness.record.failure or 'too slow'}")
        return Evidence(
            query=list(self._output.rows),
            witness=list(witness.record.rows),
            acknowledged=acknowledged,
            killed=KILLED,
        )


def _count(rows: list[Seen], *names: str) -> int:
    """Records of the one of these that has the fewest."""
    return min(sum(row.sender == name for row in rows) for name in names)


def _stop(query: StreamingQuery) -> None:
    with suppress(Exception):  # Spark raises what ended the query; that was told where it was waited for
        query.stop()
