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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intergroup_core.runtime.home import HOME_VARIABLE
from tests.integration.agents import status_of
from tests.integration.groups import PATIENCE_SECONDS
from tests.integration.sites import Sites, sites

INTERGROUP = str(Path(sys.executable).with_name("intergroup"))
PEER = str(Path(__file__).with_name("peer.py"))
_LINE_LIMIT = 1 << 24

Row = dict[str, Any]
MARKS = ("view", "gap")


class Program:
    """A process whose lines of output are rows."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, changed: asyncio.Event, *, orders: bool) -> None:
        self.name = name
        self._orders = orders
        self.rows: list[Row] = []
        self.data: list[Row] = []
        self.views: list[Row] = []
        self.last_view_at = 0.0
        """By the monotonic clock."""
        self.last_row_of: dict[str, int] = {}
        """Where in the rows each sender's last record is."""
        self.names: dict[str, str] = {}
        """Of senders, by id."""
        self.sent: int | None = None
        self.state: Row | None = None
        self.errors = b""
        self._process = process
        self._changed = changed
        self._reading = [asyncio.create_task(self._read_rows()), asyncio.create_task(self._read_errors())]

    async def _read_rows(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self._add(json.loads(line))
            self._changed.set()
        self._changed.set()

    def _add(self, row: Row) -> None:
        match row.get("kind"):
            case "data":
                self.last_row_of[row["sender"]] = len(self.rows)
                self.names[row["sender_id"]] = row["sender"]
                self.data.append(row)
            case "view":
                self.last_view_at = time.monotonic()
                self.views.append(row)
            case "sent":
                self.sent = row["records"]
            case "state":
                self.state = row
        self.rows.append(row)

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self.errors = await self._process.stderr.read()

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")

    def asked_for_state(self) -> bool:
        if self._orders and self._process.returncode is None:
            self.tell("state")
            return True
        return False

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

    def last_of(self, sender: str) -> str | None:
        """The last record of a sender."""
        at = self.last_row_of.get(sender)
        return self.rows[at]["value"] if at is not None else None

    @property
    def values(self) -> list[str]:
        return [row["value"] for row in self.data]

    @property
    def members(self) -> set[str]:
        """Of the last view."""
        return set(self.views[-1]["members"]) if self.views else set()

    def summary(self) -> str:
        marks = [
            (row["kind"], row["members"] or row.get("reason"), row["view_id"])
            for row in self.rows
            if row["kind"] in MARKS
        ]
        errors = self.errors.decode(errors="replace")[-2_000:]
        return f"{self.name}: {len(self.data)} records, {marks}\n    {self.state or ''}{errors}"


def _take_interrupts() -> None:
    """A shell that runs the tests in the background has their children ignore interrupts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Programs:
    """Those of one test, none of which outlives it; those of one host are one site."""

    def __init__(self, there: Sites) -> None:
        self._all: list[Program] = []
        self._changed = asyncio.Event()
        self._sites = there

    async def start(self, name: str, *command: str, within: tuple[str, ...] = ()) -> Program:
        process = await asyncio.create_subprocess_exec(
            *within,
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_LIMIT,
            env=self.environment(within),
            preexec_fn=_take_interrupts,
        )
        program = Program(name, process, self._changed, orders=PEER in command)
        self._all.append(program)
        return program

    def environment(self, host: object = ()) -> dict[str, str]:
        """Of a program on a host, which is a site."""
        return os.environ | {HOME_VARIABLE: str(self._sites.home(host))}

    async def agent_pid(self, host: object = ()) -> int:
        """Of the agent that runs for the programs of a host."""
        return int((await asyncio.to_thread(status_of, self._sites.home(host)))["pid"])

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
            await self._ask_peers()
            raise AssertionError(f"not within {seconds:g} s:\n{self._told()}") from None

    async def _ask_peers(self) -> None:
        """Where the protocol stands at those who can be asked, for the report of a failure."""
        asked = [program for program in self._all if program.asked_for_state()]
        with suppress(TimeoutError):
            async with asyncio.timeout(2):
                while any(program.state is None for program in asked):
                    self._changed.clear()
                    await self._changed.wait()

    def _told(self) -> str:
        return "\n".join(program.summary() for program in self._all)

    async def end(self) -> None:
        for program in self._all:
            await program.end()


@asynccontextmanager
async def programs() -> AsyncIterator[Programs]:
    with sites() as there:
        started = Programs(there)
        try:
            yield started
        finally:
            await started.end()


SAME = ("kind", "sender", "seq", "record", "value", "view_id", "members")
"""What is equal in the rows of two readers."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a reader saw from one view to the next; one that came in the middle of the first saw the end of it."""

    rows: list[tuple[str, ...]]
    from_the_start: bool

    def agrees(self, other: Part) -> bool:
        common = len(self.rows)
        if not (self.from_the_start and other.from_the_start):
            common = min(common, len(other.rows))
        return self.rows[-common:] == other.rows[-common:]


def between_views(rows: Iterable[Row]) -> dict[tuple[str, str], Part]:
    """The rows after one view up to the next, by the two; a gap ends what it interrupts."""
    parts: dict[tuple[str, str], Part] = {}
    first: str | None = None
    inside: list[tuple[str, ...]] = []
    came_at_a_cut = True
    for row in rows:
        if row["kind"] == "gap":
            first, inside, came_at_a_cut = None, [], True
        elif row["kind"] in ("data", "view"):
            inside.append(tuple(str(row[column]) for column in SAME))
        if row["kind"] == "view":
            if first is not None:
                parts[first, row["view_id"]] = Part(inside, not came_at_a_cut)
                came_at_a_cut = False
            first, inside = row["view_id"], []
    return parts


def check_same_between_views(readers: Iterable[Program]) -> int:
    """Hold readers to each other wherever they went from one view to the same next one; how often two did."""
    compared = 0
    parts = [(reader.name, between_views(reader.rows)) for reader in readers]
    for at, (name, mine) in enumerate(parts):
        for other, theirs in parts[at + 1 :]:
            for views in mine.keys() & theirs.keys():
                agree = mine[views].agrees(theirs[views])
                assert agree, f"{name} and {other} differ between {views[0]} and {views[1]}"
                compared += 1
    return compared


def check_nothing_skipped(reader: Program) -> None:
    """A sender's numbered records come without a hole while it is in every view, unless a gap says otherwise."""
    last: dict[str, int] = {}
    for row in reader.rows:
        match row["kind"]:
            case "data":
                number = int(row["value"].rpartition(":")[2])
                expected = last.get(row["sender_id"], number - 1) + 1
                assert number == expected, f"{reader.name} has {row['value']} and not {expected} from {row['sender']}"
                last[row["sender_id"]] = number
            case "view":
                stays = set(row["members"])
                last = {row_id: number for row_id, number in last.items() if reader.names[row_id] in stays}
            case "gap":
                last.clear()
