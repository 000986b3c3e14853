"""Where a site keeps its streams: a directory for each group, in it one for each service, in it one for each part.

    <root>/<group, readable>-<hash of the group>/<service>/<created>-<log id>/

A part is a log. Its directory is named for the time it was made, so that names sort by that, and for its id. The exact
name of the group is in the manifests.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from intergroup_core.errors import ConfigError, LogError
from intergroup_core.ids import MAX_TIMESTAMP, Service, Timestamp
from intergroup_core.log.cut import Cut
from intergroup_core.log.manifest import MANIFEST, Manifest, read_manifest
from intergroup_core.log.part import says_something
from intergroup_core.log.reader import LogReader
from intergroup_core.log.recovery import Report
from intergroup_core.log.writer import create_log, open_log
from intergroup_core.runtime.disk import PRIVATE_DIRECTORY, FileDisk, explained

READABLE_CHARACTERS = 40
"""Of a group's name that its directory shows; the hash tells groups apart."""
_HASH_BYTES = 16
_UNREADABLE = re.compile("[^A-Za-z0-9._-]", re.ASCII)
_PART = re.compile("([0-9a-f]{16})-([0-9a-f]{16})", re.ASCII)
_REMOVED = ".removed"
"""Ends the name of a part whose files are being removed."""


class StreamStore:
    """The streams under one directory; only a site's agent makes and removes parts, anybody may read them."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def streams(self) -> list[tuple[str, Service]]:
        """Every (group, service) that has a part whose manifest can be read."""
        found = []
        for group in _directories(self._root):
            for stream in _directories(group):
                manifests = (manifest for part in _parts(stream) if (manifest := _manifest_in(part)) is not None)
                if (first := next(manifests, None)) is not None:
                    found.append((first.group, first.service))
        return found

    def parts(self, group: str, service: Service) -> list[FileDisk]:
        """The parts of a stream, to be read, the oldest first."""
        return [FileDisk(part) for part in _parts(self._directory(group, service)) if (part / MANIFEST).exists()]

    def put_elsewhere(self, group: str, directory: Path) -> None:
        """Let a group's parts lie in another directory; ConfigError where there are some already that do not.

        The site's own directory leads there, so that whoever knows that one finds them.
        """
        own, wanted = self._root / directory_of(group), directory / directory_of(group)
        if own.exists() and own.resolve() != wanted.resolve():
            raise ConfigError(
                f"the log of group {group} lies in {own.resolve()}, not in {directory}; leave the directory out, or "
                "give the one it was begun with"
            )
        with explained("make", wanted):
            wanted.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        if not own.exists():
            with explained("make", own):
                self._root.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
                own.unlink(missing_ok=True)  # a link to where nothing is any more
                own.symlink_to(wanted)
            FileDisk(self._root).sync_names()

    def create_part(
        self, group: str, service: Service, created: Timestamp, *, after: Cut | None = None, fetching: bool = False
    ) -> FileDisk:
        """A new part, empty and locked for its writer; `after` is the cut behind which it will begin.

        One that is made to fetch a range is for no reader before that is complete.
        """
        directory = self._directory(group, service)
        for each in (self._root, directory.parent, directory):
            with explained("make", each):
                each.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        # Clocks may go back, but a part that was made later is named later.
        made = [int(part.name[:16], 16) for part in _parts(directory)]
        number = min(max(created, *(last + 1 for last in made), 0), MAX_TIMESTAMP)
        log = secrets.randbits(64) or 1
        disk = FileDisk.locked(directory / f"{number:016x}-{log:016x}")
        try:
            create_log(disk, log=log, group=group, service=service, after=after, fetching=fetching)
            for each in (directory, directory.parent, self._root):
                FileDisk(each).sync_names()
        except BaseException:
            disk.close()
            raise
        return disk

    def recover(self, group: str, service: Service) -> list[Report]:
        """Bring the parts that nobody writes into the state that a writer would find, as is right after a crash."""
        reports = []
        for part in self.parts(group, service):
            disk = _locked(Path(part.where))
            if disk is not None:
                try:
                    log = open_log(disk)
                    log.close()
                    reports.append(log.report)
                finally:
                    disk.close()
        return reports

    def remove_part(self, group: str, service: Service, log: int) -> None:
        """Remove a whole part, unless somebody writes it; readers keep what they have mapped."""
        for part in _parts(self._directory(group, service)):
            if part.name.endswith(f"-{log:016x}"):
                disk = FileDisk.locked(part)
                try:
                    _remove(part)
                finally:
                    disk.close()

    def remove_empty(self, group: str, service: Service) -> int:
        """Remove parts that hold nothing and that nobody writes, and what is left of removed ones; how many parts.

        One that only says that nothing lies between two cuts holds that; a fetch that broke off holds nothing.
        """
        removed = 0
        directory = self._directory(group, service)
        for left in _directories(directory):
            if left.name.endswith(_REMOVED):
                shutil.rmtree(left, ignore_errors=True)
        for part in _parts(directory):
            disk = _locked(part)
            if disk is None:
                continue
            try:
                if _is_empty(disk):
                    _remove(part)
                    removed += 1
            finally:
                disk.close()
        return removed

    def _directory(self, group: str, service: Service) -> Path:
        return self._root / directory_of(group) / service.value


def directory_of(group: str) -> str:
    """The name of a group's directory: what of its name a file's may have, and a hash of all of it."""
    digest = hashlib.blake2b(group.encode(errors="surrogatepass"), digest_size=_HASH_BYTES).hexdigest()
    return f"{_UNREADABLE.sub('_', group)[:READABLE_CHARACTERS].lstrip('.')}-{digest}"


def logs_under(directory: Path) -> Iterator[Path]:
    """Directories of logs, this one or any below it, also where a link leads to them; each once, by their names."""
    seen: set[Path] = set()
    for name, below, files in os.walk(directory, followlinks=True):
        place = Path(name).resolve()
        if place in seen:
            below.clear()  # links may go around in a circle
            continue
        seen.add(place)
        below.sort()
        if MANIFEST in files:
            yield Path(name)


def _directories(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        return
    with explained("list", path):
        found = sorted(entry for entry in path.iterdir() if entry.is_dir())
    yield from found


def _parts(stream: Path) -> list[Path]:
    return [part for part in _directories(stream) if _PART.fullmatch(part.name)]


def _manifest_in(part: Path) -> Manifest | None:
    try:
        return read_manifest(FileDisk(part))
    except LogError:
        return None


def _locked(part: Path) -> FileDisk | None:
    """A part that nobody else writes; None where somebody does."""
    try:
        return FileDisk.locked(part)
    except ConfigError:
        return None


def _is_empty(disk: FileDisk) -> bool:
    if MANIFEST not in disk.names():
        return True  # somebody was interrupted while making it
    try:
        return not says_something(LogReader(disk))
    except LogError:
        return False  # damaged is not empty


def _remove(part: Path) -> None:
    """Under another name first, so that nobody sees half a part."""
    gone = part.with_name(part.name + _REMOVED)
    with explained("remove", part):
        part.rename(gone)
        shutil.rmtree(gone)
    FileDisk(part.parent).sync_names()
