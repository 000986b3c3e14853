"""Where a task gets the rows of its slice: this machine's logs where they hold just that, else another site's."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from intergroup_core.client.range_client import fetch_range
from intergroup_core.config import Config
from intergroup_core.errors import IntergroupError, LogError, RangeUnavailable
from intergroup_core.ids import Service
from intergroup_core.log.chain import serves
from intergroup_core.log.ordered_sources import source_readers
from intergroup_core.log.reader import LogReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.log.stretch import Range
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.stream_store import StreamStore
from pyspark_intergroup.receiving import Receivers
from pyspark_intergroup.slice import LogSlice

FETCH_TRIES_S = 1.0
"""Between two rounds through all holders."""


Readers = dict[tuple[str, ...], StreamReader]
"""What was looked at for other slices of the same task, by the directories of the logs."""


class SliceServer:
    """Finds a log that holds a slice; nothing of it is kept beyond the task but what the site's agent has."""

    def __init__(self, config: Config, executors: str, timeout_s: float) -> None:
        self._config = config
        self._executors = executors
        self._timeout_s = timeout_s

    @contextmanager
    def ranges(self, wanted: LogSlice, readers: Readers | None = None) -> Iterator[list[Range]]:
        """The logs that give a slice, in order; RangeUnavailable where none can be reached in time.

        Who reads several slices keeps what was looked through for one of them.
        """
        found = self._here(wanted, readers if readers is not None else {})
        if found is not None:
            yield found
            return
        with tempfile.TemporaryDirectory(prefix="intergroup-", dir=_scratch()) as scratch:
            reader = self._fetched(wanted, Path(scratch))
            yield [Range(reader, wanted.described.start, wanted.described.stop)]

    def _here(self, wanted: LogSlice, readers: Readers) -> list[Range] | None:
        """From the logs of the site that planned it, where this is its machine, or from this site's own."""
        planned = [FileDisk(Path(part)) for part in wanted.parts if Path(part).is_dir()]
        if planned:
            return _ranges_in(planned, wanted, readers)
        if self._executors == "fetch" or wanted.service is Service.UU:
            return None
        own = Receivers.logs(wanted.group, wanted.service, self._config)
        if own is None:
            return None
        # Whoever has the one order has that of each sender.
        services = (Service.RSO, Service.RTO) if wanted.service is Service.RSO else (wanted.service,)
        parts = [part for service in services for part in StreamStore(Path(own)).parts(wanted.group, service)]
        return _ranges_in(parts, wanted, readers)

    def _fetched(self, wanted: LogSlice, scratch: Path) -> LogReader:
        deadline = time.monotonic() + self._timeout_s
        holders = list(wanted.holders)
        told: dict[str, str] = {}
        tries = 0
        while True:
            for number, holder in enumerate(holders):
                tries += 1
                # One that is silent must not use up the time of those that would answer.
                share = (deadline - time.monotonic()) / (len(holders) - number)
                try:
                    return fetch_range(
                        holder,
                        wanted.group,
                        wanted.service,
                        wanted.described,
                        scratch / str(tries),
                        share,
                    )
                except IntergroupError as error:
                    told[str(holder)] = str(error)
            left = deadline - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(FETCH_TRIES_S, left))  # a holder that comes back does not say so to a task
            holders = Receivers.keepers(wanted.group, wanted.service, self._config, self._executors) or holders
        said = "; ".join(f"{who}: {why}" for who, why in told.items()) or "no site is known to hold it"
        raise RangeUnavailable(
            f"no site gave group {wanted.group} from {wanted.described.start} to {wanted.described.stop} within "
            f"{self._timeout_s:g} s ({said}); start an agent at a site that has the log, and try again"
        )


def _ranges_in(parts: Sequence[FileDisk], wanted: LogSlice, readers: Readers) -> list[Range] | None:
    """The logs that give a slice; None where they hold something else, or not all of it."""
    described = wanted.described
    key = tuple(part.where for part in parts)
    try:
        if wanted.service is Service.RSO:
            found = next((each for each in source_readers(parts) if serves(each, described)), None)
            return found.ranges(described.start, described.stop) if found is not None else None
        known = readers.get(key)
        if known is None or not serves(known, described):
            known = readers[key] = StreamReader(parts)  # a log that grows may have it by now
            if not serves(known, described):
                return None
        return known.ranges(described.start, described.stop)
    except LogError:
        return None  # damaged here, and whole elsewhere perhaps


def _scratch() -> str | None:
    """Where Spark wants an executor to put files, where it says so."""
    for variable in ("SPARK_EXECUTOR_DIRS", "SPARK_LOCAL_DIRS"):
        for directory in os.environ.get(variable, "").split(","):
            if directory and os.access(directory, os.W_OK):
                return directory
    return None
