"""What people see of the demonstration: few lines for each micro-batch, its view rows in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby

from rich.console import Console
from rich.text import Text

from pyspark_intergroup.demo.events import Seen

SHOWN = 8
"""Records of one stretch that are written out: the first ones, and the last."""


class Screen:
    """Lines for people, in colour where they are shown on a terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._members: tuple[str, ...] = ()

    def say(self, text: str, style: str = "bold") -> None:
        self._console.print(Text(text, style))

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """Something takes a while: a moving sign on a terminal, a line elsewhere."""
        if self._console.is_terminal:
            return self._console.status(Text(text))
        self.say(f"{text} ...", "")
        return nullcontext()

    def batch(self, number: int, rows: Sequence[Seen]) -> None:
        self._console.print(Text(f"batch {number}: {len(rows)} row{'s' * (len(rows) != 1)}", "dim"))
        for line in batch_lines(rows, self._members):
            self._console.print(Text(line, "cyan" if line.startswith("    view") else ""))
        self._members = next((row.members for row in reversed(rows) if row.kind == "view"), self._members)


def batch_lines(rows: Sequence[Seen], members: tuple[str, ...] = ()) -> Iterator[str]:
    """A line for each view or gap, and one for all the records between two of them; `members` sent before."""
    for kind, stretch in groupby(rows, lambda row: row.kind):
        if kind == "data":
            yield f"    data  {_written([row.value for row in stretch])}"
            continue
        for row in stretch:
            yield f"    {kind}  {_described(row, members)}"
            members = row.members


def _written(values: list[str]) -> str:
    if len(values) <= SHOWN:
        return ", ".join(values)
    return f"{', '.join(values[: SHOWN - 1])} ... {values[-1]}"


def _described(row: Seen, before: tuple[str, ...]) -> str:
    changes = [f"{name} came" for name in row.members if name not in before]
    changes += [f"{name} went" for name in before if name not in row.members]
    return f"{', '.join(row.members) or 'nobody sends'}{'   <- ' * bool(changes)}{', '.join(changes)}"
