"""What every test shares: repeatable hypothesis runs, and figures that tests want seen."""

from __future__ import annotations

import pytest
from hypothesis import settings

# The same examples on every machine; `make fuzz` is where new ones are looked for.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


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
