"""One sync of a log, taken out of its writer so that another thread can wait for the disk.

The writer says what is to be synced, somebody runs that wherever he likes, and the writer is told the outcome.
Meanwhile it appends and rolls: a job only syncs files and replaces the manifest, which the writer leaves alone as long
as there is a job.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from intergroup_core.errors import LogError
from intergroup_core.log.manifest import Manifest, SealedSegment, write_manifest
from intergroup_core.ports import Disk, LogFile


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A sealed segment that is not in the manifest yet."""

    segment: SealedSegment
    file: LogFile


class SyncJob:
    """What a sync has to do; made by `LogWriter.begin_sync`, and given back to `end_sync` after `run`."""

    def __init__(
        self,
        disk: Disk,
        *,
        mark: int,
        unsettled: tuple[Unsettled, ...],
        manifest: Manifest | None,
        names: bool,
        active: LogFile,
        active_words: int,
    ) -> None:
        self.mark = mark
        """All entries below it are durable afterwards."""
        self.unsettled = unsettled
        self.manifest = manifest
        """With the sealed segments listed, and how much of the next one is durable with this job; None where there are
        none to list."""
        self.names = names
        self.active = active
        self.active_words = active_words
        """Of the segment that grew when the job was made; it may be sealed by now."""
        self.lost = ""
        """What happened where a file could not be synced: nobody can say then what the kernel still has of it."""
        self._disk = disk

    def run(self) -> None:
        """In any thread, once; LogError where the disk refuses, and then `end_sync` must be told of it."""
        for step in self.steps():
            step()

    def steps(self) -> list[Callable[[], None]]:
        """What `run` does, one after another; in between the writer may do anything that it does during a job."""
        steps = [self._syncing(unsettled.file) for unsettled in self.unsettled]
        steps.append(self._syncing(self.active))
        if self.manifest is not None:
            # It speaks of all of them, and its names go with it.
            steps.append(self._list_sealed)
        elif self.names:
            steps.append(self._disk.sync_names)
        return steps

    def _list_sealed(self) -> None:
        assert self.manifest is not None
        write_manifest(self._disk, self.manifest)

    def _syncing(self, file: LogFile) -> Callable[[], None]:
        def sync() -> None:
            try:
                file.sync()
            except LogError as error:
                self.lost = str(error)
                raise

        return sync
