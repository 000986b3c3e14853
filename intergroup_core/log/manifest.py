"""The manifest of a log: whose it is, the sealed segments that are durable, and how much of the next one is.

Segments that are not in it are found by their names: each is named for its first entry, so those that continue
the numbers of the last one listed are the log's tail, and those below the first are what a removal left behind. So
nothing has to be written here when a segment is begun. What a crash may take away of the tail lies behind what is known
to be durable; whatever is missing before that was lost in another way.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from intergroup_core.errors import LogDamaged, LogError, LogFormat
from intergroup_core.ids import Service
from intergroup_core.log.cut import Cut, SourceCut
from intergroup_core.log.cut_codec import cut_fields, cut_of_fields
from intergroup_core.log.digest import checksum
from intergroup_core.log.entry import FORMAT
from intergroup_core.ports import Disk

MANIFEST = "manifest"
SEGMENT_SUFFIX = ".segment"
INDEX_SUFFIX = ".index"
TEMPORARY_SUFFIX = ".tmp"


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSegment:
    """A segment that nobody changes any more."""

    first: int
    """The number of its first entry."""
    stop: int
    """The number of the entry after its last."""
    size: int
    """In bytes."""
    last_timestamp: int
    """The highest in it."""
    chain: int
    """The digest of the log up to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableEnd:
    """Up to where a segment that may still grow was durable at least."""

    first: int
    """The number of the segment's first entry."""
    stop: int
    """The number of the entry after the last one that was durable."""
    size: int
    """Of the segment up to there, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a log is, and what it has for certain."""

    log: int
    group: str
    service: Service
    first: int = 0
    """The number of the log's first entry; what was below it was removed."""
    sealed: tuple[SealedSegment, ...] = ()
    durable: DurableEnd | None = None
    """Of the first segment that is not listed; None where nobody said."""
    after: Cut | None = None
    """The cut behind which the log begins: all that follows it is here, up to the log's end. None where nobody said."""
    sources: SourceCut | None = None
    """Of a log of `rto`, where the senders of the view stood in which it begins: what each of them sent behind that,
    and the log reaches, is here. None where nobody said."""
    missing: SourceCut | None = None
    """Of a log of `rso` without a stated beginning, up to where something of each sender may be missing: it was sent
    before the log began, or was in segments that were removed. None where nobody said."""
    upto: Cut | None = None
    """Of a log that was fetched and is complete, the cut up to which it holds everything, be there entries or not."""
    fetching: bool = False
    """Whether the log is to take a range that has not come whole: nobody reads it before that."""

    @property
    def tail(self) -> int:
        """The first entry that is in no sealed segment."""
        return self.sealed[-1].stop if self.sealed else self.first

    def durable_in(self, first: int) -> DurableEnd | None:
        """What is known of the segment with this first entry, where it is the first that is not listed."""
        return self.durable if self.durable is not None and first == self.durable.first == self.tail else None

    def knowing(self, end: DurableEnd | None) -> Manifest:
        """With the furthest that is known to be durable of the first segment that is not listed."""
        ends = [each for each in (end, self.durable) if each is not None and each.first == self.tail]
        return replace(self, durable=max(ends, key=lambda each: each.size, default=None))

    def without(self, segments: tuple[SealedSegment, ...]) -> Manifest:
        kept = tuple(segment for segment in self.sealed if segment not in segments)
        same = kept == self.sealed
        return replace(
            self,
            first=kept[0].first if kept else self.tail,
            sealed=kept,
            after=self.after if same else None,
            sources=self.sources if same else None,
            missing=self.missing if same else None,
        )


def segment_name(first: int) -> str:
    return f"{first:016x}{SEGMENT_SUFFIX}"


def index_name(first: int) -> str:
    return f"{first:016x}{INDEX_SUFFIX}"


def told_name(incarnation: int) -> str:
    """The file that says of a gap that it was given to a reader in the place of what it skipped."""
    return f"told-{incarnation:016x}"


def told_transaction_name(timestamp: int, sender: int) -> str:
    """The file that says of a transaction that a gap was given in its place, and why."""
    return f"told-{timestamp:016x}-{sender:016x}"


def first_of(name: str) -> int | None:
    """The number a segment or index is named for, None for other files."""
    stem, dot, suffix = name.partition(".")
    if f"{dot}{suffix}" not in (SEGMENT_SUFFIX, INDEX_SUFFIX) or len(stem) != 16:
        return None
    try:
        return int(stem, 16)
    except ValueError:
        return None


def packed_manifest(manifest: Manifest) -> bytes:
    fields: dict[str, Any] = {
        "format": FORMAT,
        "log": f"{manifest.log:016x}",
        "group": manifest.group,
        "service": manifest.service.value,
        "first": manifest.first,
        "sealed": [asdict(segment) for segment in manifest.sealed],
    }
    bounds = {
        "after": manifest.after,
        "sources": manifest.sources,
        "missing": manifest.missing,
        "upto": manifest.upto,
    }
    fields |= {name: cut_fields(cut) for name, cut in bounds.items() if cut is not None}
    if manifest.fetching:
        fields["fetching"] = True
    if manifest.durable is not None:
        fields["durable"] = asdict(manifest.durable)
    content = json.dumps(fields, indent=1)
    return f"{content}\n{checksum(content.encode()):016x}\n".encode()


def read_manifest(disk: Disk) -> Manifest:
    """What the manifest says; LogError where there is none."""
    if MANIFEST not in disk.names():
        raise LogError(f"{disk.where} holds no stable log: it has no file {MANIFEST}; name a directory that has one")
    file = f"{disk.where}/{MANIFEST}"
    content, _, stated = bytes(disk.map(MANIFEST)).strip().rpartition(b"\n")
    if f"{checksum(content):016x}".encode() != stated:
        raise LogDamaged(file, 0, "its checksum is wrong")
    fields: dict[str, Any] = json.loads(content)
    if fields["format"] != FORMAT:
        raise LogFormat(
            f"{file} is of format {fields['format']}, this version reads format {FORMAT}; "
            "read it with the version of intergroup that wrote it"
        )
    sources, missing = (cut_of_fields(fields[name]) if name in fields else None for name in ("sources", "missing"))
    return Manifest(
        log=int(fields["log"], 16),
        group=fields["group"],
        service=Service(fields["service"]),
        first=fields["first"],
        sealed=tuple(SealedSegment(**segment) for segment in fields["sealed"]),
        after=cut_of_fields(fields["after"]) if "after" in fields else None,
        sources=sources if isinstance(sources, SourceCut) else None,
        missing=missing if isinstance(missing, SourceCut) else None,
        upto=cut_of_fields(fields["upto"]) if "upto" in fields else None,
        fetching=bool(fields.get("fetching")),
        durable=DurableEnd(**fields["durable"]) if "durable" in fields else None,
    )


def write_manifest(disk: Disk, manifest: Manifest) -> None:
    """Durable once this returns; a crash before leaves the old one."""
    replace_file(disk, MANIFEST, packed_manifest(manifest))
    disk.sync_names()


def replace_file(disk: Disk, name: str, content: bytes, *, durable: bool = True) -> None:
    """Put a whole file in the place of another; one that is not made durable must be able to tell that it is torn."""
    temporary = name + TEMPORARY_SUFFIX
    file = disk.create(temporary)
    try:
        file.appendv([content])
        if durable:
            file.sync()
    except LogError:
        disk.remove(temporary)
        raise
    finally:
        file.close()
    disk.rename(temporary, name)
