"""`intergroup bench`: figures as ratios to what bare sockets reach in the same run."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from intergroup_core.benchmarks.catching_up import run_catching_up
from intergroup_core.benchmarks.figures import Case, print_json, print_table
from intergroup_core.benchmarks.latency import run_latency
from intergroup_core.benchmarks.log import run_log
from intergroup_core.benchmarks.memory import run_memory
from intergroup_core.benchmarks.spark_sink import run_spark_sink
from intergroup_core.benchmarks.testbed import why_no_namespaces
from intergroup_core.benchmarks.throughput import SHAPES, run_throughput
from intergroup_core.errors import ConfigError
from intergroup_core.runtime.interfaces import resolve_interface

bench = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Goodput, latency, memory and the stable log, next to bare sockets and files in the same run.",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object with `cases`.")]
Interface = Annotated[str, typer.Option(help="Name or address of the interface of members on this host.")]


@bench.command(epilog="Example: intergroup bench throughput --seconds 3 --rounds 5 --case rso --json")
def throughput(
    seconds: Annotated[float, typer.Option(min=1.5, max=3_600, help="How long members send in each case.")] = 5.0,
    warm_up: Annotated[float, typer.Option(min=0.1, help="Seconds at the start that do not count.")] = 1.0,
    rounds: Annotated[
        int, typer.Option(min=1, max=1_000, help="Times that all cases are run, in turn; medians are shown.")
    ] = 1,
    case: Annotated[list[str] | None, typer.Option(help="Only cases whose name contains this; repeatable.")] = None,
    namespaces: Annotated[
        bool | None,
        typer.Option(
            "--namespaces/--no-namespaces",
            help="Cases in network namespaces, which need root and iproute2; by default where both are there.",
        ),
    ] = None,
    interface: Interface = "lo",
    json: Json = False,
) -> None:
    """Goodput of every case, each record handed to the receiving application and the sums checked."""
    if warm_up > seconds - 0.5:
        raise ConfigError(f"--warm-up is {warm_up:g}; it must end half a second before --seconds ({seconds:g})")
    missing = None if namespaces is False else why_no_namespaces()
    if namespaces and missing:
        raise ConfigError(f"{missing}: run it so, or leave --namespaces out")
    shapes = tuple(
        shape
        for shape in SHAPES
        if (not case or any(part in shape.name for part in case))
        and not (shape.hosts and (namespaces is False or missing))
    )
    if not shapes:
        raise ConfigError(f"no case matches; the cases are: {'; '.join(shape.name for shape in SHAPES)}")
    address = resolve_interface(interface).address
    cases = _watched(
        lambda progress: run_throughput(
            shapes, seconds=seconds, warm_up=warm_up, interface=address, progress=progress, rounds=rounds
        )
    )
    if missing and not json:
        Console(stderr=True).print(f"Without the cases in namespaces: {missing}.")
    _show("Goodput", cases, "raw sockets", json)


@bench.command(epilog="Example: intergroup bench latency --count 1000 --loss 1")
def latency(
    count: Annotated[int, typer.Option(min=10, max=1_000_000, help="Records sent one at a time.")] = 1_000,
    members: Annotated[int, typer.Option(min=2, max=64, help="Senders, of which all but one are idle.")] = 3,
    loss: Annotated[float, typer.Option(min=0, max=50, help="Also with this percentage of datagrams lost.")] = 0.0,
    interface: Interface = "lo",
    json: Json = False,
) -> None:
    """Delay of delivery in rto with idle senders, next to the round trip of a multicast ping to all of them."""
    address = resolve_interface(interface).address
    cases = _watched(
        lambda progress: run_latency(
            count=count, members=members, loss=loss / 100, interface=address, progress=progress
        )
    )
    _show("Delay from hand-over to delivery", cases, "raw round trip", json)


@bench.command(epilog="Example: intergroup bench memory --seconds 60")
def memory(
    seconds: Annotated[float, typer.Option(min=2, max=86_400, help="How long at full speed.")] = 60.0,
    warm_up: Annotated[float, typer.Option(min=0.5, help="Seconds at the start that do not count.")] = 10.0,
    stall: Annotated[float, typer.Option(min=1, max=3_600, help="How long the receiver does not read.")] = 5.0,
    interface: Interface = "lo",
    json: Json = False,
) -> None:
    """Resident size of every process at full speed, and while a receiver does not read."""
    if warm_up > seconds / 2:
        raise ConfigError(f"--warm-up is {warm_up:g}; it must be at most half of --seconds ({seconds:g})")
    address = resolve_interface(interface).address
    cases = _watched(
        lambda progress: run_memory(seconds=seconds, warm_up=warm_up, stall=stall, interface=address, progress=progress)
    )
    _show("Resident size", cases, "before", json)


@bench.command(epilog="Example: intergroup bench log --rounds 5 --directory /var/lib/intergroup")
def log(
    records: Annotated[int, typer.Option(min=1_000, max=100_000_000, help="Records in bundled messages.")] = 1_000_000,
    record_bytes: Annotated[int, typer.Option(min=1, max=60_000, help="Bytes of each.")] = 100,
    rounds: Annotated[int, typer.Option(min=1, max=1_000, help="Times that all is done; medians are shown.")] = 3,
    directory: Annotated[
        Path | None, typer.Option(help="On which disk; it is left as it was.", show_default="for temporary files")
    ] = None,
    json: Json = False,
) -> None:
    """Appending to a stable log next to plain writes of the same bytes, and reading it into Arrow."""
    _check_directory(directory)
    cases = _watched(
        lambda progress: run_log(
            records=records, record_bytes=record_bytes, rounds=rounds, directory=directory, progress=progress
        )
    )
    _show("Stable log", cases, "plain", json)


@bench.command(epilog="Example: intergroup bench catch-up --megabytes 1000")
def catch_up(
    megabytes: Annotated[int, typer.Option(min=10, max=100_000, help="How much the others have.")] = 1_000,
    directory: Annotated[
        Path | None, typer.Option(help="On which disk; it is left as it was.", show_default="for temporary files")
    ] = None,
    interface: Interface = "lo",
    json: Json = False,
) -> None:
    """A site with an empty disk fetches the group's log while the group goes on sending; the bytes are compared."""
    _check_directory(directory)
    cases = _watched(
        lambda progress: run_catching_up(
            megabytes=megabytes, interface=interface, directory=directory, progress=progress
        )
    )
    _show("Catching up", cases, "by itself", json)


