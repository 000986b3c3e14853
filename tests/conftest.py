"""What every test shares: repeatable hypothesis runs, turns on several workers, and figures that tests want seen."""

from __future__ import annotations

import pytest
from hypothesis import settings

# The same examples on every machine; `make fuzz` is where new ones are looked for.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

TURNS = (
    "tests/sim/test_live_seeds.py",
    "tests/spark/test_restarts.py",
    "tests/spark/test_clusters.py",
    "tests/sim/test_seeds.py",
    "tests/spark/",
    "tests/integration/",
    "tests/sim/",
)
"""What takes long goes first, so that all workers end together. Seeds run on what the others leave of processors."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    return next((turn for turn, start in enumerate(TURNS) if item.nodeid.startswith(start)), len(TURNS))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what passing tests recorded with `record_property`; captured output of theirs is not shown."""
    figures = [
        (report.nodeid, name, value)
        for report in terminalreporter.stats.get("passed", [])
        for name, value in report.user_properties
    ]
    if figures:
        terminalreporter.section("figures")
    for node, name, value in figures:
        terminalreporter.write_line(f"{node}: {name} = {value}")
