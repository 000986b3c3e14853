"""What a benchmark found: cases for programs, a table for people."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One figure next to its ceiling: what bare sockets do with the same sizes in the same run."""

    name: str
    value: float
    unit: str
    ceiling: float
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        return self.value / self.ceiling if self.ceiling else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "ceiling": self.ceiling,
            "ratio": self.ratio,
            **self.details,
        }


def middle_of(rounds: Sequence[Case], beside: Sequence[Case] | None = None) -> Case:
    """The medians of several rounds; beside another case also its share of that one, round by round."""
    details: dict[str, Any] = {}
    if len(rounds) > 1:
        values = [case.value for case in rounds]
        details |= {"rounds": len(rounds), "lowest": min(values), "highest": max(values)}
    if beside:
        pairs = list(zip(rounds, beside, strict=True))
        details["share_of_" + _slug(beside[0].name)] = statistics.median(
            one.value / other.value for one, other in pairs
        )
        details["ratio_to_its_ratio"] = statistics.median(one.ratio / other.ratio for one, other in pairs)
    middle = sorted(rounds, key=lambda case: case.value)[len(rounds) // 2]
    return replace(
        middle,
        value=statistics.median(case.value for case in rounds),
        ceiling=statistics.median(case.ceiling for case in rounds),
        details=middle.details | details,
    )


def _slug(name: str) -> str:
    return name.split(",")[0].replace(" ", "_")


def print_json(cases: Sequence[Case], **more: Any) -> None:
    print(json.dumps({"cases": [case.as_json() for case in cases], **more}))


def print_table(title: str, cases: Sequence[Case], ceiling: str, console: Console) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("case", ratio=1)
    for heading in ("value", ceiling, "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    for case in cases:
        table.add_row(case.name, _shown(case.value), _shown(case.ceiling), f"{case.ratio:.3f}", case.unit)
    console.print(table)
    for case in cases:
        if case.details:
            also = ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in case.details.items())
            console.print(f"{case.name}: {also}", soft_wrap=True, highlight=False)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
