"""Plans a replay of logs that lie in directories, with nobody's help: of one site, or of several put together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from intergroup_core.errors import ConfigError, DataLost, LogError, RangeUnavailable
from intergroup_core.ids import COUNTER_BITS, EPOCH_US, MemberId, Service
from intergroup_core.log.cut import Cut, EntryCut, OrderCut
from intergroup_core.log.manifest import Manifest, read_manifest
from intergroup_core.log.reader import LogReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.stream_store import logs_under
from pyspark_intergroup.branches import of_one_branch
from pyspark_intergroup.course import Course, cut_before_time, cut_before_view
from pyspark_intergroup.options import ReadOptions
from pyspark_intergroup.points import AtCuts, AtTime, AtView, Earliest, End, Latest, Start
from pyspark_intergroup.slice import LogSlice, LostSlice
from pyspark_intergroup.slicing import Slicer, SliceSizes

MAX_LOGS = 100_000
"""Directories of logs under one path."""


class PathPlanner:
    """The logs under one directory; what is written there meanwhile is not seen."""

    def __init__(self, options: ReadOptions) -> None:
        assert options.path is not None
        self._options = options
        self._path = Path(options.path)
        self._sizes = SliceSizes(least=options.min_partitions, most_rows=options.max_rows_per_partition)

    def slices(self) -> list[LogSlice | LostSlice]:
        """What tasks are to read."""
        found: list[LogSlice | LostSlice] = []
        for group, service, disks in self._streams():
            slicer = Slicer(group, service, (), self._sizes)
            if service is Service.UU:
                found += self._unordered(slicer, disks)
            else:
                found += self._ordered(group, service, slicer, disks)
        return found

    # Which logs

    def _streams(self) -> Iterator[tuple[str, Service, list[FileDisk]]]:
        logs = self._logs()
        groups = self._options.groups or tuple(sorted({manifest.group for manifest, _ in logs}))
        for group in groups:
            service = self._service(group, logs)
            disks = [disk for manifest, disk in logs if (manifest.group, manifest.service) == (group, service)]
            yield group, service, disks

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

    def _service(self, group: str, logs: list[tuple[Manifest, FileDisk]]) -> Service:
        there = {manifest.service for manifest, _ in logs if manifest.group == group}
        wanted = self._options.delivery
        if not there or (wanted is not None and Service(wanted) not in there):
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

    def _ordered(
        self, group: str, service: Service, slicer: Slicer, disks: list[FileDisk]
    ) -> Iterator[LogSlice | LostSlice]:
        reader = StreamReader(of_one_branch(group, disks, self._options.branch))
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
        try:
            yield from self._checked(group, slicer.slices(reader, start, stop))
        except RangeUnavailable as error:
            if self._options.fail_on_data_loss:
                raise _lost(group, start, str(error)) from None
            yield from self._around_holes(reader, group, service, slicer, start, stop)
        if reader.damaged_head is not None and stop == head:
            # Nobody can say where that ended.
            reason = str(reader.damaged_head.error())
            yield LostSlice(group=group, service=service, start=head, stop=_behind(head), reason=reason)

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

    def _checked(self, group: str, slices: list[LogSlice]) -> Iterator[LogSlice]:
        for each in slices:
            if each.described.gaps and self._options.fail_on_data_loss:
                _, why = each.described.gaps[0]
                raise _lost(group, each.described.start, f"the member that wrote the log was out of the group: {why}")
            yield each

    def _around_holes(
        self, reader: StreamReader, group: str, service: Service, slicer: Slicer, start: Cut, stop: Cut
    ) -> Iterator[LogSlice | LostSlice]:
        """What there is on both sides of what is missing, with a gap row for that."""
        for end, begin in reader.holes():
            try:
                yield from slicer.slices(reader, start, end)
            except LogError:
                continue
            yield LostSlice(group=group, service=service, start=end, stop=begin, reason="in no log here")
            start = begin
        yield from slicer.slices(reader, start, stop)


def _behind(cut: Cut) -> Cut:
    """Where the row stands that says that something is missing behind a cut."""
    return OrderCut(cut.timestamp + 1, MemberId(0), cut.view) if isinstance(cut, OrderCut) else cut


def _lost(group: str, cut: Cut, why: str) -> DataLost:
    return DataLost(
        f"group {group}: what follows {cut} is not in these logs ({why}); add another site's, or set "
        "failOnDataLoss=false to read what is there"
    )
