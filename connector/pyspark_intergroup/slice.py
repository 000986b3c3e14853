"""What one task reads: a range of one group's stream, told so exactly that it is these rows or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from intergroup_core.client.fetching import Keeper
from intergroup_core.ids import Service
from intergroup_core.log.chain import Described
from intergroup_core.log.cut import Cut
from intergroup_core.wire.attempts import Staged


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A transaction whose rows are shown where it was decided, and not where they were staged."""

    txn: str
    timestamp: int
    sender: int
    """Of the statement that decided it."""
    attempts: tuple[Staged, ...]
    """Those that count, as far as they lie in the range."""
    ordinal: int
    """How many of its messages come before the range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSlice(InputPartition):
    """A range that some site's logs hold."""

    group: str
    service: Service
    described: Described
    """Its two cuts, the views and gaps between them, counts and digests: a log serves it only if it holds just that."""
    parts: tuple[str, ...]
    """Directories of the logs that it lies in, at the site that planned it."""
    holders: tuple[Keeper, ...]
    """Sites that have something of the group."""
    rows: int
    nbytes: int
    shown: Shown | None = None
    """The transaction of which its rows are read, and nothing else; None where all is that is not staged, or that too
    where uncommitted rows are wanted."""
    data_only: bool = False
    """Whether another slice of the same range gives the views and gaps in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceBundle(InputPartition):
    """Several ranges, the rows of one after those of the other."""

    slices: tuple[LogSlice, ...]

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.slices)

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.slices)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSlice(InputPartition):
    """A range that nobody has any more: one gap row says so."""

    group: str
    service: Service
    start: Cut | None
    stop: Cut
    reason: str
    sender: int = 0
    """By which the row is ordered among others of the same time."""


AnySlice = LogSlice | SliceBundle | LostSlice


def described_in(slices: Sequence[AnySlice]) -> Iterator[Described]:
    """The ranges that slices read as they lie."""
    for each in slices:
        match each:
            case SliceBundle(slices=bundled):
                yield from described_in(bundled)
            case LogSlice(described=described):
                yield described
