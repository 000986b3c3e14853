"""How much of the log that grows is kept: by the limits, for those who read it, and for named subscriptions."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from pathlib import Path

from intergroup_core.errors import LogError
from intergroup_core.ids import Service
from intergroup_core.log.cut import BEHIND_ALL, OrderCut
from intergroup_core.log.manifest import SealedSegment
from intergroup_core.log.reader import LogReader
from intergroup_core.log.retention import Limits, removable
from intergroup_core.runtime.clock import now
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.member_log import MemberLog
from intergroup_core.runtime.subscription_store import Subscription
from intergroup_core.site_settings import LogConfig

_log = logging.getLogger(__name__)


class StreamRetention:
    """Removes sealed segments from the old end of a log; not while a job of its writer is under way."""

    def __init__(self, service: Service, config: LogConfig, log: MemberLog, disk: FileDisk) -> None:
        self._service = service
        self._config = config
        self._log = log
        self._writer = log.writer
        self._disk = disk
        self._done: int | None = None
        """The entry below which all subscriptions were done at the last look at them."""

    def retain(
        self, floor: int | None, subscriptions: Sequence[Subscription] | None, open_since: int | None = None
    ) -> bool:
        """Remove what may go; whether readers, the slowest of which is at `floor`, hold more than there may be.

        With `log.release` also what all named subscriptions are done with goes, where there are any. What was staged
        for transactions that are still open stays, from a timestamp on: it may become visible, and nobody is made to
        wait for that, because those who write it would be among them.
        """
        config, writer = self._config, self._writer
        readers, floor = floor, self._not_above(floor, open_since)
        if subscriptions is not None:
            self._done = self._done_entry(subscriptions) if config.release else None
        limits = Limits(bytes=config.retention_bytes, age_ns=round(config.retention_s * 1e9))
        try:
            gone = removable(
                writer.sealed,
                limits=limits,
                now=now(),
                active_bytes=writer.active.totals.size,
                floor=floor,
            )
            self._log.remove(max(gone, self._released(floor), key=len))
        except LogError as error:
            _log.error("the log in %s could not be cut back: %s", self._disk.where, error)
        # Only what a reader holds is worth waiting for: the rest goes by itself.
        kept = writer.sealed
        held = readers is not None and bool(kept) and kept[0].stop > readers
        return held and writer.size > limits.bytes + config.segment_bytes

    def _not_above(self, floor: int | None, open_since: int | None) -> int | None:
        """A floor that leaves everything that is ordered at or behind a timestamp."""
        if open_since is None:
            return floor
        try:
            reader = LogReader(FileDisk(Path(self._disk.where)))
            staged = reader.place_of(OrderCut(open_since - 1, BEHIND_ALL)).entry
        except LogError:
            staged = self._writer.manifest.first  # it lies before this log, or cannot be found: nothing goes
        return staged if floor is None else min(floor, staged)

    def _released(self, floor: int | None) -> tuple[SealedSegment, ...]:
        """Sealed segments that every subscription and every reader is done with."""
        if self._done is None:
            return ()
        upto = self._done if floor is None else min(self._done, floor)
        return tuple(itertools.takewhile(lambda segment: segment.stop <= upto, self._writer.sealed))

    def _done_entry(self, subscriptions: Sequence[Subscription]) -> int | None:
        """The entry below which all subscriptions are done; None where there are none, or one is not in this log."""
        cuts = [each.cut for each in subscriptions]
        if not cuts or self._service is not Service.RTO:
            return None
        try:
            reader = LogReader(FileDisk(Path(self._disk.where)))
            return min(reader.place_of(cut).entry for cut in cuts if isinstance(cut, OrderCut))
        except LogError:
            return None
