"""One removal of old segments, taken out of its writer so that another thread can wait for the disk.

For whoever asks the writer they are gone as soon as there is a job. Files go only after a manifest without them is
durable, so a crash leaves at worst files that nobody asks for. That of a segment may serve a later one.
"""

from __future__ import annotations

from intergroup_core.log.manifest import Manifest, SealedSegment, index_name, segment_name, write_manifest
from intergroup_core.log.sync import Unsettled
from intergroup_core.ports import Disk


class RemovalJob:
    """What a removal has to do; made by `LogWriter.begin_removal`, and given back to `end_removal` after `run`."""

    def __init__(
        self,
        disk: Disk,
        *,
        segments: tuple[SealedSegment, ...],
        unsettled: tuple[Unsettled, ...],
        before: Manifest,
        manifest: Manifest,
    ) -> None:
        self.unsettled = unsettled
        """Those of the segments that the manifest did not list: they are never brought to the disk."""
        self.before = before
        self.listed = False
        """Whether the manifest without them is durable."""
        self._disk = disk
        self._segments = segments
        self._manifest = manifest

    def run(self) -> None:
        """In any thread, once; LogError where the disk refuses, and `end_removal` finds out how far it came."""
        write_manifest(self._disk, self._manifest)
        self.listed = True
        for unsettled in self.unsettled:
            unsettled.file.close()
        there = set(self._disk.names())
        for segment in self._segments:
            if segment_name(segment.first) in there:
                self._disk.retire(segment_name(segment.first))
            if index_name(segment.first) in there:
                self._disk.remove(index_name(segment.first))
