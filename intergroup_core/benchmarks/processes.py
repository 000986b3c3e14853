"""Processes of a benchmark: started together, told what to do by lines of JSON, never left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from intergroup_core.benchmarks.channel import Fields, parse_line
from intergroup_core.errors import IntergroupError

ANSWER_SECONDS = 60.0
"""Longest wait for a process to answer before the benchmark fails."""
_LINE_LIMIT = 1 << 24
_PAGE = os.sysconf("SC_PAGE_SIZE")


class BenchmarkFailed(IntergroupError):
    """A process of a benchmark ended early, went silent or saw wrong data."""


class Worker:
    """One process and what it says."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def resident_bytes(self) -> int:
        """The memory the process occupies now."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE

    def tell(self, **fields: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(fields).encode() + b"\n")

    async def answer(self, wanted: str, seconds: float = ANSWER_SECONDS) -> Fields:
        """The next line, which must be of the wanted kind."""
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), seconds)
        except TimeoutError:
            raise BenchmarkFailed(f"{self.name} did not say {wanted!r} within {seconds:g} s") from None
        if not line:
            raise BenchmarkFailed(f"{self.name} ended before it said {wanted!r}; its reason is above")
        fields = parse_line(line)
        if fields.get("error"):
            raise BenchmarkFailed(f"{self.name}: {fields['error']}")
        if fields["kind"] != wanted:
            raise BenchmarkFailed(f"{self.name} said {fields['kind']!r} and not {wanted!r}")
        return fields

    async def end(self) -> None:
        if self._process.returncode is None:
            # Not by Popen, which would collect the exit status that the event loop waits for.
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        await self._process.wait()


class Workers:
    """A set of processes that ends with its block."""

    def __init__(self) -> None:
        self._all: list[Worker] = []

    def __iter__(self) -> Any:
        return iter(self._all)

    async def start(self, name: str, *, within: tuple[str, ...] = (), **task: Any) -> Worker:
        """A process with a task, its command prefixed with `within` (as `ip netns exec NAME`)."""
        process = await asyncio.create_subprocess_exec(
            *within,
            sys.executable,
            "-m",
            "intergroup_core.benchmarks.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_LIMIT,
        )
        worker = Worker(name, process)
        self._all.append(worker)
        worker.tell(**task)
        return worker

    async def ready(self) -> None:
        """Wait until every process has its sockets open."""
        for worker in self._all:
            await worker.answer("ready")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._all:
            await worker.end()
