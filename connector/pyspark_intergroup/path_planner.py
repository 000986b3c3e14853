"""Plans a replay of logs that lie in directories, with nobody's help: of one site, or of several put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from intergroup_core.errors import ConfigError, DataLost, LogError, RangeUnavailable
from intergroup_core.ids import COUNTER_BITS, EPOCH_US, MemberId, Service
from intergroup_core.log.cut import Cut, EntryCut, OrderCut
from intergroup_core.log.manifest import Manifest, read_manifest
from intergroup_core.log.ordered_sources import OrderedSources
from intergroup_core.log.reader import LogReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.stream_store import logs_under
from pyspark_intergroup.branches import of_one_branch
from pyspark_intergroup.committed import Committed
from pyspark_intergroup.committed_slicing import CommittedSlicer
from pyspark_intergroup.course import Course, cut_before_time, cut_before_view
from pyspark_intergroup.options import COMMITTED, UNCOMMITTED, ReadOptions
from pyspark_intergroup.points import AtCuts, AtTime, AtView, Earliest, End, Latest, Start
from pyspark_intergroup.slice import AnySlice, LogSlice, LostSlice, described_in
from pyspark_intergroup.slicing import Slicer, SliceSizes
from pyspark_intergroup.transactions import TransactionMissing, lost_transaction

MAX_LOGS = 100_000
"""Directories of logs under one path."""


class PathPlanner:
    """The logs under one directory; what is written there meanwhile is not seen."""

    def __init__(self, options: ReadOptions) -> None:
        assert options.path is not None
        self._options = options
        self._path = Path(options.path)
        self._sizes = SliceSizes(least=options.min_partitions, most_rows=options.max_rows_per_partition)

    def slices(self) -> list[AnySlice]:
        """What tasks are to read."""
        found: list[AnySlice] = []
        for group, service, disks in self._streams():
            self._check_isolation(group, service)
            slicer = Slicer(group, service, (), self._sizes)
            if service is Service.UU:
                found += self._unordered(slicer, disks)
            else:
                found += self._ordered(group, service, slicer, disks)
        return found

    def _check_isolation(self, group: str, service: Service) -> None:
        if self._options.isolation == COMMITTED and service is not Service.RTO:
            raise ConfigError(
                f"isolation is 'committed' and the logs of group {group} are by {service.value}, which has no order "
                "that a transaction could commit in; use uncommitted"
            )

    # Which logs

    def _streams(self) -> Iterator[tuple[str, Service, list[FileDisk]]]:
        logs = self._logs()
        groups = self._options.groups or tuple(sorted({manifest.group for manifest, _ in logs}))
        for group in groups:
            service = self._service(group, logs)
            kept = group, self._kept_by(group, service, logs)
            yield group, service, [disk for manifest, disk in logs if (manifest.group, manifest.service) == kept]

    def _logs(self) -> list[tuple[Manifest, FileDisk]]:
        if not self._path.is_dir():
            raise ConfigError(f"path is {str(self._path)!r}, and no such directory is here; name one with logs in it")
        found = []
        for log in logs_under(self._path):
            disk = FileDisk(log)
            found.append((read_manifest(disk), disk))
            if len(found) > MAX_LOGS:
                raise ConfigError(
                    f"path is {str(self._path)!r}, with more than {MAX_LOGS} logs in it; name one stream's"
                )
        if not found:
            raise ConfigError(
                f"path is {str(self._path)!r}, and there is no log in it; name a log's directory, or one above it"
            )
        return found

    @staticmethod
    def _kept_by(group: str, service: Service, logs: list[tuple[Manifest, FileDisk]]) -> Service:
        """The service of the logs that give another one's: whoever has the one order has that of each sender."""
        there = {manifest.service for manifest, _ in logs if manifest.group == group}
        return service if service in there or service is not Service.RSO else Service.RTO

    def _service(self, group: str, logs: list[tuple[Manifest, FileDisk]]) -> Service:
        there = {manifest.service for manifest, _ in logs if manifest.group == group}
        wanted = self._options.delivery
        if not there or (wanted is not None and self._kept_by(group, Service(wanted), logs) not in there):
            held = ", ".join(sorted({f"{manifest.group} by {manifest.service.value}" for manifest, _ in logs}))
            raise ConfigError(
                f"there is no log of group {group}{f' by {wanted}' if wanted else ''} in {self._path}, only of {held}"
            )
        if wanted is None and len(there) > 1:
            raise ConfigError(
                f"{self._path} has logs of group {group} by {' and '.join(sorted(each.value for each in there))}; "
                "say which with delivery"
            )
        return Service(wanted) if wanted is not None else there.pop()

    # What of them

    def _unordered(self, slicer: Slicer, disks: list[FileDisk]) -> Iterator[LogSlice]:
        """In `uu` every log is an order of its own; those of one site follow each other, those of two say the same."""
        sites = {Path(disk.where).parent for disk in disks}
        if len(sites) > 1:
            first, second, *_ = sorted(map(str, sites))
            raise ConfigError(
                f"{first} and {second} both have logs by uu, which cannot be put together; read one of them"
            )
        if not isinstance(self._options.starting, Earliest) or not isinstance(self._options.ending, Latest):
            raise ConfigError("logs by uu have no order in which to begin or end elsewhere; leave out where to")
        for disk in disks:
            log = LogReader(disk)
            begin, end = EntryCut(log.manifest.log, log.first), EntryCut(log.manifest.log, log.stop)
            yield from slicer.slices(StreamReader([disk]), begin, end)

    def _ordered(self, group: str, service: Service, slicer: Slicer, disks: list[FileDisk]) -> Iterator[AnySlice]:
        committed = service is Service.RTO and self._options.isolation != UNCOMMITTED
        plan = _Plan(group, slicer, Committed() if committed else None, self._options.fail_on_data_loss)
        logs = of_one_branch(group, disks, self._options.branch)
        ordered = service is Service.RSO and any(read_manifest(disk).service is Service.RTO for disk in logs)
        reader = self._by_senders(group, logs) if ordered else StreamReader(logs)
        if reader.errors and self._options.fail_on_data_loss:
            raise reader.errors[0]
        first, head = reader.first(), reader.head()
        if first is None or head is None:
            if reader.errors:
                raise reader.errors[0]
            return
        ending = self._options.ending
        assert ending is not None
        start = self._cut(reader, group, service, self._options.starting, first, head)
        stop = self._cut(reader, group, service, ending, first, head)
        if isinstance(self._options.starting, Earliest):
            start = plan.whole_from(reader, start, stop)
        try:
            for each in self._checked(group, plan.slices(reader, start, stop)):
                # Of some parts of `rto` only those before them say where their senders stood.
                if ordered and isinstance(each, LogSlice):
                    yield replace(each, parts=tuple(disk.where for disk in logs))
                else:
                    yield each
        except RangeUnavailable as error:
            if self._options.fail_on_data_loss:
                raise _lost(group, start, str(error)) from None
            yield from self._around_holes(reader, group, service, plan, start, stop)
        if reader.damaged_head is not None and stop == head:
            # Nobody can say where that ended.
            reason = str(reader.damaged_head.error())
            yield LostSlice(group=group, service=service, start=head, stop=_behind(head), reason=reason)

    def _by_senders(self, group: str, logs: list[FileDisk]) -> OrderedSources:
        reader = OrderedSources(logs)
        if len(reader.parts) < len(StreamReader(logs).parts):
            raise ConfigError(
                f"some logs of group {group} by rto in {self._path} do not say where their senders stood when they "
                "began, and cannot be read by rso; read them with delivery rto"
            )
        return reader

    def _cut(
        self, reader: StreamReader, group: str, service: Service, point: Start | End, first: Cut, head: Cut
    ) -> Cut:
        match point:
            case Earliest():
                return first
            case Latest():
                return head
            case AtCuts(offsets):
                return offsets[group]
            case AtTime(timestamp_us):
                lowest = max(0, timestamp_us - EPOCH_US) << COUNTER_BITS
                course = Course(reader, first, head)
                return cut_before_time(course, first, head, lowest, by_time=service is Service.RTO)
            case AtView(view):
                cut = cut_before_view(Course(reader, first, head), first, view)
                if cut is None:
                    raise ConfigError(f"startingView is {view}, which no log of group {group} in {self._path} has")
                return cut

    def _checked(self, group: str, slices: list[AnySlice]) -> list[AnySlice]:
        for each in described_in(slices):
            if each.gaps and self._options.fail_on_data_loss:
                _, why = each.gaps[0]
                raise _lost(group, each.start, f"the member that wrote the log was out of the group: {why}")
        return slices

    def _around_holes(
        self, reader: StreamReader, group: str, service: Service, plan: _Plan, start: Cut, stop: Cut
    ) -> Iterator[AnySlice]:
        """What there is on both sides of what is missing, with a gap row for that."""
        for end, begin in reader.holes():
            try:
                yield from plan.slices(reader, start, end)
            except LogError:
                continue
            yield LostSlice(group=group, service=service, start=end, stop=begin, reason="in no log here")
            start = begin
        yield from plan.slices(reader, start, stop)