@bench.command(epilog="Example: intergroup bench spark --batches 10")
def spark(
    batches: Annotated[int, typer.Option(min=5, max=1_000, help="Micro-batches of each query.")] = 12,
    rows: Annotated[int, typer.Option(min=1_000, max=10_000_000, help="Rows of a micro-batch.")] = 400_000,
    cold: Annotated[bool, typer.Option("--cold/--warm", help="Also with logs that the kernel has forgotten.")] = True,
    idle: Annotated[
        float,
        typer.Option(min=0, max=86_400, help="Seconds that queries are left idle to see what that costs; 0: not."),
    ] = 0,
    sink: Annotated[
        bool, typer.Option("--sink", help="The sink instead, next to one that drops all; on two hosts where that goes.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Instead: where the Python workers of tasks spend their time.")
    ] = False,
    json: Json = False,
) -> None:
    """The Spark source next to a Python source with ready batches and to Spark's own stream of parquet files."""
    if sink:
        with Console(stderr=True).status("") as status:
            namespaces = why_no_namespaces() is None
            cases = run_spark_sink(batches=batches, rows=rows, namespaces=namespaces, progress=status.update)
        _show("Spark sink", cases, "beside it", json)
        return
    benchmark = import_module("pyspark_intergroup.bench.run")
    with Console(stderr=True).status("") as status:
        if profile:
            figures = benchmark.run_profile(batches=batches, rows=rows, progress=status.update)
        else:
            figures = benchmark.run_spark(batches=batches, rows=rows, cold=cold, idle_s=idle, progress=status.update)
    cases = [Case(name=each.name, value=each.value, unit=each.unit, ceiling=each.beside) for each in figures]
    _show("Spark", cases, "beside it", json)


def _check_directory(directory: Path | None) -> None:
    if directory is not None and not directory.is_dir():
        raise ConfigError(f"--directory {directory} is not a directory; name one on the disk to be measured")


def _watched(run: Callable[[Callable[[str], None]], Coroutine[Any, Any, list[Case]]]) -> list[Case]:
    """Run a benchmark while standard error tells how far it is."""

    async def until_told_to_end() -> list[Case]:
        task = asyncio.current_task()
        assert task is not None
        # Processes and namespaces are removed on the way out, which a plain SIGTERM would not take.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await run(status.update)

    with Console(stderr=True).status("") as status:
        try:
            return asyncio.run(until_told_to_end())
        except asyncio.CancelledError:
            raise typer.Exit(128 + signal.SIGTERM) from None


def _show(title: str, cases: list[Case], ceiling: str, json: bool) -> None:
    if json:
        print_json(cases)
    else:
        print_table(title, cases, ceiling, Console())
