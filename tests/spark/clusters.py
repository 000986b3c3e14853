"""A standalone Spark cluster on hosts of a testbed, each of which is a site."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from tests.integration.agents import until
from tests.integration.hosts import Hosts
from tests.integration.sites import Sites
from tests.spark.drivers import ROOT, descendants, spark_environment
from tests.spark.home import QUICK_JVM

SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
SUBNET = "10.77.0"
PORT = 7077
DRIVER, *WORKERS = range(3)
"""Numbers of hosts; the master is with the driver."""


def address(host: int) -> str:
    return f"{SUBNET}.{host + 1}"


class Daemons:
    """JVMs that are part of a cluster."""

    def __init__(self, there: Sites, testbed: Hosts, directory: Path) -> None:
        self._there = there
        self._testbed = testbed
        self._directory = directory
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, host: int, *arguments: str, hidden: Path | None = None) -> Path:
        """On a host; where it says what it does. A host does not see another's directory, though the disk is one."""
        output = self._directory / f"{host}-{len(self._started)}"
        command = shlex.join([SPARK_CLASS, *arguments])
        if hidden is not None:
            command = f"mount -t tmpfs none {shlex.quote(str(hidden))} && exec {command}"
        environment = spark_environment(self._there.home(host)) | {
            "SPARK_LOCAL_IP": address(host),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_WORKER_DIR": str(self._directory / f"work-{host}"),
        }
        with output.open("wb") as said:
            self._started.append(
                subprocess.Popen(
                    [*self._testbed.within(host), "sh", "-c", command],
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    env=environment,
                )
            )
        return output

    def stop(self) -> None:
        for process in self._started:
            for pid in [*descendants(process.pid), process.pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


@contextmanager
def a_cluster(there: Sites, testbed: Hosts, directory: Path) -> Iterator[str]:
    """The URL of its master, which knows its workers."""
    daemons = Daemons(there, testbed, directory)
    try:
        deploy = "org.apache.spark.deploy"
        master = f"spark://{address(DRIVER)}:{PORT}"
        options = ("--host", address(DRIVER), "--port", str(PORT), "--webui-port", "0")
        said = daemons.start(DRIVER, f"{deploy}.master.Master", *options)
        home = there.home(DRIVER)
        home.mkdir(mode=0o700)
        for host in WORKERS:
            options = ("--host", address(host), "--cores", "1", "--memory", "1g", "--webui-port", "0")
            daemons.start(host, f"{deploy}.worker.Worker", *options, master, hidden=home)
        until(lambda: said.read_text().count("Registering worker") == len(WORKERS), said.read_text)
        yield master
    finally:
        daemons.stop()


def cluster_settings(host: str) -> dict[str, str]:
    """Of a driver at an address."""
    return {
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_JVM,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "connector")]),
    }
