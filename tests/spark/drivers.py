"""Spark drivers of tests: a session in this process, and queries in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from intergroup_core.runtime.home import HOME_VARIABLE
from tests.spark.query import CONFIG

QUERY = str(Path(__file__).with_name("query.py"))
PIPELINE = str(Path(__file__).with_name("pipeline.py"))
ROOT = Path(__file__).parents[2]
SPARK_SECONDS = 90.0
"""A driver that needs longer for its next step has failed; most of it is the start of a JVM on a busy machine."""

Row = dict[str, Any]


def a_session(master: str) -> SparkSession:
    builder = SparkSession.builder.master(master)
    for key, value in CONFIG.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def spark_environment(home: Path) -> dict[str, str]:
    """Of a process that belongs to the site in a directory; what it starts finds the same modules as this one."""
    paths = [str(ROOT), str(ROOT / "connector")]
    return os.environ | {
        HOME_VARIABLE: str(home),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONWARNINGS": "ignore",
    }


@dataclass(kw_only=True)
class Job:
    """What a query does, in every run of it."""

    directory: Path
    options: Mapping[str, str]
    master: str = "local[2,4]"
    config: Mapping[str, str] = field(default_factory=dict)
    gate: Path | None = None
    """Where tasks wait to be told to read, if they do."""
    fails: bool = False
    """Whether it is to end with an error, which is then said; another may go on from its checkpoint."""
    last: str | None = None
    """The value with which it ends, if it does."""
    sink: Mapping[str, str] | None = None
    """Of the group it writes to, if it does that."""

    def __post_init__(self) -> None:
        self.batches.mkdir(parents=True, exist_ok=True)

    @property
    def batches(self) -> Path:
        return self.directory / "batches"

    @property
    def program(self) -> str:
        return QUERY if self.sink is None else PIPELINE

    def told(self, trigger: Mapping[str, Any], also: Sequence[Job] = ()) -> Row:
        return {
            "source": dict(self.options),
            "sink": dict(self.sink or {}),
            "master": self.master,
            "options": dict(self.options),
            "config": dict(self.config),
            "checkpoint": str(self.directory / "checkpoint"),
            "batches": str(self.batches),
            "trigger": dict(trigger),
            "fails": self.fails,
            "last": self.last,
            "also": [other.told(trigger) for other in also],
        } | ({"gate": str(self.gate)} if self.gate is not None else {})

    def rows(self) -> list[Row]:
        """All that was written, by batch; what two runs wrote of one batch must be the same."""
        found: dict[int, list[Row]] = {}
        for path in sorted(self.batches.glob("[0-9]*.json")):
            number, rows = int(path.name.partition("-")[0]), json.loads(path.read_text())
            assert found.setdefault(number, rows) == rows, f"batch {number} was other rows when it was read again"
        assert list(found) == list(range(len(found))), f"there are batches {list(found)}"
        return [row for number in sorted(found) for row in found[number]]


class Driver:
    """A run of a query."""

    def __init__(
        self,
        job: Job,
        home: Path,
        *,
        available_now: bool = False,
        within: tuple[str, ...] = (),
        also: Sequence[Job] = (),
    ) -> None:
        """On a host; with other jobs that are run by the same driver once the first has come to an end."""
        trigger = {"availableNow": True} if available_now else {"processingTime": "0 seconds"}
        self._errors = (job.directory / "errors").open("ab")
        self._process = subprocess.Popen(
            [*within, sys.executable, job.program, json.dumps(job.told(trigger, also))],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=spark_environment(home),
            text=True,
        )
        self._job = job
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line.strip())
                self._changed.notify_all()
        with self._changed:
            self._lines.append("query gone")
            self._changed.notify_all()

    def count(self, word: str) -> int:
        """How often it has said something."""
        return sum(line.startswith(f"query {word}") for line in self._lines)

    def until(self, word: str, times: int = 1) -> None:
        """Wait until it has said something so often since it was started."""
        deadline = time.monotonic() + SPARK_SECONDS
        with self._changed:
            while self.count(word) < times:
                assert not self.count("gone"), f"the driver has gone before it said {word!r}: {self.said()}"
                left = deadline - time.monotonic()
                assert left > 0, f"the driver has not said {word!r} in time: {self.said()}"
                self._changed.wait(left)

    def told(self, word: str) -> str:
        """What it said with a word, the last time."""
        return [line for line in self._lines if line.startswith(f"query {word}")][-1].removeprefix(f"query {word} ")

    def said(self) -> str:
        errors = (self._job.directory / "errors").read_text(errors="replace")
        return f"{self._lines[-5:]}\n{errors[-6_000:]}"

    def ended(self) -> None:
        """Wait for the end that it comes to by itself."""
        self.until("ended")
        self._process.wait(SPARK_SECONDS)
        self._done()

    def stop(self) -> None:
        """As somebody does at a terminal."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        self._process.wait(SPARK_SECONDS)
        self.kill()

    def kill(self) -> None:
        """At once, with the JVM and all that it started; an agent is nobody's child."""
        self._signal_all(signal.SIGKILL)
        self._process.wait(SPARK_SECONDS)
        self._done()

    def freeze(self) -> None:
        """It stands still, with the JVM and all that it started, and knows nothing of what happens meanwhile."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        for pid in [*descendants(self._process.pid), self._process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _done(self) -> None:
        self._listener.join(SPARK_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()

    def workers(self) -> list[int]:
        """Python processes that run tasks."""
        daemons = [pid for pid in descendants(self.pid) if "pyspark.daemon" in command_of(pid)]
        return [pid for daemon in daemons for pid in children(daemon)]

    def executors(self) -> list[int]:
        """JVMs beside its own in which tasks are run, where it has a cluster."""
        return [pid for pid in descendants(self.pid) if "CoarseGrainedExecutorBackend" in command_of(pid)]


@contextmanager
def a_driver(job: Job, home: Path, **options: Any) -> Iterator[Driver]:
    driver = Driver(job, home, **options)
    try:
        yield driver
    finally:
        driver.kill()


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name of a process stands in brackets, and may have any in it.
            parent = stat.read_text(errors="replace").rpartition(")")[2].split()[1]
            if int(parent) == pid:
                found.append(int(stat.parent.name))
    return found


def descendants(pid: int) -> list[int]:
    """Those that a process has started, and those that these have."""
    return [each for child in children(pid) for each in (child, *descendants(child))]


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
