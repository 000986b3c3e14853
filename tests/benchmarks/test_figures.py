"""The benchmarks at full size, their figures recorded and not judged: `pytest tests/benchmarks`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from intergroup_core.benchmarks.figures import Case
from intergroup_core.benchmarks.latency import run_latency
from intergroup_core.benchmarks.testbed import why_no_namespaces
from intergroup_core.benchmarks.throughput import SHAPES, Shape, run_throughput

Record = Callable[[str, object], None]


def recorded(case: Case, record_property: Record) -> None:
    record_property(case.name, f"{case.value:,.1f} {case.unit}, {case.ratio:.3f} of {case.ceiling:,.1f}")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_goodput(shape: Shape, record_property: Record) -> None:
    if shape.hosts and (reason := why_no_namespaces()):
        pytest.skip(reason)
    cases = asyncio.run(
        run_throughput((shape,), seconds=5.0, warm_up=1.0, interface="127.0.0.1", progress=lambda text: None)
    )
    recorded(cases[0], record_property)
    assert cases[0].details["checked_records"] > 0


def test_latency(record_property: Record) -> None:
    cases = asyncio.run(
        run_latency(count=1_000, members=3, loss=0.01, interface="127.0.0.1", progress=lambda text: None)
    )
    for case in cases:
        recorded(case, record_property)
    assert all(case.value > 0 for case in cases)
