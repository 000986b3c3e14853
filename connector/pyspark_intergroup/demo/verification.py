"""Whether what a query said is what was promised: complaints, or the sentence that says what holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark_intergroup.demo.events import Seen, has_gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What there is to compare."""

    query: Sequence[Seen]
    witness: Sequence[Seen]
    """What another site read, without Spark; it may have read on."""
    acknowledged: Mapping[str, Sequence[str]]
    """What senders that lived were told is kept, in their order."""
    killed: str

    @property
    def views(self) -> int:
        return sum(row.kind == "view" for row in self.query)

    def complaints(self) -> list[str]:
        return [
            *_gaps(self.query),
            *_repeated(self.query),
            *_not_as_acknowledged(self.query, self.acknowledged),
            *_out_of_order(self.query),
            *_unlike(self.query, self.witness),
            *_strangers(self.query),
            *_torn(self.query, self.killed),
        ]

    def sentence(self) -> str:
        """True where there are no complaints."""
        rows = sum(map(len, self.acknowledged.values()))
        return (
            f"verified: all {rows} records that {_listed(list(self.acknowledged))} got acknowledged are in the query's "
            f"output exactly once; its {len(self.query)} rows, {self.views} view rows among them, are the same in the "
            f"same order that another site read without Spark; every data row stands in a view that has its sender, "
            f"and those of {self.killed}, killed, end without a hole before the view without it."
        )


def _gaps(rows: Sequence[Seen]) -> Iterator[str]:
    for row in rows:
        if row.kind == "gap":
            yield f"the query has a gap at {row.position}"


def _repeated(rows: Sequence[Seen]) -> Iterator[str]:
    seen: set[tuple[str, int, int]] = set()
    for row in rows:
        if row.identity is not None:
            if row.identity in seen:
                yield f"{row.value!r} is in the query's output twice"
            seen.add(row.identity)


def _not_as_acknowledged(rows: Sequence[Seen], acknowledged: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, wanted in acknowledged.items():
        found = [row.value for row in rows if row.sender == name]
        if not wanted:
            yield f"{name} got nothing acknowledged"
        for value in set(wanted) - set(found):
            yield f"{value!r} was acknowledged and is not in the query's output"
        for value in set(found) - set(wanted):
            yield f"{value!r} is in the query's output and was never acknowledged"
        if sorted(found) == sorted(wanted) and found != list(wanted):
            yield f"what {name} sent is not in its order"


def _out_of_order(rows: Sequence[Seen]) -> Iterator[str]:
    for before, after in pairwise(rows):
        if before.position >= after.position:
            yield f"the query has position {after.position} behind {before.position}"


def _unlike(rows: Sequence[Seen], others: Sequence[Seen]) -> Iterator[str]:
    if len(others) < len(rows):
        yield f"the query has {len(rows)} rows and the other reader only {len(others)}"
    for number, (row, other) in enumerate(zip(rows, others, strict=False)):
        if row != other:
            yield f"row {number} is {row} in the query and {other} at the other reader"
            return


def _strangers(rows: Sequence[Seen]) -> Iterator[str]:
    """Data rows of those that are not in the view they stand in."""
    view: Seen | None = None
    for row in rows:
        if row.kind == "view":
            view = row
        elif row.kind == "data" and (view is None or row.sender not in view.members or row.view != view.view):
            yield f"{row.value!r} stands in a view without {row.sender}"


def _torn(rows: Sequence[Seen], killed: str) -> Iterator[str]:
    """What is there of a sender that was killed begins with its first record and has no hole."""
    found = [row.value for row in rows if row.sender == killed]
    if found != [f"{killed} {number}" for number in range(1, len(found) + 1)]:
        yield f"what is there of {killed} has a hole: {', '.join(found)}"
    if not has_gone(rows, killed):
        yield f"no view row says that {killed} has gone"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
