"""Rows of a log as a Parquet or Arrow file, there whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from intergroup_core.errors import ConfigError, LogError

PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".arrow", ".ipc", ".feather")
GROUP_ROWS = 1 << 20
GROUP_BYTES = 128 << 20
"""A row group is written when it has so many rows or bytes."""


def export_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: Path, advance: Callable[[int], None]) -> int:
    """How many rows were written."""
    if out.suffix not in PARQUET_SUFFIXES + ARROW_SUFFIXES:
        raise ConfigError(f"{out} must end in .parquet for Parquet or in .arrow for Arrow IPC")
    if out.exists():
        raise ConfigError(f"{out} is there already; remove it, or name another file")
    part = out.with_name(f"{out.name}.part")
    try:
        written = _write(batches, schema, part, out.suffix in PARQUET_SUFFIXES, advance)
        part.replace(out)
    except OSError as error:
        raise LogError(f"cannot write {out}: {error.strerror or error}; make room or name another place") from error
    finally:
        part.unlink(missing_ok=True)
    return written


def _write(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, part: Path, parquet: bool, advance: Callable[[int], None]
) -> int:
    opened: Any = pa.parquet.ParquetWriter if parquet else pa.ipc.new_file
    written = 0
    gathered: list[pa.RecordBatch] = []
    with opened(str(part), schema) as writer:
        for batch in batches:
            gathered.append(batch)
            written += batch.num_rows
            advance(batch.num_rows)
            enough = sum(each.nbytes for each in gathered) >= GROUP_BYTES
            if enough or sum(each.num_rows for each in gathered) >= GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(gathered))
                gathered = []
        if gathered:
            writer.write_table(pa.Table.from_batches(gathered))
    return written
