"""The sparse index of a segment: where to begin looking for a timestamp, a view, or a message of a sender.

It is a file beside the segment, written as that grows and when it is sealed, and made again from the entries' headers
where it is missing or damaged.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intergroup_core.ids import MemberId, Timestamp, ViewId
from intergroup_core.log.digest import MASK64, checksum
from intergroup_core.log.entry import EntryHeader, Kind
from intergroup_core.log.manifest import SealedSegment

POINT_BYTES = 65_536
POINT_ENTRIES = 64
"""A sender's entries are pointed at once in so many bytes, and each entry whose number this divides, whoever sent it: a
search looks at few more headers."""

_LEAST_ROWS = 16
_MAGIC = b"IGLX\x01\0\0\0"
_TOTALS = struct.Struct("<8s12Q")
_CHECK_BYTES = 8

POINT = np.dtype([(name, "<u8") for name in ("offset", "entry", "source", "seq", "highest")])
VIEW = np.dtype([(name, "<u8") for name in ("offset", "entry", "start", "leader", "seq", "own")])
GAP = np.dtype([(name, "<u8") for name in ("offset", "entry")])
SOURCE = np.dtype([(name, "<u8") for name in ("source", "first_seq", "last_seq")])

Table = NDArray[np.void]


class ViewPlace(NamedTuple):
    """A view in a segment; `own` is false for one carried in from an earlier segment."""

    offset: int
    entry: int
    view: ViewId
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What a segment holds, in numbers."""

    first: int
    stop: int
    size: int
    entries: int
    messages: int
    records: int
    first_timestamp: int
    """Of its first message or view; 0 where it has none."""
    highest: int
    """The highest timestamp in it and everything before it."""
    chain: int
    """The digest of the log up to its end: by it an index is known to be of this very content."""


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    """Tables in the order of the segment; `highest` of a point is the highest timestamp before it in the whole log."""

    totals: Totals
    points: Table
    views: Table
    gaps: Table
    sources: Table

    def point_of_entry(self, entry: int) -> int:
        """An offset at or before an entry."""
        return self._offset(int(np.searchsorted(self.points["entry"], np.uint64(entry), "right")) - 1)

    def entry_before(self, offset: int) -> int:
        """An entry that begins before an offset, not far from it."""
        at = int(np.searchsorted(self.points["offset"], np.uint64(offset), "left")) - 1
        return int(self.points["entry"][at]) if at >= 0 else self.totals.first

    def point_of_timestamp(self, timestamp: int) -> tuple[int, int]:
        """An entry, and its offset, before which every timestamp is lower than this one."""
        at = max(0, int(np.searchsorted(self.points["highest"], np.uint64(timestamp), "left")) - 1)
        return (int(self.points["entry"][at]), self._offset(at)) if len(self.points) else (self.totals.first, 0)

    def point_of_message(self, source: int, seq: int) -> int | None:
        """An entry at or before the first one of a sender that reaches a seq; None where no entry here does."""
        of_source = self.sources[self.sources["source"] == source]
        if not len(of_source) or int(of_source["last_seq"][0]) < seq:
            return None
        points = self.points[self.points["source"] == source]
        at = max(0, int(np.searchsorted(points["seq"], np.uint64(seq), "right")) - 1)
        return int(points["entry"][at])

    def view_places(self) -> list[ViewPlace]:
        return [
            ViewPlace(offset, entry, ViewId(Timestamp(start), MemberId(leader), seq), bool(own))
            for offset, entry, start, leader, seq, own in self.views.tolist()
        ]

    def _offset(self, at: int) -> int:
        return int(self.points["offset"][at]) if 0 <= at < len(self.points) else 0

    def packed(self) -> bytes:
        totals = self.totals
        tables = (self.points, self.views, self.gaps, self.sources)
        head = _TOTALS.pack(
            _MAGIC,
            totals.first,
            totals.stop,
            totals.size,
            totals.entries,
            totals.messages,
            totals.records,
            totals.first_timestamp,
            totals.highest,
            totals.chain,
            *map(len, tables[:3]),
        )
        content = head + b"".join(table.tobytes() for table in tables)
        return content + checksum(content).to_bytes(_CHECK_BYTES, "little")


def unpacked_index(content: bytes) -> SegmentIndex | None:
    """An index as it was written, None where it is damaged."""
    body, stated = content[:-_CHECK_BYTES], content[-_CHECK_BYTES:]
    if len(body) < _TOTALS.size or checksum(body).to_bytes(_CHECK_BYTES, "little") != stated or body[:8] != _MAGIC:
        return None
    _, first, stop, size, entries, messages, records, first_timestamp, highest, chain, *counts = _TOTALS.unpack_from(
        body
    )
    tables, at = [], _TOTALS.size
    for dtype, count in zip((POINT, VIEW, GAP), counts, strict=True):
        tables.append(np.frombuffer(body, dtype, count, at))
        at += count * dtype.itemsize
    tables.append(np.frombuffer(body, SOURCE, -1, at))
    totals = Totals(
        first=first,
        stop=stop,
        size=size,
        entries=entries,
        messages=messages,
        records=records,
        first_timestamp=first_timestamp,
        highest=highest,
        chain=chain,
    )
    return SegmentIndex(totals, *tables)


