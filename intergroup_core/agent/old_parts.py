"""Logs of earlier days: whole parts of streams that nobody writes any more, removed when they are beyond the limits."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from intergroup_core.errors import IntergroupError
from intergroup_core.ids import Instant, Service, timestamp_at
from intergroup_core.log.reader import LogReader
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.stream_store import StreamStore
from intergroup_core.site_settings import LogConfig

_log = logging.getLogger(__name__)

LOOK_NS = 60_000_000_000
"""How often it is looked at how old they are."""


@dataclass(frozen=True, slots=True)
class OldPart:
    """A part that is complete."""

    log: int
    size: int
    last_timestamp: int


class OldParts:
    """Decides by the same limits as for the log that grows, of which they are the older end."""

    def __init__(self, store: StreamStore) -> None:
        self._store = store
        self._looked: dict[tuple[str, Service], int] = {}

    def retain(
        self, group: str, service: Service, limits: LogConfig, at: Instant, *, live: int | None, live_bytes: int
    ) -> int:
        """Remove the oldest that are beyond a limit; how many. The part with the id `live` is not touched."""
        disks = self._store.parts(group, service)
        looked = self._looked.get((group, service))
        few = live_bytes + sum(disk.bytes_used() for disk in disks) <= limits.retention_bytes
        if few and looked is not None and at.mono - looked < LOOK_NS:
            return 0  # to see how old they are they have to be opened
        self._looked[group, service] = at.mono
        oldest = timestamp_at(max(0, at.wall - round(limits.retention_s * 1e9)))
        parts = [part for part in map(self._part, disks) if part and part.log != live]
        total = live_bytes + sum(part.size for part in parts)
        removed = 0
        for part in sorted(parts, key=lambda part: part.last_timestamp):
            if total <= limits.retention_bytes and part.last_timestamp >= oldest:
                break
            try:
                self._store.remove_part(group, service, part.log)
            except IntergroupError as error:
                _log.info("a part of %s stays for now: %s", group, error)
                continue
            total -= part.size
            removed += 1
        return removed

    @staticmethod
    def _part(disk: FileDisk) -> OldPart | None:
        """None where it cannot be read: what is damaged is for people to look at."""
        try:
            reader = LogReader(disk)
            highest = reader.segments[-1].index.totals.highest if reader.segments else 0
            return OldPart(reader.manifest.log, disk.bytes_used(), highest)
        except IntergroupError as error:
            _log.warning("a part in %s cannot be read: %s", disk.where, error)
            return None
