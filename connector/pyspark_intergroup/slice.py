"""What one task reads: a range of one group's stream, told so exactly that it is these rows or none."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from intergroup_core.client.fetching import Keeper
from intergroup_core.ids import Service
from intergroup_core.log.chain import Described
from intergroup_core.log.cut import Cut


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSlice(InputPartition):
    """A range that nobody has any more: one gap row says so."""

    group: str
    service: Service
    start: Cut | None
    stop: Cut
    reason: str