class _GrowingTable:
    """Rows that only become more, so that what was handed out of them stays as it was."""

    __slots__ = ("_count", "_rows")

    def __init__(self, dtype: np.dtype[np.void], rows: Table | None = None) -> None:
        self._rows = np.empty(_LEAST_ROWS, dtype) if rows is None else rows
        self._count = 0 if rows is None else len(rows)

    def append(self, row: tuple[int, ...]) -> None:
        if self._count == len(self._rows):
            larger = np.empty(max(_LEAST_ROWS, 2 * self._count), self._rows.dtype)
            larger[: self._count] = self._rows
            self._rows = larger
        self._rows[self._count] = row
        self._count += 1

    def table(self) -> Table:
        return self._rows[: self._count]


@dataclass(slots=True)
class IndexBuilder:
    """Follows a segment as it grows."""

    first: int
    highest: int = 0
    """The highest timestamp before the segment, then so far."""
    stop: int = -1
    size: int = 0
    entries: int = 0
    messages: int = 0
    records: int = 0
    first_timestamp: int = 0
    chain: int = 0
    _points: _GrowingTable = field(default_factory=lambda: _GrowingTable(POINT))
    _views: _GrowingTable = field(default_factory=lambda: _GrowingTable(VIEW))
    _gaps: _GrowingTable = field(default_factory=lambda: _GrowingTable(GAP))
    _sources: dict[int, list[int]] = field(default_factory=dict)
    """First seq, last seq, and where the last point of it is."""

    def __post_init__(self) -> None:
        self.stop = self.first

    @classmethod
    def after(cls, index: SegmentIndex) -> IndexBuilder:
        """One that goes on where an index ends, as if it had followed the segment from its beginning."""
        totals = index.totals
        pointed = dict(zip(index.points["source"].tolist(), index.points["offset"].tolist(), strict=True))
        builder = cls(
            totals.first,
            totals.highest,
            size=totals.size,
            entries=totals.entries,
            messages=totals.messages,
            records=totals.records,
            first_timestamp=totals.first_timestamp,
            chain=totals.chain,
            _points=_GrowingTable(POINT, index.points),
            _views=_GrowingTable(VIEW, index.views),
            _gaps=_GrowingTable(GAP, index.gaps),
            _sources={source: [first, last, pointed[source]] for source, first, last in index.sources.tolist()},
        )
        builder.stop = totals.stop
        return builder

    def add(self, header: EntryHeader, offset: int, view: ViewId | None = None, *, after_damage: bool = False) -> None:
        """An entry at an offset; with the view's id where it is one."""
        if header.kind == Kind.DATA:
            known = self._sources.get(header.source)
            if known is None:
                known = self._sources[header.source] = [header.first_seq, 0, -POINT_BYTES]
            known[1] = header.last_seq
            if after_damage or offset - known[2] >= POINT_BYTES or not header.entry % POINT_ENTRIES:
                self._point(header, offset, header.source, header.first_seq)
                known[2] = offset
            self.messages += header.messages
            self.records += header.records
        else:
            self._point(header, offset)
            if view is not None:
                place = (offset, header.entry, view.start, view.leader, view.leader_seq, int(not header.carried))
                self._views.append(place)
            elif header.kind == Kind.GAP:
                self._gaps.append((offset, header.entry))
        if not self.first_timestamp and not header.carried and header.kind != Kind.GAP:
            self.first_timestamp = header.first_timestamp
        self.highest = max(self.highest, header.last_timestamp)
        self.entries += 1
        self.stop = header.entry + 1
        self.chain = (header.chain + header.digest) & MASK64
        self.size = offset + header.size

    def _point(self, header: EntryHeader, offset: int, source: int = 0, seq: int = 0) -> None:
        """Nobody has the id 0, which stands at views and gaps."""
        self._points.append((offset, header.entry, source, seq, self.highest))

    def sealed(self) -> SealedSegment:
        """What the manifest will say of it."""
        return SealedSegment(
            first=self.first, stop=self.stop, size=self.size, last_timestamp=self.highest, chain=self.chain
        )

    def index(self) -> SegmentIndex:
        """What is known so far."""
        totals = Totals(
            first=self.first,
            stop=self.stop,
            size=self.size,
            entries=self.entries,
            messages=self.messages,
            records=self.records,
            first_timestamp=self.first_timestamp,
            highest=self.highest,
            chain=self.chain,
        )
        sources = [(source, known[0], known[1]) for source, known in self._sources.items()]
        return SegmentIndex(
            totals,
            self._points.table(),
            self._views.table(),
            self._gaps.table(),
            np.array(sources, dtype=SOURCE),
        )
