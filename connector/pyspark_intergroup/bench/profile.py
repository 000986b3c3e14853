"""Where the time of tasks goes: a source that reads as ours does, and notes what its Python workers did meanwhile."""

from __future__ import annotations

import cProfile
import os
import pstats
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pyspark_intergroup.bench.figure import Figure
from pyspark_intergroup.source import InterGroupSource
from pyspark_intergroup.stream_reader import GroupStreamReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

DIRECTORY = "INTERGROUP_BENCH_PROFILE"
"""Where workers leave what they noted; they inherit it from the session's process."""
SHOWN = 12
"""Functions, those with the most time of their own."""


class ProfiledSource(InterGroupSource):
    """As `intergroup`, for a benchmark."""

    @classmethod
    def name(cls) -> str:
        return "intergroup-profiled"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return ProfiledStreamReader(self._read_options(schema, streaming=True), schema)


class ProfiledStreamReader(GroupStreamReader):
    """Notes all that happens in its thread from its first row to its last: also what Spark does with each batch."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        profile = cProfile.Profile()
        begun = time.perf_counter_ns()
        profile.enable()
        try:
            yield from super().read(partition)
        finally:
            profile.disable()
            taken = time.perf_counter_ns() - begun
            profile.dump_stats(Path(os.environ[DIRECTORY]) / f"{os.getpid()}-{time.time_ns()}-{taken}.pstats")


def spent(directory: Path, said: str) -> list[Figure]:
    """Milliseconds of a task in each function itself, next to all of it; the first tasks warm the workers up.

    What Spark's own loop does that takes the batches is not noted, for that had begun before: it is what is left.
    """
    files = sorted(directory.glob("*.pstats"), key=lambda file: file.stat().st_mtime_ns)
    counted = files[len(files) // 3 :]
    own: dict[str, float] = defaultdict(float)
    for file in counted:
        stats: Any = pstats.Stats(str(file))
        for (path, _, function), (_, _, taken, _, _) in stats.stats.items():
            own[f"{_short(path)}{function}"] += 1_000 * taken / len(counted)
    total = sum(int(file.stem.rpartition("-")[2]) for file in counted) / len(counted) / 1e6
    for file in files:
        file.unlink()
    shown = [("Spark takes the batches, or is waited for", total - sum(own.values())), ("read", sum(own.values()))]
    shown += sorted(own.items(), key=lambda each: -each[1])[:SHOWN]
    return [Figure(name=f"{said}: {name}", value=taken, unit="ms a task", beside=total) for name, taken in shown]


def _short(path: str) -> str:
    return "" if path == "~" else "/".join(Path(path).parts[-2:]) + ":"
