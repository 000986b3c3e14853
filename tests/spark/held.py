"""Tasks that wait before they read until a test lets them, so that something can happen in the middle of a batch."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from intergroup_core.runtime.home import HOME_VARIABLE
from pyspark_intergroup.options import ReadOptions
from pyspark_intergroup.source import InterGroupSource
from pyspark_intergroup.stream_reader import GroupStreamReader

GATE = "gate"
HELD_SECONDS = 90.0
"""A task that does not come so long has failed; most of it is the start of an executor on a busy machine."""
_MOST_BYTES = 4096


class HeldSource(InterGroupSource):
    """The source itself, whose tasks first go to a gate."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__({name: value for name, value in options.items() if name != GATE})
        self._gate = options[GATE]

    @classmethod
    def name(cls) -> str:
        return "held"

    def streamReader(self, schema: StructType) -> GroupStreamReader:  # noqa: N802
        return _HeldReader(self._read_options(schema, streaming=True), schema, self._gate)


class _HeldReader(GroupStreamReader):
    def __init__(self, options: ReadOptions, schema: StructType, gate: str) -> None:
        super().__init__(options, schema)
        self._gate = gate

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_gate": self._gate}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with socket.socket(socket.AF_UNIX) as gate, suppress(ConnectionError):  # nobody holds up anybody any more
            gate.connect(self._gate)
            gate.sendall(json.dumps({"home": os.environ[HOME_VARIABLE], "pid": os.getpid()}).encode())
            gate.recv(_MOST_BYTES)
        yield from super().read(partition)


class HeldTask:
    """One attempt of a task, at the gate."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        told = json.loads(connection.recv(_MOST_BYTES))
        self.home = Path(told["home"])
        """Of the site that it runs at."""
        self._pid: int = told["pid"]

    def go(self) -> None:
        with closing(self._connection):
            self._connection.sendall(b"go")

    def kill(self) -> None:
        """End the process that runs it."""
        with closing(self._connection):
            os.kill(self._pid, signal.SIGKILL)


class Gate:
    """Where tasks arrive, from whichever host."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self.path = Path(server.getsockname())

    def next(self) -> HeldTask:
        connection, _ = self._server.accept()
        connection.settimeout(HELD_SECONDS)
        return HeldTask(connection)

    def one_of_each(self, *homes: Path) -> list[HeldTask]:
        """Tasks at each of some sites, none of which has a core for a second one."""
        tasks = {task.home: task for task in (self.next() for _ in homes)}
        return [tasks[home] for home in homes]

    def open(self) -> None:
        """For all that come from now on."""
        self._server.close()


@contextmanager
def a_gate(directory: Path) -> Iterator[Gate]:
    """In a directory whose path is short enough for a socket."""
    directory.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(directory / GATE))
        server.listen()
        server.settimeout(HELD_SECONDS)
        yield Gate(server)