class _Plan:
    """How the ranges of one group are cut into slices."""

    def __init__(self, group: str, slicer: Slicer, committed: Committed | None, fail_on_data_loss: bool) -> None:
        self._group = group
        self._slicer = slicer
        self._committed = committed
        self._fail_on_data_loss = fail_on_data_loss

    def whole_from(self, reader: StreamReader, start: Cut, stop: Cut) -> Cut:
        """The earliest cut, or one behind transactions of which only the end is in the logs."""
        if self._committed is None or not isinstance(start, OrderCut) or not isinstance(stop, OrderCut):
            return start
        try:
            return self._committed.whole_from(reader, start, stop)
        except LogError:  # a hole, of which whoever reads across it is told
            return start

    def slices(self, reader: StreamReader, start: Cut, stop: Cut) -> list[AnySlice]:
        if self._committed is None or not isinstance(start, OrderCut) or not isinstance(stop, OrderCut):
            return list(self._slicer.slices(reader, start, stop))
        while True:
            try:
                return CommittedSlicer(self._slicer, self._committed).slices(reader, start, stop)
            except TransactionMissing as missing:
                if self._fail_on_data_loss:
                    raise lost_transaction(self._group, missing.name, missing.why) from None
                self._committed.lose(missing, missing.why)


def _behind(cut: Cut) -> Cut:
    """Where the row stands that says that something is missing behind a cut."""
    return OrderCut(cut.timestamp + 1, MemberId(0), cut.view) if isinstance(cut, OrderCut) else cut


def _lost(group: str, cut: Cut, why: str) -> DataLost:
    return DataLost(
        f"group {group}: what follows {cut} is not in these logs ({why}); add another site's, or set "
        "failOnDataLoss=false to read what is there"
    )
