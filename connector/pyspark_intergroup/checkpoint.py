"""A query's checkpoint directory: which offsets Spark wrote down for our sources, and how to put others in their place.

Spark keeps a file for each batch in `offsets/` (what it was to read) and one in `commits/` (that it was done). A file
of offsets is a line with its version, one with Spark's own notes, and a line for each source of the query, `-` where
it had nothing.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from intergroup_core.errors import OffsetsUnusable
from pyspark_intergroup.offsets import Offsets

_HEAD_LINES = 2
_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class BatchOffsets:
    """What one batch of a query was to read up to."""

    batch: int
    done: bool
    sources: tuple[Offsets | None, ...]
    """None for a source that is not ours."""


class Checkpoint:
    """One checkpoint directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        if not (directory / "offsets").is_dir():
            raise OffsetsUnusable(
                f"{directory} is no checkpoint of a streaming query: it has no offsets; name the query's "
                "checkpointLocation"
            )

    def batches(self) -> list[BatchOffsets]:
        """Those that Spark still keeps, the oldest first."""
        done = set(self._numbers("commits"))
        return [
            BatchOffsets(batch, batch in done, self._sources(self._lines(batch))) for batch in self._numbers("offsets")
        ]

    def last(self) -> BatchOffsets:
        """Where the query would go on from, or do again if it is not done."""
        batches = self.batches()
        if not batches or all(source is None for source in batches[-1].sources):
            raise OffsetsUnusable(
                f"{self._directory} has no offsets of an intergroup source; is it the checkpoint of another query?"
            )
        return batches[-1]

    def reset(self, wanted: Offsets) -> Path:
        """Let the query go on from other offsets; the file that held the old ones, kept under another name.

        The last batch counts as done with the new offsets: Spark goes on with the next number.
        """
        last = self.last()
        lines = self._lines(last.batch)
        groups = set(wanted)
        places = [at for at, source in enumerate(last.sources) if source is not None and set(source) == groups]
        if len(places) != 1:
            ours = "; ".join(", ".join(source) for source in last.sources if source is not None)
            raise OffsetsUnusable(
                f"the query has {len(places)} sources that read {', '.join(sorted(groups))} (they read: {ours}); "
                "give a cut for each group of one source"
            )
        lines[_HEAD_LINES + places[0]] = wanted.to_text()
        offsets = self._directory / "offsets" / str(last.batch)
        kept = offsets.with_name(f".{last.batch}.before-reset")
        _replace(kept, offsets.read_text())
        _replace(offsets, "\n".join(lines))
        commits = self._directory / "commits"
        commits.mkdir(exist_ok=True)
        if not last.done:
            _replace(commits / str(last.batch), 'v1\n{"nextBatchWatermarkMs":0}')
        # Spark keeps checksums of its files beside them, under hidden names; of these they would be wrong.
        for file in (offsets, commits / str(last.batch)):
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        return kept

    def _numbers(self, which: str) -> list[int]:
        directory = self._directory / which
        return (
            sorted(int(file.name) for file in directory.iterdir() if file.name.isdigit()) if directory.is_dir() else []
        )

    def _lines(self, batch: int) -> list[str]:
        lines = (self._directory / "offsets" / str(batch)).read_text().split("\n")
        if len(lines) <= _HEAD_LINES or not lines[0].startswith("v"):
            raise OffsetsUnusable(f"{self._directory}/offsets/{batch} is not a file of offsets as Spark writes them")
        return lines

    def _sources(self, lines: list[str]) -> tuple[Offsets | None, ...]:
        return tuple(_ours(line) for line in lines[_HEAD_LINES:])


def _ours(line: str) -> Offsets | None:
    try:
        value = json.loads(line) if line != _NOTHING else None
    except ValueError:
        return None
    if not isinstance(value, dict) or value.keys() != {"groups", "version"}:
        return None
    return Offsets.of_json(value)


def _replace(file: Path, content: str) -> None:
    """All of it or nothing, whatever happens meanwhile."""
    partial = file.with_name(f".{file.name}.new")
    with partial.open("w") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    partial.replace(file)
