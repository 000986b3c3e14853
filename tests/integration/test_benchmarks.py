"""The benchmark programs, small: what they check and leave behind, never what figures they find."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from intergroup_core.benchmarks.catching_up import run_catching_up
from intergroup_core.benchmarks.figures import Case
from intergroup_core.benchmarks.latency import run_latency
from intergroup_core.benchmarks.log import run_log
from intergroup_core.benchmarks.memory import run_memory
from intergroup_core.benchmarks.processes import BenchmarkFailed, Workers
from intergroup_core.benchmarks.testbed import PREFIX, hosts_on_a_bridge, inside, why_no_namespaces
from intergroup_core.benchmarks.throughput import SHAPES, Shape, check_sums, run_throughput

LOOPBACK_SHAPES = [shape for shape in SHAPES if not shape.hosts and shape.service != "rso"]
INTERGROUP = Path(sys.executable).with_name("intergroup")


def silent(text: str) -> None:
    """Progress nobody looks at."""


def throughput(shape: Shape) -> Case:
    cases = asyncio.run(run_throughput((shape,), seconds=0.7, warm_up=0.2, interface="127.0.0.1", progress=silent))
    assert len(cases) == 1
    return cases[0]


@pytest.mark.parametrize("shape", LOOPBACK_SHAPES, ids=lambda shape: shape.name)
def test_every_shape_moves_checked_records_and_finds_its_ceiling(shape: Shape) -> None:
    case = throughput(shape)
    assert case.value > 0
    assert case.ceiling > 0
    assert case.details["checked_records"] > 0
    if shape.senders > 1:
        assert case.details["same_order_at"] == shape.senders


def test_a_group_over_namespaces_leaves_none_behind() -> None:
    if reason := why_no_namespaces():
        pytest.skip(reason)
    case = throughput(next(shape for shape in SHAPES if shape.hosts))
    assert case.details["checked_records"] > 0
    assert not namespaces()


def test_a_testbed_is_removed_when_what_runs_in_it_fails() -> None:
    if reason := why_no_namespaces():
        pytest.skip(reason)

    def fail_inside() -> None:
        with hosts_on_a_bridge(2) as hosts:
            assert set(hosts) < namespaces()
            subprocess.run([*inside(hosts[0]), "false"], check=True)

    with pytest.raises(subprocess.CalledProcessError):
        fail_inside()
    assert not namespaces()


def test_what_a_killed_benchmark_left_is_removed_by_the_next() -> None:
    if reason := why_no_namespaces():
        pytest.skip(reason)
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = f"{PREFIX}{dead.pid}h1"
    subprocess.run([inside("")[0], "netns", "add", left], check=True)
    with hosts_on_a_bridge(1):
        assert not Path("/run/netns", left).exists()


def namespaces() -> set[str]:
    """Those of this process."""
    return {path.name for path in Path("/run/netns").glob(f"{PREFIX}{os.getpid()}*")}


def test_latency_is_measured_at_every_member_with_and_without_loss() -> None:
    cases = asyncio.run(run_latency(count=40, members=3, loss=0.05, interface="127.0.0.1", progress=silent))
    assert len(cases) == 4
    assert all(case.value > 0 and case.ceiling > 0 for case in cases)


def test_a_receiver_that_stops_reading_stops_its_sender_and_reads_on() -> None:
    cases = asyncio.run(run_memory(seconds=2.0, warm_up=0.5, stall=1.0, interface="127.0.0.1", progress=silent))
    stopped = next(case for case in cases if "megabytes_waiting" in case.details)
    assert stopped.details["megabytes_waiting"] < 40, "what the inbox takes and what was on its way"


def test_sums_that_differ_fail_the_benchmark() -> None:
    sent = {"records": 10, "bytes": 1_000, "first_bytes": 55}
    with pytest.raises(BenchmarkFailed, match="first bytes 54, sent were 55"):
        check_sums([sent, {**sent, "first_bytes": 54}], sent)


def test_a_process_that_fails_is_named_with_its_reason() -> None:
    async def scenario() -> None:
        async with Workers() as workers:
            await workers.start(
                "member 7",
                role="flood",
                digest=False,
                reads=True,
                number=0,
                senders=1,
                receivers=0,
                service="rto",
                offload=True,
                frame_bytes=1_400,
                interface="wlan9",
                group="nowhere",
                view_start=1,
            )
            with pytest.raises(BenchmarkFailed, match=r"member 7: there is no interface.*'wlan9'"):
                await workers.ready()

    asyncio.run(scenario())


def test_the_command_prints_cases_as_json() -> None:
    command = [INTERGROUP, "bench", "throughput", "--seconds", "1.5", "--warm-up", "0.3", "--case", "rso", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    cases = json.loads(done.stdout)["cases"]
    assert [set(case) >= {"name", "value", "unit", "ceiling", "ratio"} for case in cases] == [True]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["throughput", "--case", "nonsense"], "no case matches; the cases are: one sender"),
        (["throughput", "--seconds", "2", "--warm-up", "1.9"], "--warm-up is 1.9"),
        (["memory", "--seconds", "10", "--warm-up", "9"], "--warm-up is 9"),
        (["latency", "--interface", "wlan9"], "'wlan9'"),
    ],
)
def test_a_wrong_option_is_one_sentence_that_says_what_is_allowed(arguments: list[str], said: str) -> None:
    done = subprocess.run([INTERGROUP, "bench", *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (2, 4)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_log_is_measured_next_to_plain_writes_and_nothing_stays(tmp_path: Path) -> None:
    cases = asyncio.run(run_log(records=20_000, record_bytes=100, rounds=1, directory=tmp_path, progress=silent))
    assert [case.name for case in cases] == [
        "append at os, bundled",
        "append at disk, bundled",
        "decode, value alone",
        "decode, all columns",
        "append at os, an entry a record",
        "decode, value alone, an entry a record",
    ]
    assert all(case.value > 0 and case.ceiling > 0 for case in cases)
    assert list(tmp_path.iterdir()) == []


def test_a_site_with_an_empty_disk_fetches_100_mb_while_the_group_goes_on(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    transfer, stall = asyncio.run(run_catching_up(megabytes=100, interface="lo", directory=tmp_path, progress=silent))
    assert transfer.details["compared_bytes"] == 100_000_000
    assert transfer.value > 0
    assert stall.details["deliveries"] > 0
    record_property("MB/s of the transfer, with the start of the agent", round(transfer.value))
    record_property("longest stall in ms, with the transfer and without", (round(stall.value), round(stall.ceiling)))
    assert list(tmp_path.iterdir()) == []
