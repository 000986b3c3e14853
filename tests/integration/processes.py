"""Processes that are members of a group, and the rows they print."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.integration.groups import PATIENCE_SECONDS

INTERGROUP = str(Path(sys.executable).with_name("intergroup"))
PEER = str(Path(__file__).with_name("peer.py"))
_LINE_LIMIT = 1 << 24

Row = dict[str, Any]
MARKS = ("view", "gap")


class Program:
    """A process whose lines of output are rows."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, changed: asyncio.Event) -> None:
        self.name = name
        self.rows: list[Row] = []
        self.times: list[float] = []
        """When each row came, by the monotonic clock."""
        self.errors = b""
        self._process = process
        self._changed = changed
        self._reading = [asyncio.create_task(self._read_rows()), asyncio.create_task(self._read_errors())]

    async def _read_rows(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.rows.append(json.loads(line))
            self.times.append(time.monotonic())
            self._changed.set()
        self._changed.set()

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self.errors = await self._process.stderr.read()

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")

    def end_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write_eof()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE_SECONDS):
            code = await self._process.wait()
            await asyncio.gather(*self._reading)
        return code

    async def end(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self.signal(signal.SIGKILL)
        await self._process.wait()
        await asyncio.gather(*self._reading)

    @property
    def data(self) -> list[Row]:
        return [row for row in self.rows if row["kind"] == "data"]

    @property
    def values(self) -> list[str]:
        return [row["value"] for row in self.data]

    @property
    def views(self) -> list[Row]:
        return [row for row in self.rows if row["kind"] == "view"]

    @property
    def last_view_at(self) -> float:
        return max(at for at, row in zip(self.times, self.rows, strict=True) if row["kind"] == "view")

    @property
    def members(self) -> set[str]:
        """Of the last view."""
        return set(self.views[-1]["members"]) if self.views else set()

    def summary(self) -> str:
        marks = [(row["kind"], row["members"] or row.get("reason")) for row in self.rows if row["kind"] in MARKS]
        return f"{self.name}: {len(self.data)} records, {marks} {self.errors.decode(errors='replace')[-2_000:]}"

    @property
    def sent(self) -> int | None:
        return next((row["records"] for row in self.rows if row["kind"] == "sent"), None)


class Programs:
    """Those of one test, none of which outlives it."""

    def __init__(self) -> None:
        self._all: list[Program] = []
        self._changed = asyncio.Event()

    async def start(self, name: str, *command: str, within: tuple[str, ...] = ()) -> Program:
        process = await asyncio.create_subprocess_exec(
            *within,
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_LIMIT,
        )
        program = Program(name, process, self._changed)
        self._all.append(program)
        return program

    async def recv(self, group: str, *options: str, interface: str = "lo", within: tuple[str, ...] = ()) -> Program:
        command = (INTERGROUP, "recv", group, "--json", "--interface", interface, *options)
        return await self.start("recv", *command, within=within)

    async def peer(
        self, group: str, name: str, *, interval_ms: float = 0, interface: str = "lo", within: tuple[str, ...] = ()
    ) -> Program:
        return await self.start(name, sys.executable, PEER, group, name, str(interval_ms), interface, within=within)

    async def until(self, holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until the rows printed so far satisfy something."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not within {seconds:g} s:\n{self._told()}") from None

    def _told(self) -> str:
        return "\n".join(program.summary() for program in self._all)

    async def end(self) -> None:
        for program in self._all:
            await program.end()


@asynccontextmanager
async def programs() -> AsyncIterator[Programs]:
    started = Programs()
    try:
        yield started
    finally:
        await started.end()


SAME = ("kind", "sender", "seq", "record", "value", "view_id", "members")
"""What is equal in the rows of two readers."""


def between_views(rows: Iterable[Row]) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    """The rows from one view to the next, by the two; a gap ends what it interrupts."""
    parts: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    first: Row | None = None
    inside: list[tuple[Any, ...]] = []
    for row in rows:
        if row["kind"] not in ("data", "view", "gap"):
            continue
        seen = tuple(str(row[column]) for column in SAME)
        if row["kind"] == "data":
            inside.append(seen)
            continue
        if row["kind"] == "view":
            if first is not None:
                parts[first["view_id"], row["view_id"]] = [*inside, seen]
            first, inside = row, [seen]
        else:
            first, inside = None, []
    return parts


def check_same_between_views(readers: Iterable[Program]) -> int:
    """Hold readers to each other wherever they went from one view to the same next one; how often two did."""
    compared = 0
    parts = [(reader.name, between_views(reader.rows)) for reader in readers]
    for at, (name, mine) in enumerate(parts):
        for other, theirs in parts[at + 1 :]:
            for views in mine.keys() & theirs.keys():
                assert mine[views] == theirs[views], f"{name} and {other} differ between {views[0]} and {views[1]}"
                compared += 1
    return compared
