"""The Spark sink on one host and a site that keeps the log on another: starts both, and gives what was found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from intergroup_core.benchmarks.figures import Case
from intergroup_core.benchmarks.testbed import SUBNET, hosts_on_a_bridge, inside
from intergroup_core.errors import AgentUnavailable
from intergroup_core.runtime.home import HOME_VARIABLE

KEPT = ("bench", "bench-2")
"""The groups that the measuring process writes to at levels that need other sites."""
STOP_SECONDS = 30.0
_COMMAND = "from intergroup_core.cli.main import main; main()"

Progress = Callable[[str], None]


def run_spark_sink(*, batches: int, rows: int, namespaces: bool, progress: Progress) -> list[Case]:
    """On two hosts, or as two sites on loopback."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ig-")))
        hosts = stack.enter_context(hosts_on_a_bridge(2)) if namespaces else ["", ""]
        addresses = [f"{SUBNET}.{number}" if host else "lo" for number, host in enumerate(hosts, 1)]
        stack.enter_context(_keeper(hosts[1], addresses[1], directory / "keeper"))
        return _measured(hosts[0], {"batches": batches, "rows": rows, "interface": addresses[0]}, progress)


@contextmanager
def _keeper(host: str, interface: str, home: Path) -> Iterator[None]:
    command = [sys.executable, "-c", _COMMAND, "agent", "--interface", interface]
    for group in KEPT:
        command += ["--keep", group]
    with subprocess.Popen(
        [*(inside(host) if host else ()), *command],
        env=os.environ | {HOME_VARIABLE: str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as keeper:
        try:
            yield
        finally:
            keeper.terminate()
            try:
                keeper.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                keeper.kill()


def _measured(host: str, task: dict[str, object], progress: Progress) -> list[Case]:
    command = [sys.executable, "-m", "pyspark_intergroup.bench.sink", json.dumps(task)]
    with subprocess.Popen(
        [*(inside(host) if host else ()), *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as measuring:
        assert measuring.stderr is not None
        assert measuring.stdout is not None
        said: list[str] = []
        for line in measuring.stderr:
            said.append(line.rstrip())
            progress(said[-1])
        output = measuring.stdout.read().splitlines()
    if measuring.returncode or not output:
        raise AgentUnavailable(f"the benchmark of the sink failed: {' '.join(said[-3:])}")
    return [
        Case(name=each["name"], value=each["value"], unit=each["unit"], ceiling=each["beside"])
        for each in json.loads(output[-1])
    ]
