"""The streaming source: plans micro-batches on the driver, reads slices in tasks."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pyspark_intergroup.limits import Limits
from pyspark_intergroup.offsets import Offsets
from pyspark_intergroup.options import ReadOptions
from pyspark_intergroup.planner import Planner
from pyspark_intergroup.rows import RowReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_log = logging.getLogger(__name__)

IDLE_WAIT_S = 0.1
"""How long a question for news waits for some, so that a quiet query asks seldom."""


class GroupStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One per query on the driver, where it plans; tasks have copies, which only read."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._rows = RowReader(options, schema)
        self._planner: Planner | None = None
        self._initial: Offsets | None = None
        """Spark asks for it more than once."""
        self._pins = False
        """Whether the next batch is to be empty: Spark keeps its end, and not the offset that a query began with."""
        self._target: Offsets | None = None
        self._behind_since: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_rows": self._rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._planner, self._initial, self._pins, self._target, self._behind_since = None, None, False, None, None

    # On the driver

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        # Asked for again once the first batch is planned: that must neither move the beginning nor pin it once more,
        # for a trigger that takes what is there ends with the first batch that has nothing new.
        if self._initial is None:
            self._initial, self._pins = self._planning().initial(), True
        return self._initial.to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        if self._pins:
            self._pins = False
            return start
        begin = self._offsets(start)
        limits = Limits() if isinstance(limit, ReadAllAvailable) else self._limits
        end = self._planning().end(begin, limits, target=self._target, wait=0.0 if self._target else IDLE_WAIT_S)
        if end == begin or self._waits_for_more(begin, end, limit):
            return start
        self._behind_since = None
        return end.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.max_rows_per_trigger is not None:
            return ReadMaxRows(self._options.max_rows_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        if self._options.min_rows_per_trigger is not None:
            # Only so that a trigger that wants everything can be told from one that leaves it to the options.
            return ReadMaxRows((1 << 63) - 1)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        heads = self._planning().heads()
        return heads.to_json() if heads is not None else None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._planning().latest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._pins = False  # a batch that is planned has its end kept; after a restart it is the first thing asked for
        return self._planning().slices(self._offsets(start), self._offsets(end))

    def commit(self, end: dict[str, Any]) -> None:
        self._planning().commit(self._offsets(end))

    def stop(self) -> None:
        """Let go of the group; called once or more."""
        if self._planner is not None:
            self._planner.close()
            self._planner = None

    @property
    def _limits(self) -> Limits:
        return Limits(rows=self._options.max_rows_per_trigger, nbytes=self._options.max_bytes_per_trigger)

    def _waits_for_more(self, begin: Offsets, end: Offsets, limit: ReadLimit) -> bool:
        """Whether there is too little for a batch, and somebody may wait."""
        wanted, longest = self._options.min_rows_per_trigger, self._options.max_trigger_delay_s
        if wanted is None or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        now = time.monotonic()
        self._behind_since = self._behind_since if self._behind_since is not None else now
        if longest is not None and now - self._behind_since >= longest:
            return False
        return not self._planning().has_rows(begin, end, wanted)

    def _offsets(self, value: dict[str, Any]) -> Offsets:
        return Offsets.of_json(value, groups=self._options.groups, delivery=self._options.delivery)

    def _planning(self) -> Planner:
        if self._planner is None:
            _end_in_order()
            self._planner = Planner(self._options)
        return self._planner

    # In a task

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._rows.read(partition)


def _end_in_order() -> None:
    """Let a signal end the process as an exception does, so that `stop` is called: by itself Spark's signal is
    quicker."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _exit)


def _exit(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
