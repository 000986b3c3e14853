"""Appends what a member delivers to its log, rolls and seals segments, and knows how much of it is durable."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from enum import IntEnum
from typing import Protocol

from intergroup_core.effects import Install
from intergroup_core.errors import ConfigError, DiskFull, LocalProtocolError, LogError
from intergroup_core.ids import Service, ViewId
from intergroup_core.log.cut import Cut, OrderCut, SourceCut
from intergroup_core.log.entry import end_mark
from intergroup_core.log.entry_maker import Delivered, EntryMaker, MadeEntry
from intergroup_core.log.growing import GrowingSegment
from intergroup_core.log.index import IndexBuilder, SegmentIndex
from intergroup_core.log.manifest import (
    MANIFEST,
    DurableEnd,
    Manifest,
    SealedSegment,
    index_name,
    read_manifest,
    replace_file,
    segment_name,
    write_manifest,
)
from intergroup_core.log.recovery import Recovered, Report, recover
from intergroup_core.log.removal import RemovalJob
from intergroup_core.log.retention import begins_behind
from intergroup_core.log.sync import SyncJob, Unsettled
from intergroup_core.ports import Disk, LogFile
from intergroup_core.wire.chunk import Chunk

SEGMENT_BYTES = 64 << 20
"""A segment is sealed when it has so many bytes."""
MAX_UNSETTLED = 16
"""Sealed segments that may be unsynced; beyond it the next roll waits for the disk. While a job is under way it cannot,
and the segment that grows goes on growing."""


INDEX_EVERY = 512
"""Entries after which the index of the segment that grows is written anew: who opens a log looks through no more."""
INDEX_SHARE = 16
"""Where an index has become large, it is written anew only when there is so much more of it, as a fraction."""


class Durability(IntEnum):
    """Where an entry is when it counts: what is lost with the process, with the machine, or not at all."""

    MEMORY = 0
    OS = 1
    DISK = 2


class Stated(Protocol):
    """Follows what is appended to a log: what ordered statements add up to, written at the beginning of segments."""

    def deliver(self, chunk: Chunk) -> object: ...

    def enter(self, install: Install) -> object: ...

    def checkpoint(self) -> bytes:
        """All of it, as of the last that it was told."""


class LogWriter:
    """The one writer of a log. Entries are numbered from 0; a mark of n says that all entries below n are so far.

    An append that raises has left nothing in the log, and may be tried again.
    """

    def __init__(
        self,
        disk: Disk,
        recovered: Recovered,
        *,
        durability: Durability = Durability.OS,
        segment_bytes: int = SEGMENT_BYTES,
        stated: Stated | None = None,
        index_every: int = INDEX_EVERY,
    ) -> None:
        self._disk = disk
        self._index_every = index_every
        self._indexed = 0
        """Entries of the segment that grows that its index knows of."""
        self._stated = stated
        self._manifest = recovered.manifest
        self._durability = durability
        self._segment_bytes = segment_bytes
        self._context = recovered.context
        self._maker = EntryMaker(recovered.manifest.log)
        self._unsettled = [Unsettled(seal, disk.reopen(segment_name(seal.first))) for seal in recovered.unsettled]
        self._failed = ""
        self._job: SyncJob | RemovalJob | None = None
        self._new_names = False
        self.report: Report = recovered.report
        self.appended = recovered.context.entry
        self.durable = recovered.context.entry if not self._unsettled else self._unsettled[0].segment.first
        active = recovered.active
        if active is None:
            self._begin_segment()
        else:
            self._segment = self._growing(disk.reopen(segment_name(active.first)), active)
            self.durable = min(self.durable, active.first)

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    @property
    def written(self) -> int:
        """Entries below it are with the kernel."""
        return self._segment.written

    @property
    def unsettled(self) -> int:
        """Sealed segments that wait for `settle`."""
        return len(self._unsettled)

    @property
    def sealed(self) -> tuple[SealedSegment, ...]:
        """Those that the manifest lists, and those that are still to be settled."""
        return (*self._manifest.sealed, *(unsettled.segment for unsettled in self._unsettled))

    @property
    def size(self) -> int:
        """In bytes, of all that is in the log."""
        return sum(segment.size for segment in self.sealed) + self._segment.builder.size

    @property
    def unsynced_bytes(self) -> int:
        """What a flush to `disk` would have to sync."""
        sealed = sum(unsettled.segment.size for unsettled in self._unsettled)
        return sealed + self._segment.builder.size - 8 * self._segment.synced_words

    @property
    def active(self) -> SegmentIndex:
        """The index of the segment that grows."""
        return self._segment.builder.index()

    def append(self, delivered: Delivered) -> int:
        """One delivery, as one entry; its number."""
        self._refuse_failed()
        if self._segment.builder.size >= self._segment_bytes and not (self.busy and self.unsettled >= MAX_UNSETTLED):
            self._roll()
        segment = self._segment
        if not segment.builder.entries and self._context.install is not None:
            carried = self._carried(self._context.install)
            self._put(self._maker.carried(carried, self._context, segment.synced_words), carried.view.id)
        entry = self._maker.entry(delivered, self._context, segment.synced_words)
        if isinstance(delivered, Install):
            self._put(entry, delivered.view.id)
            self._context = self._context._replace(install=delivered)
        else:
            self._put(entry)
        if self._stated is not None:
            if isinstance(delivered, Install):
                self._stated.enter(delivered)
            elif isinstance(delivered, Chunk):
                self._stated.deliver(delivered)
        return entry.header.entry

    def _carried(self, install: Install) -> Install:
        """A view as it is repeated: with what is stated by now, not with what was when it began."""
        if not self._context.entry:
            return install
        return replace(install, ledger=self._stated.checkpoint() if self._stated is not None else b"")

    def carry(self, install: Install) -> None:
        """Begin with the view in force: for what is fetched from the midst of a stream."""
        if self._context.entry or self._segment.builder.entries:
            raise LocalProtocolError(f"{self._disk.where} has entries already; only a log that has none can begin so")
        self._context = self._context._replace(install=install)
        if self._stated is not None:
            self._stated.enter(install)

    def begin_with(self, install: Install, behind: OrderCut | None = None) -> int:
        """Carry a view, and say so at once, for those who read while this log is written; the number of the entry."""
        self.carry(install)
        if behind is not None:
            self.stand_behind(behind)
        carried = self._maker.carried(install, self._context, self._segment.synced_words)
        self._put(carried, install.view.id)
        return carried.header.entry

    def stand_behind(self, cut: OrderCut, seq: int = 0) -> None:
        """What a gap that is appended next comes after, where that is not in this log."""
        self._context = self._context._replace(source=cut.sender, seq=seq, timestamp=cut.timestamp)

    def flush(self, level: Durability) -> int:
        """Bring everything appended to a level; up to where it is there now."""
        self._refuse_failed()
        if level >= Durability.OS:
            self._segment.write_out()
        if level is Durability.DISK:
            self._refuse_while_busy("flush to disk")
        if level is Durability.DISK and self.durable < self.appended:
            # First, so that a manifest that is to be written anyway can tell of it.
            self._sync(self._segment.file)
            if self._unsettled:
                self._settle(self._whole)
            elif self._new_names:
                self._disk.sync_names()
                self._new_names = False
            self.durable = self.appended
            self._segment.synced_words = self._segment.builder.size // 8
        return self.appended if level is Durability.MEMORY else self.written if level is Durability.OS else self.durable

    def settle(self) -> None:
        """Make sealed segments durable and list them in the manifest; without it they are looked through at a start."""
        self._refuse_while_busy("settle")
        if self._unsettled:
            self._settle(self._known)

    def _settle(self, end: DurableEnd | None) -> None:
        for unsettled in self._unsettled:
            self._sync(unsettled.file)
        sealed = tuple(unsettled.segment for unsettled in self._unsettled)
        self._write_manifest(replace(self._manifest, sealed=(*self._manifest.sealed, *sealed)).knowing(end))
        self._new_names = False
        for unsettled in self._unsettled:
            unsettled.file.close()
        self._unsettled.clear()
        self.durable = max(self.durable, sealed[-1].stop)

    @property
    def busy(self) -> bool:
        """Whether a job is under way; until its end nothing else may sync, settle, remove or close."""
        return self._job is not None

    def begin_sync(self) -> SyncJob | None:
        """A flush to `disk` that somebody else runs, of all that is appended now; None where that is durable, or
        being made so by a job that is under way."""
        self._refuse_failed()
        self._segment.write_out()
        if self._job is not None or (self.durable >= self.appended and not self._unsettled):
            return None
        sealed = tuple(unsettled.segment for unsettled in self._unsettled)
        self._job = SyncJob(
            self._disk,
            mark=self.appended,
            unsettled=tuple(self._unsettled),
            manifest=replace(self._manifest, sealed=(*self._manifest.sealed, *sealed)).knowing(self._whole)
            if sealed
            else None,
            names=self._new_names,
            active=self._segment.file,
            active_words=self._segment.builder.size // 8,
        )
        self._new_names = False  # those that a roll makes from now on are for the next one
        return self._job

    def end_sync(self, job: SyncJob, error: BaseException | None = None) -> int:
        """After `run`, with what it raised; up to where the log is durable now.

        A full disk leaves everything as it was, to be tried again; any other error is final.
        """
        self._end(job)
        if error is not None:
            self._new_names |= job.names
            if job.lost or not isinstance(error, DiskFull):
                what = job.lost or error
                self._failed = f"{what}; what was appended last may be lost: open the log again"
            return self.durable
        if job.manifest is not None:
            self._manifest = job.manifest
        for unsettled in job.unsettled:
            unsettled.file.close()
        del self._unsettled[: len(job.unsettled)]
        self.durable = max(self.durable, job.mark)
        if self._segment.file is job.active:
            self._segment.synced_words = job.active_words
        return self.durable

    def remove(self, segments: tuple[SealedSegment, ...]) -> None:
        """Forget the oldest sealed segments, and remove their files."""
        job = self.begin_removal(segments)
        if job is not None:
            try:
                job.run()
            finally:
                self.end_removal(job)

    def begin_removal(self, segments: tuple[SealedSegment, ...]) -> RemovalJob | None:
        """Forget the oldest sealed segments, whose files somebody else removes; None where there are none."""
        self._refuse_while_busy("remove segments")
        if segments != self.sealed[: len(segments)]:
            raise LocalProtocolError("only the oldest sealed segments can be removed")
        if not segments:
            return None
        begin = begins_behind(self._disk, self._manifest, segments)
        manifest = replace(self._manifest.without(segments), first=segments[-1].stop)
        if manifest.service is Service.RSO:
            known = isinstance(self._manifest.after, SourceCut)
            manifest = replace(manifest, after=begin) if known else replace(manifest, missing=begin)
        else:
            manifest = replace(manifest, sources=begin)
        manifest = manifest.knowing(self._known)
        unsettled = tuple(each for each in self._unsettled if each.segment in segments)
        self._job = RemovalJob(
            self._disk, segments=segments, unsettled=unsettled, before=self._manifest, manifest=manifest
        )
        del self._unsettled[: len(unsettled)]
        self._manifest = manifest
        return self._job

    def end_removal(self, job: RemovalJob) -> None:
        """After `run`, whatever came of it; where the manifest could not be written, nothing was removed."""
        self._end(job)
        if not job.listed:
            self._manifest = job.before
            self._unsettled[:0] = job.unsettled

    def bound(
        self,
        *,
        after: Cut | None = None,
        sources: SourceCut | None = None,
        missing: SourceCut | None = None,
        upto: Cut | None = None,
    ) -> None:
        """Say where the log begins, or that it is complete up to a cut: true and durable once this returns."""
        self._refuse_while_busy("say between which cuts it lies")
        self.flush(Durability.DISK)
        after, upto = after or self._manifest.after, upto or self._manifest.upto
        manifest = replace(
            self._manifest,
            after=after,
            sources=sources or self._manifest.sources,
            missing=missing or self._manifest.missing,
            upto=upto,
            fetching=self._manifest.fetching and upto is None,
        )
        self._write_manifest(manifest.knowing(self._known))

    def close(self) -> None:
        """Everything durable, unless the disk refuses, and the manifest says so: what is lost later is known to be."""
        self._refuse_while_busy("close")
        try:
            if not self._failed and not self._segment.broken:
                self.flush(Durability.DISK)
                manifest = self._manifest.knowing(self._known)
                if manifest != self._manifest:
                    with suppress(DiskFull):  # all is durable, although there is no room to say so
                        self._write_manifest(manifest)
        finally:
            for unsettled in self._unsettled:
                unsettled.file.close()
            self._segment.file.close()
            self._disk.drop_spares()

    @property
    def spares(self) -> int:
        """Files of removed segments that are kept for later ones."""
        return self._disk.spares

    def drop_spares(self) -> None:
        """In any thread, at any time."""
        self._disk.drop_spares()

    @property
    def _whole(self) -> DurableEnd | None:
        """All of the segment that grows, for when it is synced."""
        builder = self._segment.builder
        return DurableEnd(first=builder.first, stop=self.appended, size=builder.size) if builder.size else None

    @property
    def _known(self) -> DurableEnd | None:
        """What of the segment that grows is durable already."""
        size = 8 * self._segment.synced_words
        return DurableEnd(first=self._segment.builder.first, stop=self.durable, size=size) if size else None

    def _write_manifest(self, manifest: Manifest) -> None:
        write_manifest(self._disk, manifest)
        self._manifest = manifest

    def _put(self, entry: MadeEntry, view: ViewId | None = None) -> None:
        self._segment.put(entry, view)
        self.appended = entry.header.entry + 1
        self._context = self._context.after(entry.header)
        if self._segment.builder.entries - self._indexed >= max(self._index_every, self._indexed // INDEX_SHARE):
            self._note()

    def _note(self) -> None:
        """Tell readers what is in the segment that grows; without it they look through all of it."""
        builder = self._segment.builder
        self._indexed = builder.entries
        with suppress(LogError, OSError):  # the entry is in the log all the same
            replace_file(self._disk, index_name(builder.first), builder.index().packed(), durable=False)

    def _refuse_failed(self) -> None:
        if self._failed or self._segment.broken:
            raise LogError(self._failed or self._segment.broken)

    def _end(self, job: SyncJob | RemovalJob) -> None:
        if job is not self._job:
            raise LocalProtocolError("this job is not the one that is under way; end each job once")
        self._job = None

    def _refuse_while_busy(self, doing: str) -> None:
        if self._job is not None:
            what = "sync" if isinstance(self._job, SyncJob) else "removal"
            raise LocalProtocolError(
                f"cannot {doing} in {self._disk.where} while a {what} is under way; end that first"
            )

    def _sync(self, file: LogFile) -> None:
        try:
            file.sync()
        except LogError as error:
            # Whether what was written is still in memory or gone, nobody can say after that.
            self._failed = f"{error}; what was appended last may be lost: open the log again"
            raise

    def _roll(self) -> None:
        self._segment.write_out()
        if len(self._unsettled) >= MAX_UNSETTLED:
            self.settle()
        filled, file = self._segment.builder, self._segment.file
        self._begin_segment()
        self._unsettled.append(Unsettled(filled.sealed(), file))
        with suppress(DiskFull):  # an index that is missing is made again by whoever needs it
            replace_file(self._disk, index_name(filled.first), filled.index().packed(), durable=False)

    def _begin_segment(self) -> None:
        first = self._context.entry
        file = self._disk.create(segment_name(first), end=end_mark(first))
        self._segment = self._growing(file, IndexBuilder(first, self._context.highest))
        self._indexed = 0
        self._new_names = True

    def _growing(self, file: LogFile, builder: IndexBuilder) -> GrowingSegment:
        return GrowingSegment(file, builder, where=self._disk.where, waits=self._durability is Durability.MEMORY)


def create_log(
    disk: Disk, *, log: int, group: str, service: Service, after: Cut | None = None, fetching: bool = False
) -> None:
    """Make a directory the log of a stream; `log` is its id, random and not zero, `after` the cut it begins behind.

    One that is made for fetching is not read before it is complete.
    """
    if MANIFEST in disk.names():
        raise ConfigError(f"{disk.where} holds a log already; open that one, or name another directory")
    write_manifest(disk, Manifest(log=log, group=group, service=service, after=after, fetching=fetching))


def open_log(
    disk: Disk,
    *,
    durability: Durability = Durability.OS,
    segment_bytes: int = SEGMENT_BYTES,
    stated: Stated | None = None,
    index_every: int = INDEX_EVERY,
) -> LogWriter:
    """The writer of a log that is there, after cutting and reporting what a crash left behind."""
    recovered = recover(disk, read_manifest(disk))
    return LogWriter(
        disk,
        recovered,
        durability=durability,
        segment_bytes=segment_bytes,
        stated=stated,
        index_every=index_every,
    )
